"""Memories with a window of time in prompts: `memories/injection/windows.py`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.inbox.kinds import next_prompt
from memories.injection import ops
from memories.injection.block import lines_of
from memories.injection.project import select
from memories.injection.relevant import Task
from memories.injection.tags import Subject
from memories.injection.windows import shut, timed, upcoming, usable, with_window
from memories.models.memory import ANY_AGENT, ANY_PROJECT
from memories.recall import Filters, recall
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db

MONDAY = datetime(2026, 12, 7, 9, 0, tzinfo=UTC)  # the first one of its month
TUESDAY = MONDAY + timedelta(days=1)
CERTIFICATE = "The certificate of vault renews"


def memory(observation=CERTIFICATE, **fields):
    fields = {"service": "vault", "updated_at": MONDAY - timedelta(days=1), "surface": "first monday", **fields}
    return MemoryFactory(observation=observation, **fields)


def told(injection):
    return [(entry["observation"], entry["reason"]) for entry in injection.included]


def test_within_its_window_a_memory_comes_before_those_of_higher_confidence():
    memory(confidence=0.4)
    memory("Takes 60 s to start", confidence=1.0, surface="")
    assert told(ops.build(budget=2000, at=MONDAY)) == [
        (CERTIFICATE, "in its window “first monday” until 2026-12-08 00:00 UTC"),
        ("Takes 60 s to start", ""),
    ]


def test_outside_its_window_it_is_not_told_and_the_receipt_says_when_it_will_be():
    memory(confidence=1.0)
    memory("Takes 60 s to start", confidence=0.5, surface="")
    injection = ops.build(budget=2000, at=TUESDAY)
    why = "outside its window “first monday”, which opens 2027-01-04 00:00 UTC"
    assert told(injection) == [("Takes 60 s to start", "")]
    assert [(entry["observation"], entry["reason"]) for entry in injection.left_out] == [(CERTIFICATE, why)]
    assert injection.counts["outside_window"] == 1
    assert (injection.counts["eligible"], injection.counts["over_budget"]) == (1, 0)
    assert "(1 memory, " in injection.text
    assert [row.reason for row in ops.explain(budget=2000, at=TUESDAY)][1] == why


def test_outside_its_window_a_task_does_not_bring_it_but_recall_finds_it():
    found = memory(confidence=1.0)
    assert ops.build(budget=2000, at=TUESDAY, task=Task("certificate of vault")).included == []
    assert [hit.memory_id for hit in recall("certificate of vault", Filters()).hits] == [found.pk]


def test_a_memory_in_its_window_is_none_of_the_task():
    memory()
    injection = ops.build(budget=2000, at=MONDAY, task=Task("certificate of vault"))
    assert told(injection)[0][1].startswith("in its window")
    assert not any(line.for_task for line in lines_of(injection.text, injection.included))


def test_the_budget_holds_and_nothing_of_lower_rank_takes_the_place_of_one_in_its_window():
    for number in range(30):
        memory(f"{number:02d} " + "x" * 300, confidence=0.5)
    memory("short", confidence=1.0, surface="")
    injection = ops.build(budget=300, at=MONDAY)
    assert injection.tokens <= 300
    assert 0 < len(injection.included) < 5
    assert all(reason.startswith("in its window") for _, reason in told(injection))
    assert {entry["reason"] for entry in injection.left_out} == {ops.over_budget(300)}
    assert len(injection.left_out) == injection.counts["over_budget"] == 31 - len(injection.included)


@pytest.mark.parametrize(
    "fields",
    [
        {"active": False},
        {"verdict": "hold"},
        {"confidence": 0.2},
        {"provisional": "its rules"},
    ],
)
def test_a_window_opens_no_prompt_to_what_may_not_be_in_one(fields, settings):
    settings.CLAUDEOPS_TRUST = "guarded"
    memory(**{"confidence": 0.9, **fields})
    assert ops.build(budget=2000, at=MONDAY).included == []
    assert timed(ANY_PROJECT, ANY_AGENT, MONDAY) == []


def test_a_window_that_cannot_be_read_is_shut_and_says_so():
    memory(surface="whenever")
    injection = ops.build(budget=2000, at=MONDAY)
    assert injection.included == []
    assert injection.left_out[0]["reason"] == "its window “whenever” cannot be read"


def test_a_decision_in_the_inbox_is_previewed_with_its_window():
    held = memory(verdict="hold", surface="mon")
    assert CERTIFICATE in ops.build(budget=2000, as_if=ops.AsIf((held,)), at=MONDAY).text
    assert ops.build(budget=2000, as_if=ops.AsIf((held,)), at=TUESDAY).text == ""


def test_what_surfaces_is_that_of_its_project_and_of_all():
    shop, other = ProjectFactory(slug="shop"), ProjectFactory(slug="other")
    of_all = memory(confidence=0.5)
    own = memory("Its own", project=shop, confidence=0.9)
    memory("Another's", project=other)
    assert timed(shop.pk, None, MONDAY) == [own, of_all]
    assert timed(shop.pk, None, TUESDAY) == []
    assert shut(MONDAY) == frozenset()
    assert len(shut(TUESDAY)) == 3


def test_a_projects_memory_in_its_window_comes_first_and_outside_it_not_at_all():
    shop = ProjectFactory(slug="shop")
    of_shop = {"project": shop, "taxonomy": "project", "category": "pattern", "service": None}
    memory(**of_shop, confidence=0.4)
    memory("Known always", **of_shop, confidence=1.0, surface="")
    now, later = select(shop, Subject(), at=MONDAY), select(shop, Subject(), at=TUESDAY)
    assert [entry["observation"] for entry in now.included] == [CERTIFICATE, "Known always"]
    assert now.included[0]["reason"] == "in its window “first monday” until 2026-12-08 00:00 UTC"
    assert [entry["observation"] for entry in later.included] == ["Known always"]
    assert [entry["reason"][:18] for entry in later.left_out] == ["outside its window"]
    assert (later.counts["outside_window"], later.counts["eligible"], later.counts["no_room"]) == (1, 1, 0)


def test_what_surfaces_next_is_in_the_order_of_time():
    for surface in ("first monday", "mon", "2026-12-01", "2027-02-01", "tue 08:00-10:00"):
        memory(surface, surface=surface)
    found = upcoming(usable(ANY_PROJECT, ANY_AGENT), MONDAY, days=30)
    assert [(one.memory.surface, one.is_open) for one in found] == [
        ("first monday", True),
        ("mon", True),
        ("tue 08:00-10:00", False),
    ]


def test_two_queries_read_all_windows_and_one_finds_that_there_are_none():
    def queries():
        with CaptureQueriesContext(connection) as captured:
            timed(ANY_PROJECT, ANY_AGENT, MONDAY)
        return len(captured)

    assert queries() == 1
    for _ in range(10):
        memory()
    few = queries()
    for _ in range(10):
        memory()
    assert few == queries() == 2


def test_the_windows_are_found_by_their_index():
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
    assert "memories_surface" in with_window().values_list("pk").explain()


def test_the_inbox_says_that_a_memory_is_outside_its_window():
    yesterday = (timezone.now() - timedelta(days=1)).date()
    held = memory(verdict="hold", surface=f"{yesterday}")
    assert next_prompt(held).why_not == f"It is outside its window “{yesterday}”, which opens no more."
    assert next_prompt(memory("Told now", verdict="hold", surface=f"{timezone.now().date()}")).why_not == ""
