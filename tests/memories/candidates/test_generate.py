"""What a big scope is searched by before a new text is compared: the index, what is not in it yet, the same text."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories import candidates
from memories.embedding.backfill import backfill as embed
from memories.matching import Kind, relation
from memories.models import Embedding, Memory, MemoryTermsDue
from memories.recall import keyword_index
from memories.store import Provenance, Statement, prepare, remember
from tests.memories.at_once import remember_at_once
from tests.support.factories import SessionFactory
from tests.support.models_http import embedded_by
from tests.support.processes import environment

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
FACT = "Must be started after the WireGuard tunnel is up"
AGAIN = "Has to be started after the WireGuard tunnel is up"
SIZE = 60


@pytest.fixture(autouse=True)
def nothing_kept():
    keyword_index.forget()
    yield
    keyword_index.forget()


@pytest.fixture(autouse=True, params=["by the indexes", "all of it"])
def looked_through(request, monkeypatch):
    """A scope of some hundred memories as if it were a big one, and as it is."""
    if request.param == "by the indexes":
        monkeypatch.setattr(candidates, "FEW", 20)
    return request.param == "all of it"


@pytest.fixture(params=["by words alone", "with vectors"])
def model(request, settings):
    """Without a model, and with one that a small server of the test's own plays."""
    if request.param == "by words alone":
        yield None
        return
    with embedded_by(settings) as (_, made):
        yield made


def fill(size=SIZE, first=0, text="Worker {} writes its log to volume {} at night", **fields):
    """A scope of many memories whose texts share their words."""
    known = {"taxonomy": "ops", "category": "maintenance", "service": "jellyfin", "created_at": NOW, "updated_at": NOW}
    return Memory.objects.bulk_create(
        Memory(**{**known, "observation": text.format(number, number * 7), **fields})
        for number in range(first, first + size)
    )


def known(text, **fields):
    return fill(1, text=text.replace("{", "{{").replace("}", "}}"), **fields)[0]


def said():
    return Provenance("run", "agent:watcher", SessionFactory().pk, at=NOW)


def compared(text, service="jellyfin", **candidate):
    return prepare(Statement("maintenance", text, service, **candidate), said()).found


@pytest.fixture(params=["indexed", "not indexed yet", "more to be indexed than is read"])
def settle(request, monkeypatch):
    def run():
        if request.param == "indexed":
            keyword_index.catch_up()
        elif request.param == "more to be indexed than is read":
            monkeypatch.setattr(candidates, "UNINDEXED", 5)

    return run


def test_the_same_text_is_found_in_a_big_scope(model, settle):
    texts = [FACT, "So it is what it was", "WireGuard", "Jellyfin (jellyfin)", "Größe: 5 µm — 漢字"]
    embedded = {text: known(text).pk for text in texts}
    embed()
    fill()
    without = {text: known(text).pk for text in texts}
    settle()
    for text in texts:
        assert {embedded[text], without[text]} <= compared(text).keys()


def test_the_newest_are_compared_before_anything_indexed_them(model):
    fill()
    keyword_index.catch_up()
    made = remember(Statement("maintenance", FACT, "jellyfin"), said())
    Embedding.objects.all().delete()
    assert remember(Statement("maintenance", AGAIN, "jellyfin"), said()).memory_id == made.memory_id
    raw = known("Needs the NAS mounted before it starts")
    assert MemoryTermsDue.objects.filter(memory_id=raw.pk).exists()
    assert raw.pk in compared("It needs the NAS mounted before starting")


@pytest.mark.parametrize("by", ["bulk_create", "SQL"])
def test_after_a_bulk_insert_a_restatement_is_found_before_a_worker_has_indexed(monkeypatch, by):
    monkeypatch.setattr(candidates, "UNINDEXED", 5)
    if by == "SQL":
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO memories (service, category, observation) VALUES ('jellyfin', 'maintenance', %s)", [FACT]
            )
    else:
        known(FACT)
    memory = Memory.objects.get()
    fill()
    fill(service="caddy")
    assert remember(Statement("maintenance", AGAIN, "jellyfin"), said()).memory_id == memory.pk
    # Only what the comparison needs is indexed; the rest is the worker's.
    assert set(Memory.objects.filter(pk__in=MemoryTermsDue.objects.values("memory_id")).values_list("service")) == {
        ("caddy",)
    }


def test_no_more_is_indexed_for_one_statement_than_its_limit(monkeypatch):
    monkeypatch.setattr(candidates, "UNINDEXED", 5)
    monkeypatch.setattr(candidates, "MOST_INDEXED", 25)
    fill()
    compared(FACT)
    assert MemoryTermsDue.objects.count() == SIZE - 25
    compared(FACT)
    assert MemoryTermsDue.objects.count() == SIZE - 50


def test_what_was_edited_is_found_by_its_new_text_before_the_index_has_it(model):
    fill()
    memory = known("The printer jams at noon")
    keyword_index.catch_up()
    Memory.objects.filter(pk=memory.pk).update(observation=FACT)
    assert memory.pk in compared(AGAIN)


def test_what_was_said_is_indexed_with_it(model):
    remember(Statement("maintenance", FACT, "jellyfin"), said())
    assert not MemoryTermsDue.objects.exists()


def test_in_a_scope_of_all_services_one_of_another_service_is_compared(model):
    fill(taxonomy="agent", category="pattern", agent="watcher", service="nginx")
    other = known(FACT, taxonomy="agent", category="pattern", agent="watcher", service="caddy")
    keyword_index.catch_up()
    by = Provenance("run", "agent:watcher", agent="watcher", at=NOW)
    assert other.pk in prepare(Statement("pattern", AGAIN, "jellyfin", "agent"), by).found


def test_nothing_of_another_scope_and_nothing_that_ended_is_compared(model, settle):
    fill()
    outside = [
        known(FACT, service="caddy"),
        known(FACT, category="timing"),
        known(FACT, agent="watcher", taxonomy="agent", category="context"),
        known(FACT, active=False, inactive_reason="expired"),
        known(FACT, verdict="hold"),
    ]
    embed()
    settle()
    assert not {memory.pk for memory in outside} & compared(FACT).keys()


def test_of_many_that_ended_the_few_that_did_not_are_all_compared(monkeypatch):
    monkeypatch.setattr(candidates, "FEW", 300)
    fill(active=False, inactive_reason="expired")
    left = [known(f"Rule {number} of the firewall drops port {number}") for number in range(10)]
    keyword_index.catch_up()
    assert compared("Subtitles vanish when two clients stream at once").keys() == {memory.pk for memory in left}


def test_a_common_word_brings_no_more_than_its_newest(model):
    fill()
    fact = known(FACT)
    keyword_index.catch_up()
    assert len(compared("The log of a worker at night")) <= 3 * candidates.CHOSEN
    assert fact.pk in compared(AGAIN)


def test_what_only_common_words_tell_apart_is_found_by_two_of_them():
    fact = known("The tunnel needs the printer")
    fill(40, text="The tunnel {} is of volume {}")
    fill(40, text="The printer {} is of volume {}")
    keyword_index.catch_up()
    assert fact.pk in compared("The printer is what the tunnel needs")


def statements(text):
    with CaptureQueriesContext(connection) as asked:
        found = remember(Statement("maintenance", text, "jellyfin"), said())
    return found.outcome, len(asked)


def test_a_bigger_scope_costs_no_more_statements(model):
    fill(60)
    embed()
    keyword_index.catch_up()
    statements("The first of all")  # what is kept afterwards is asked once
    few = [statements("Subtitles vanish when two clients stream"), statements(FACT), statements(AGAIN)]
    fill(900, first=60)
    embed()
    keyword_index.catch_up()
    statements("The second of all")
    Memory.objects.filter(observation=FACT).delete()
    many = [statements("Posters are missing after a scan of all"), statements(FACT), statements(AGAIN)]
    assert [outcome for outcome, _ in many] == ["created", "created", "reinforced"]
    # One more than in one way of search: of a scope of 60 nothing has to be looked for.
    assert all(after <= before + 4 for (_, before), (_, after) in zip(few, many, strict=True)), (few, many)


def test_no_statement_reads_a_table_through(model):
    fill(300)
    fact = known(FACT)
    embed()
    keyword_index.catch_up()
    with CaptureQueriesContext(connection) as asked:
        assert fact.pk in compared(FACT)
    plans = []
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # it reads a small table through, unless it is told not to
            cursor.execute("SET enable_seqscan = off")
        for one in asked:
            if "memories" not in one["sql"] or not one["sql"].startswith("SELECT"):
                continue
            prefix = "EXPLAIN " if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN "
            cursor.execute(prefix + one["sql"].replace("%", "%%"), [])
            plans.append((one["sql"], "\n".join(str(row[-1]) for row in cursor.fetchall())))
        if connection.vendor == "postgresql":
            cursor.execute("RESET enable_seqscan")
    same = [plan for sql, plan in plans if "LOWER(SUBSTR" in sql]
    assert len(same) == 1
    assert "memories_by_text" in same[0]
    through = re.compile(r"SCAN (memories|e|t)\b(?! USING)|Seq Scan on (memories|embeddings|memory_terms)\b")
    assert [plan for _, plan in plans if through.search(plan)] == []


NAMES = [f"{a}{b}" for a in ("disk", "proxy", "cert", "queue", "cache", "node") for b in ("er", "al", "um", "ix", "or")]
FORMS = (
    ("Restarting the {} clears the stale lock of the {}", "A restart of the {} clears the stale lock of the {}"),
    ("Must be started after the {} and the {}", "It must be started after the {} and the {}"),
    ("Sometimes {} crashes on first start of {}", "{} sometimes crashes on its first start of {}"),
    ("The backup of {} runs every night on {}", "Backup of {} runs every night on {}"),
)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("indexed", [True, False])
def test_a_restatement_that_a_look_at_the_whole_scope_finds_is_among_the_chosen(seed, indexed):
    """Exact: all texts of the scope, by the words they share and how rare those are in the scope."""
    chance = random.Random(seed)
    pairs = chance.sample([(form, one, other) for form in FORMS for one in NAMES for other in NAMES], 400)
    Memory.objects.bulk_create(
        Memory(
            category="maintenance",
            service=chance.choice(["jellyfin", "jellyfin", "caddy"]),
            observation=form[0].format(one, other),
        )
        for form, one, other in pairs
    )
    if indexed:
        keyword_index.catch_up()
    texts = dict(Memory.objects.filter(service="jellyfin").values_list("pk", "observation"))
    words = {pk: set(re.findall(r"\w+", text.lower())) for pk, text in texts.items()}
    count = Counter(word for held in words.values() for word in held)
    for form, one, other in chance.sample(pairs, 25):
        new = form[1].format(one, other)
        wanted = set(re.findall(r"\w+", new.lower()))
        score = {
            pk: sum(math.log(1 + len(texts) / count[word]) for word in wanted & held) for pk, held in words.items()
        }
        best = sorted(score, key=lambda pk: (-score[pk], pk))[: candidates.CHOSEN]
        same = {pk for pk in best if relation(texts[pk], new, about="jellyfin").kind is Kind.REINFORCES}
        assert same <= compared(new).keys()


AS_IF_BIG = "import memories.candidates; memories.candidates.FEW = 20"


@pytest.mark.parametrize("looked_through", ["by the indexes"], indirect=True)  # as it is: test_store_at_once.py
def test_two_processes_that_store_the_same_facts_in_a_big_scope_at_once_make_one_row_each(
    model, tmp_path, monkeypatch, settings
):
    fill()
    embed()
    keyword_index.catch_up()
    if model is not None:
        for name in ("EMBEDDINGS", "EMBEDDINGS_URL", "EMBEDDINGS_MODEL"):
            monkeypatch.setenv(f"CLAUDEOPS_{name}", getattr(settings, f"CLAUDEOPS_{name}"))
        assert environment()["CLAUDEOPS_EMBEDDINGS"] == "endpoint"
    texts = ("Must be started after the {} job is up", "Has to be started after the {} job is up")
    said = [
        (SessionFactory().pk, f'Statement("maintenance", {text!r}.format(f"scan{{number}}"), "jellyfin")')
        for text in texts
    ]
    pairs = zip(*remember_at_once(tmp_path, said, 15, setup=AS_IF_BIG), strict=True)
    assert [sorted(pair) for pair in pairs] == [["created", "reinforced"]] * 15
    assert Memory.objects.count() == SIZE + 15
