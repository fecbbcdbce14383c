"""Migrations over a table that holds rows: what was there before is found, asked about and kept as it was.

A migration takes seconds however few rows there are. So the rows of several questions go down and up again together.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection

from memories.checks import check_recall_index
from memories.models import (
    Change,
    Disagreement,
    Embedding,
    EmbeddingModel,
    Memory,
    MemoryChange,
    MemoryTerms,
    PendingEmbedding,
    Recalled,
)
from memories.recall import Filters, keyword_index, recall, term_statistics
from tests.embedders import WordEmbedder, active_model, embed_all
from tests.factories import MemoryFactory

pytestmark = pytest.mark.django_db(transaction=True)
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
BEFORE_RECALL, BEFORE_BACKFILL, BEFORE_NUMBERS = "0008", "0050", "0054"


@pytest.fixture
def migrate():
    """Bring the memories' tables to a migration; at the end all tables are as they should be."""
    arrived = True

    def run(name: str | None = None) -> None:
        nonlocal arrived
        arrived = False
        call_command("migrate", *(["memories", name] if name else []), verbosity=0)
        arrived = name is None

    term_statistics.forget()
    yield run
    if not arrived:
        call_command("migrate", verbosity=0)
    term_statistics.forget()


def contradicted(older: Memory, by: object, at: datetime = AT) -> None:
    evidence = {"by": by, "match": {"relation": "contradicts"}}
    MemoryChange.objects.create(
        memory=older, memory_uuid=older.uuid, kind=Change.CONTRADICTED, at=at, evidence=evidence
    )


def pairs() -> set[tuple[int, int]]:
    return set(Disagreement.objects.values_list("older_id", "newer_id"))


def found(query: str) -> list[int]:
    return [hit.memory_id for hit in recall(query, Filters()).hits]


def contradictions_of_before_the_inbox() -> tuple[Memory, set[tuple[int, int]]]:
    """Memories that contradicted each other: one of them, and the pairs that are to be asked about."""
    older, newer, third, merged, superseded, gone = (MemoryFactory(observation=f"Fact number {n}") for n in range(6))
    asked = MemoryFactory(observation="A pair that is asked about already")
    Disagreement.objects.create(older=asked, newer=newer, kind="contradiction", created_at=AT)
    contradicted(older, newer.pk)
    contradicted(older, newer.pk, at=AT.replace(day=2))  # a second time
    contradicted(newer, older.pk)  # and the other way round
    contradicted(third, newer.pk)
    contradicted(newer, asked.pk)
    for by in (third.pk, 999_999, "7", None):  # itself, nobody, and what is no id
        contradicted(third, by)
    Memory.objects.filter(pk=merged.pk).update(active=False, inactive_reason="merged")
    Memory.objects.filter(pk=superseded.pk).update(active=False, inactive_reason="superseded")
    contradicted(merged, newer.pk)
    contradicted(newer, superseded.pk)
    contradicted(gone, newer.pk)
    MemoryChange.objects.filter(memory=gone).update(memory=None)
    many = Memory.objects.bulk_create(MemoryFactory.build(observation=f"Known as number {n}") for n in range(260))
    MemoryChange.objects.bulk_create(  # more than one batch of the migration, and each pair in both
        MemoryChange(memory=row, memory_uuid=row.uuid, kind=Change.CONTRADICTED, at=AT, evidence={"by": newer.pk})
        for _ in range(2)
        for row in many
    )
    expected = {(older.pk, newer.pk), (third.pk, newer.pk), (asked.pk, newer.pk)}
    return older, expected | {(row.pk, newer.pk) for row in many}


def assert_the_index_is_in_step(kept: Memory) -> None:
    assert keyword_index.missing() == []
    assert check_recall_index(None, databases=["default"]) == []
    assert found("wg0") == [kept.pk]  # while all are due: a rebuilt table lost its triggers, 0062 changes the terms
    keyword_index.catch_up()
    assert found("wg0") == [kept.pk]


def test_contradictions_are_asked_about_once_a_pair_and_recall_keeps_its_index_and_its_log(migrate):
    older, expected = contradictions_of_before_the_inbox()
    kept, edited, gone = (MemoryFactory(observation=f"The tunnel wg{place} drops") for place in range(3))
    keyword_index.catch_up()
    recalled = Recalled.objects.create(query="wg0", hits=[[kept.pk, 1.0]], surface="cli", rewritten="tunnel", at=AT)
    rows, terms = Memory.objects.count(), MemoryTerms.objects.count()

    migrate(BEFORE_NUMBERS)
    assert keyword_index.missing() == []  # its table was built anew
    migrate(BEFORE_BACKFILL)
    migrate()
    assert_the_index_is_in_step(kept)
    assert (Memory.objects.count(), MemoryTerms.objects.count()) == (rows, terms)

    assert pairs() == expected
    made = Disagreement.objects.get(older=older)
    assert (made.kind, made.created_at, made.evidence) == ("contradiction", AT, {"relation": "contradicts"})
    assert (made.older_text, made.newer_text) == (older.observation, "Fact number 1")
    assert (made.service, made.category, made.answer) == ("jellyfin", "timing", "")
    backfill = import_module("memories.migrations.0051_disagreements_of_before")
    backfill.put_before_the_operator(apps, None)  # a second time
    assert pairs() == expected
    assert Disagreement.objects.count() == len(expected)

    log = Recalled.objects.get(pk=recalled.pk)
    assert (log.query, log.hits, log.rewritten) == ("wg0", [[kept.pk, 1.0]], "")

    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":  # raises when the index and the table do not say the same
            cursor.execute("INSERT INTO memory_terms_fts (memory_terms_fts) VALUES ('integrity-check')")
    Memory.objects.filter(pk=edited.pk).update(observation="The printer jams")
    gone.delete()
    assert keyword_index.catch_up() == 1
    assert found("printer") == [edited.pk]
    assert recall("wg1 wg2", Filters()).hits == ()


def test_memories_of_before_recall_are_found_by_words_and_wait_for_a_vector(migrate):
    kept = MemoryFactory(observation="The bridge br0 drops")
    keyword_index.catch_up()
    Recalled.objects.create(query="br0", hits=[[kept.pk, 1.0]], surface="cli", at=AT)
    active_model(WordEmbedder())

    migrate(BEFORE_RECALL)
    with connection.cursor() as cursor:
        assert "memory_terms" not in connection.introspection.table_names(cursor)
    store_as_then("The tunnel wg0 drops", "The printer jams")
    migrate()

    assert Memory.objects.get(pk=kept.pk).observation == kept.observation
    tunnel = Memory.objects.get(observation="The tunnel wg0 drops")
    assert found("wg0 tunnel") == [tunnel.pk]  # read as it is
    assert found("br0") == [kept.pk]
    assert keyword_index.catch_up() == 3
    assert found("wg0 tunnel") == [tunnel.pk]
    assert found("br0") == [kept.pk]
    assert (tunnel.sequence, tunnel.position) == ("", None)
    assert check_recall_index(None, databases=["default"]) == []
    assert not EmbeddingModel.objects.exists() and not PendingEmbedding.objects.exists()
    embedder = WordEmbedder()
    model = active_model(embedder)
    embed_all(embedder, model)
    assert Embedding.objects.filter(model=model).count() == 3


def store_as_then(*texts):
    """Store memories in the table as it is now, whatever its columns are."""
    columns = ("uuid", "observation", "category", "taxonomy", "service", "source")
    with connection.cursor() as cursor:
        for row in (MemoryFactory.build(observation=text) for text in texts):
            values = [getattr(row, name) for name in columns]
            values[0] = row.uuid.hex if connection.vendor == "sqlite" else str(row.uuid)
            known = old_values(cursor, dict(zip(columns, values, strict=True)))
            names = ", ".join(known)
            marks = ", ".join(["%s"] * len(known))
            cursor.execute(f"INSERT INTO memories ({names}) VALUES ({marks})", list(known.values()))


def old_values(cursor, given):
    """A row of the table as it was then: what is given, and a plain value for each other column that needs one."""
    defaults = {
        "confidence": 0.7,
        "active": True,
        "verdict": "allow",
        "tags": "[]",
        "created_at": AT,
        "updated_at": AT,
        "version": 1,
    }
    with_default = {field.column: field.default for field in Memory._meta.concrete_fields}
    known = {}
    for column in connection.introspection.get_table_description(cursor, "memories"):
        name = column.name
        if name == "id":
            continue
        if name in given:
            known[name] = given[name]
        elif name in defaults:
            known[name] = defaults[name]
        elif not column.null_ok:
            default = with_default.get(name)
            known[name] = default() if callable(default) else default
    return known


def test_what_a_person_wrote_or_approved_before_is_confirmed():
    human = MemoryFactory(source="human", created_at=AT)
    approved = MemoryFactory(source="run", approved_at=AT)
    held, said = MemoryFactory(source="human", verdict="hold"), MemoryFactory(source="run")
    import_module("memories.migrations.0066_confirmed_before").confirm(apps, None)
    found = dict(Memory.objects.values_list("pk", "confirmed_at"))
    assert found == {human.pk: AT, approved.pk: AT, held.pk: None, said.pk: None}
