"""The lists of the dashboard are read through indexes, in their order: asked of the database's own planner.

A small table tells a planner nothing, so PostgreSQL is forbidden what it would do with one (read it all, sort it): what
it cannot do otherwise it still does, and that is what fails here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.db.models import OuterRef
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from claudeops.features.overview import agents, changes
from claudeops.lib.capped import CappedCount
from claudeops.lib.list_view.keyset import Place, beyond, ordered
from memories.access import Access, memories_of
from memories.models import Memory, MemoryChange, Project
from memories.queries import list as listing
from memories.queries import project_memories
from memories.queries.filters import MemoryChangeFilterSet, MemoryFilterSet
from memories.queries.numbers import ends_in_parts, next_end_of, next_of
from memories.web.change_list import ChangeList
from sessions_app.cooldowns import history
from sessions_app.credit.facts import counts_of
from sessions_app.models import Event, Session
from sessions_app.queries.filters import EventFilterSet, EventListFilterSet, SessionFilterSet
from sessions_app.web.events import EventList
from sessions_app.web.sessions import SessionList
from tests.support.factories import AgentFactory, CooldownActionFactory, ProjectFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_way_around():
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for way in ("seqscan", "sort", "bitmapscan"):
                cursor.execute(f"SET LOCAL enable_{way} = off")


def plan_of(rows) -> str:
    return rows.explain()


def assert_served(plan: str, table: str) -> None:
    """By an index, and without sorting all that match. (Of rows with the same time a few may be put in order.)"""
    assert "ndex" in plan.replace("INDEX", "Index"), plan
    if connection.vendor == "postgresql":
        assert f"Seq Scan on {table}" not in plan, plan
        assert not re.search(r"(?:^|->  )Sort  \(", plan, re.MULTILINE), plan
    else:
        read = [line for line in plan.splitlines() if f"SCAN {table}" in line]
        assert all("USING" in line for line in read), plan
        assert "USE TEMP B-TREE FOR ORDER BY" not in plan, plan


INDEXED = sorted(listing.SORTS.keys() - {"-risk"})
"""The order by risk is for the few that wait for a person."""


@pytest.mark.parametrize("sort", INDEXED)
@pytest.mark.parametrize("backwards", [False, True])
def test_every_order_of_the_memories_has_its_index(sort, backwards):
    rows = ordered(listing.listed(Memory.objects.all()), listing.SORTS[sort], backwards=backwards)
    assert_served(plan_of(rows[:51]), "memories")


@pytest.mark.parametrize("sort", INDEXED)
def test_a_further_page_of_the_memories_is_jumped_to(sort):
    order = listing.SORTS[sort]
    values = {"updated_at": timezone.now(), "confidence": 0.7, "service": "jellyfin"}
    value = (values | {"fades_at": 1_800_000_000, "told_count": 3})[order.column]
    rows = beyond(Memory.objects.all(), order, Place(value, 7))
    assert_served(plan_of(ordered(listing.listed(rows), order)[:51]), "memories")


@pytest.mark.parametrize(
    "asked",
    [
        *({"category": "timing"}, {"taxonomy": "ops"}, {"source": "human"}),
        *({"status": "held"}, {"status": "unconfirmed"}, {"status": "inactive"}, {"status": "active"}),
    ],
    ids=str,
)
def test_what_many_memories_share_narrows_the_list_in_its_first_order(asked):
    rows = MemoryFilterSet(asked, queryset=Memory.objects.all()).qs
    assert_served(plan_of(ordered(listing.listed(rows), listing.SORTS[listing.FIRST])[:51]), "memories")


@pytest.mark.parametrize("active", [True, False, None])
@pytest.mark.parametrize("scopes", [("read",), ("read", "review")], ids=str)
def test_the_total_and_the_ids_of_a_projects_memories_come_from_one_index_alone(active, scopes):
    project = ProjectFactory()
    rows = memories_of(Access("x", frozenset(scopes)), project)
    rows = project_memories.narrowed(rows, project.pk, active=active, category="warning")
    for plan in (
        plan_of(rows.order_by().values("pk")),
        plan_of(rows.order_by("-pk").values("pk")[1000:1050]),
        plan_of(rows.order_by("pk").values("pk")[1000:1050]),
    ):
        assert_served(plan, "memories")
        if connection.vendor == "sqlite":
            assert "COVERING INDEX memories_of_project" in plan, plan


def test_the_memories_of_a_project_with_a_tag_are_found_by_the_index_of_tags():
    project = ProjectFactory()
    rows = memories_of(Access("x", frozenset({"read"})), project)
    plan = plan_of(project_memories.narrowed(rows, project.pk, tags=["ci"]).order_by().values("pk"))
    assert "project_tags_by_tag" in plan or (connection.vendor == "postgresql" and "project_tags" in plan)
    assert "json_each" not in plan  # of an empty table PostgreSQL takes any index, by its statistics


@pytest.mark.parametrize("asked", [{"fades": "<14d"}, {"fades": "3d..10d"}], ids=str)
def test_what_fades_soon_is_a_range_of_an_index(asked):
    rows = MemoryFilterSet(asked, queryset=Memory.objects.all()).qs
    plan = plan_of(ordered(listing.listed(rows), listing.SORTS["fades"])[:51])
    assert_served(plan, "memories")
    assert "memories_by_fading" in plan


@pytest.mark.parametrize(
    "asked",
    [
        *({}, {"status": "failed"}, {"tier": "3"}, {"agent": "watch"}, {"trigger": "alert"}, {"project": "none"}),
        {"since": "2026-01-01T00:00"},
    ],
    ids=str,
)
def test_every_filter_of_the_sessions_has_its_index(asked):
    AgentFactory(slug="watch")
    rows = SessionFilterSet(asked, queryset=Session.objects.all()).qs
    assert_served(plan_of(ordered(rows, SessionList.sorts["-queued"])[:51]), "sessions")


@pytest.mark.parametrize("sort", list(SessionList.sorts))
def test_every_order_of_the_sessions_has_its_index(sort):
    assert_served(plan_of(ordered(Session.objects.all(), SessionList.sorts[sort])[:51]), "sessions")


@pytest.mark.parametrize(
    "asked",
    [
        *({}, {"level": "critical"}, {"service": "jellyfin"}, {"service": "general"}, {"age": "week"}),
        *({"level": "critical", "service": "jellyfin"}, {"level": "warning", "age": "day"}),
        *(
            {"text": "slow"},
            {"text": "slow", "level": "warning"},
            {"open": "yes"},
            {"open": "yes", "level": "critical"},
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("sort", list(EventList.sorts))
def test_every_filter_of_the_events_has_its_index(asked, sort):
    rows = EventListFilterSet(asked, queryset=Event.objects.all()).qs
    assert_served(plan_of(ordered(rows, EventList.sorts[sort])[:51]), "events")


@pytest.mark.parametrize(
    "asked",
    [
        *({}, {"kind": "learned"}, {"kind": "confirmed"}, {"kind": "contradicted"}, {"kind": "faded"}),
        *({"kind": "faded", "during": "24h"}, {"by": "people"}, {"by": "sessions"}, {"by": "operator"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("sort", list(ChangeList.sorts))
def test_every_view_of_the_changes_of_memories_has_its_index(asked, sort):
    rows = MemoryChangeFilterSet(asked, queryset=MemoryChange.objects.all()).qs
    plan = plan_of(ordered(rows, ChangeList.sorts[sort])[:51])
    assert_served(plan, "memory_changes")
    index = {"learned": "listed", "faded": "listed", "confirmed": "listed", "contradicted": "listed"}.get(
        asked.get("kind", ""), {"people": "by_people", "sessions": "said", "operator": "said"}.get(asked.get("by", ""))
    )
    assert f"memory_changes_{index or 'at'}" in plan, plan


@pytest.mark.parametrize(
    ("filters", "model", "table", "asked"),
    [
        (SessionFilterSet, Session, "sessions", {"status": "failed"}),
        (EventFilterSet, Event, "events", {}),
        (EventFilterSet, Event, "events", {"level": "critical", "service": "jellyfin"}),
        (MemoryFilterSet, Memory, "memories", {}),
        (MemoryFilterSet, Memory, "memories", {"status": "inactive"}),
    ],
    ids=str,
)
def test_counting_reads_an_index_and_no_rows(filters, model, table, asked):
    plan = plan_of(filters(asked, queryset=model.objects.all()).qs.order_by().values("pk")[:10_001])
    assert_served(plan, table)
    if connection.vendor == "sqlite":  # PostgreSQL decides by what is known to be visible to all
        assert "COVERING INDEX" in plan, plan


def test_the_cooldowns_of_all_services_are_found_from_service_to_service():
    CooldownActionFactory()
    with CaptureQueriesContext(connection) as asked:
        history.services(history.acted_on())
    own = [query["sql"] for query in asked if "found.service" in query["sql"] or "newest" in query["sql"]]
    assert len(own) == 2
    for sql in own:
        explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
        with connection.cursor() as cursor:
            cursor.execute(f"{explain} {sql}")
            plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
        assert "cooldown_actions_newest" in plan, plan
        assert "Seq Scan on cooldown_actions" not in plan, plan


def plans(asked: CaptureQueriesContext, *tables: str) -> Iterator[str]:
    """How the database would answer each of the questions that were asked of these tables."""
    explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    questions = [query["sql"] for query in asked if any(f'FROM "{table}"' in query["sql"] for table in tables)]
    for sql in questions:
        with connection.cursor() as cursor:
            cursor.execute(f"{explain} {sql}")
            yield "\n".join(str(row[-1]) for row in cursor.fetchall())


def test_the_overview_counts_and_lists_through_indexes():
    if connection.vendor == "postgresql":  # an OR of two columns reads two indexes, which only a bitmap can combine
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_bitmapscan = on")
    AgentFactory(schedule_kind="interval", next_run_at=timezone.now())
    tables = ("sessions", "memories", "events", "memory_changes")
    with CaptureQueriesContext(connection) as asked:
        changes.snapshot()
    found = list(plans(asked, *tables))
    assert len(found) > 10
    for plan in found:
        for table in tables:
            assert f"Seq Scan on {table}" not in plan, plan
            assert all("USING" in line for line in plan.splitlines() if f"SCAN {table}" in line), plan


def test_what_waits_of_a_schedule_is_found_among_what_waits():
    """Asked for by agent or trigger, SQLite reads all that those ever started."""
    AgentFactory(schedule_kind="interval", next_run_at=timezone.now())
    with CaptureQueriesContext(connection) as asked:
        agents.read(timezone.now(), Decimal(0))
    (sql,) = (query["sql"] for query in asked if query["sql"].endswith(f"LIMIT {agents.QUEUE_READ}"))
    assert 'agent_id" IN' not in sql
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            assert any("sessions_status" in row[-1] for row in cursor.fetchall())


def test_the_memories_of_a_project_are_read_in_the_order_in_which_they_end():
    rows = Memory.objects.filter(project=5)
    for key in ("fades", "-fades"):
        plan = plan_of(ordered(rows, listing.SORTS[key])[:51])
        assert_served(plan, "memories")
        assert "memories_project" in plan, plan


def test_what_ends_in_each_part_of_a_span_is_one_range_of_an_index():
    project = ProjectFactory()
    with CaptureQueriesContext(connection) as captured:
        ends_in_parts([project.pk], timezone.now(), timedelta(days=1), 3)
    (query,) = captured.captured_queries
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
            plan = "\n".join(row[-1] for row in cursor.fetchall())
        assert "memories_project (project_id=? AND <expr>>? AND <expr><?)" in plan, plan
        assert "TEMP B-TREE" not in plan, plan


def test_the_uses_of_memories_are_counted_in_an_index_alone():
    with CaptureQueriesContext(connection) as captured:
        counts_of([1, 2, 3])
    (query,) = captured.captured_queries
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
            plan = "\n".join(row[-1] for row in cursor.fetchall())
        assert "COVERING INDEX used_memories_counted" in plan, plan


def test_the_list_of_projects_reads_one_range_of_an_index_for_each_number():
    own = OuterRef("pk")
    active = Memory.objects.filter(project=own, active=True)
    sessions = Session.objects.filter(project=own)
    for number in (next_of(own), next_end_of(own), CappedCount(active, 1000)):
        plan = plan_of(Project.objects.annotate(number=number).order_by())
        assert "memories_project" in plan, plan
    plan = plan_of(Project.objects.annotate(number=CappedCount(sessions, 1000)).order_by())
    assert "sessions_" in plan, plan
    assert "SCAN sessions" not in plan, plan
