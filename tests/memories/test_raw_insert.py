"""A row of `memories` that a script writes by SQL, with service, category and observation alone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from memories.injection.ops import build
from memories.lifecycle import verbs
from memories.lifecycle.sweep import sweep
from memories.models import Memory, Source, Verdict
from memories.recall import Filters, keyword_index, recall
from tests.memories.people import signed_in

pytestmark = pytest.mark.django_db

TEXT = "Takes 60s to start after a restart"
INSERT = "INSERT INTO memories (service, category, observation) VALUES (%s, %s, %s)"


def inserted(*texts: str) -> list[Memory]:
    with connection.cursor() as cursor:
        cursor.executemany(INSERT, [("jellyfin", "timing", text) for text in texts])
    return list(Memory.objects.order_by("pk"))


def test_it_reads_as_any_other_memory():
    before = timezone.now() - timedelta(seconds=1)
    first, second = inserted(TEXT, "Scans the library at night")
    for memory in (first, second):
        memory.full_clean()
        assert (memory.uuid.version, memory.uuid.variant) == (4, "specified in RFC 4122")
        assert before < memory.created_at <= timezone.now()
        assert before < memory.updated_at <= timezone.now()
        assert (memory.taxonomy, memory.tier, memory.confidence, memory.active) == ("ops", 1, 0.7, True)
        assert (memory.verdict, memory.source, memory.tags) == (Verdict.ALLOW, Source.IMPORT, [])
    assert first.uuid != second.uuid
    assert Memory.objects.get(uuid=first.uuid) == first


def test_many_uuids_differ():
    assert len({memory.uuid for memory in inserted(*(f"Fact {number}" for number in range(300)))}) == 300


def test_it_is_indexed_recalled_and_injected():
    (memory,) = inserted(TEXT)
    assert [hit.memory_id for hit in recall("restart", Filters()).hits] == [memory.pk]
    assert keyword_index.catch_up() == 1
    assert [hit.memory_id for hit in recall("restart", Filters()).hits] == [memory.pk]
    assert TEXT in build(budget=2_000).text


def test_it_decays_and_can_be_edited():
    (memory,) = inserted(TEXT)
    sweep(timezone.now() + timedelta(days=44, minutes=1))
    memory.refresh_from_db()
    assert memory.confidence == pytest.approx(0.5)
    verbs.edit(memory.pk, by="ann", observation="Takes 90s to start after a restart")
    memory.refresh_from_db()
    assert memory.observation.startswith("Takes 90s")
    assert signed_in("viewer").get(f"/memories/{memory.pk}").status_code == 200


def test_every_column_has_a_default_in_the_database():
    given = {"id", "category", "observation"}
    columns = [field for field in Memory._meta.concrete_fields if not field.null and field.column not in given]
    assert [field.name for field in columns if not field.has_db_default()] == []
