"""The selection of a project's memories: which may be in a prompt, in which order, and what the receipt says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.injection import tag_index
from memories.injection.project import select
from memories.injection.tags import Subject
from memories.models import Memory, ProjectTag
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db
AT = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def project():
    return ProjectFactory(slug="shop")


def known(project, observation, **fields):
    values = {"taxonomy": "project", "service": None, "category": "pattern", "confidence": 0.8, "created_at": AT}
    return MemoryFactory(project=project, observation=observation, **{**values, **fields})


def said(selection):
    return [entry["observation"] for entry in selection.included]


def why(selection):
    return {entry["observation"]: entry["reason"] for entry in selection.left_out}


def test_only_what_is_active_not_expired_allowed_and_sure_enough_of_this_project_is_chosen(project):
    known(project, "good")
    known(project, "expired", expires_at=AT)
    known(project, "still lasting", expires_at=AT + timedelta(seconds=1), confidence=0.7)
    known(project, "doubtful", confidence=0.29)
    known(project, "inactive", active=False)
    known(project, "held", verdict="hold", verdict_reason="looks like an order")
    known(ProjectFactory(), "of another project")
    known(project, "ops memory", taxonomy="ops", category="timing")
    selection = select(project, Subject(), at=AT)
    assert said(selection) == ["good", "still lasting"]
    none = {"unconfirmed": 0, "matched": 0, "no_room": 0, "outside_window": 0}
    ineligible = {"expired": 1, "below_threshold": 1, "inactive": 1, "held": 1}
    assert selection.counts == {"eligible": 2, "included": 2, **ineligible, **none}
    assert why(selection) == {
        "expired": "expired",
        "doubtful": "confidence 0.29 is below 0.3",
        "inactive": "inactive",
        "": "held for review: looks like an order",
    }


def test_memories_of_all_projects_are_chosen_with_those_of_the_project_by_one_order(project):
    known(project, "own", confidence=0.8)
    known(None, "of all", confidence=0.9)
    known(None, "of all, for the task", confidence=0.4, tags=["auth", "src/**"])
    known(None, "of all, inactive", active=False)
    selection = select(project, Subject("Fix auth"), at=AT)
    assert said(selection) == ["of all, for the task", "of all", "own"]
    assert (selection.counts["eligible"], selection.counts["matched"]) == (3, 1)
    assert select(None, Subject("Fix auth"), at=AT).text == ""


def test_what_waits_for_its_confirmation_is_kept_back(project, settings):
    settings.CLAUDEOPS_TRUST = "guarded"
    known(project, "provisional", provisional="a command")
    selection = select(project, Subject(), at=AT)
    assert said(selection) == []
    assert selection.text == ""
    assert selection.counts["unconfirmed"] == 1
    assert why(selection)["provisional"].startswith("unconfirmed: ")


def test_a_memory_whose_tag_matches_comes_before_a_surer_one(project):
    known(project, "sure", confidence=1.0)
    known(project, "for a path", confidence=0.4, tags=["src/core/**"])
    known(project, "for a word", confidence=0.5, tags=["Auth"])
    known(project, "for several words", confidence=0.6, tags=["error handling"])
    known(project, "for another path", tags=["docs/**"])
    selection = select(project, Subject("Fix auth: error handling", ("src/core/login.py",)), at=AT)
    assert said(selection) == ["for several words", "for a word", "for a path", "sure", "for another path"]
    assert selection.included[1]["score"]["matched"] == ["Auth"]
    assert selection.included[1]["reason"] == "its tags match the task: Auth"
    assert selection.included[3]["reason"] == "by confidence × relevance: 1.00 × 0.50"
    assert selection.counts["matched"] == 3


def test_confidence_times_relevance_orders_and_a_missing_relevance_counts_as_a_half(project):
    known(project, "unknown", confidence=0.8)
    known(project, "helps", confidence=0.5, relevance_score=1.0)
    known(project, "useless", confidence=1.0, relevance_score=0.1)
    assert said(select(project, Subject(), at=AT)) == ["helps", "unknown", "useless"]


def test_limit_and_budget_of_the_project_hold_and_the_first_left_out_are_named(project):
    for number in range(40):
        known(project, f"memory {number:02}")
    project.memories_in_prompt = 3
    selection = select(project, Subject(), at=AT)
    assert said(selection) == ["memory 00", "memory 01", "memory 02"]
    assert selection.counts["no_room"] == 37
    assert len(selection.left_out) == 20
    assert why(selection)["memory 03"] == "the limit of 3 memories in a prompt is reached"
    project.memory_budget = 0
    selection = select(project, Subject(), at=AT)
    assert (selection.text, selection.tokens, said(selection)) == ("", 0, [])
    assert why(selection)["memory 00"] == "the budget of 0 tokens is full"


def test_without_a_project_nothing_is_chosen_and_nothing_recorded():
    selection = select(None, Subject("auth"), at=AT)
    assert (selection.text, selection.record, list(selection.included)) == ("", {}, [])


def test_a_tag_that_many_memories_have_is_found_in_the_order_of_the_rank(project, monkeypatch):
    monkeypatch.setattr("memories.injection.project.FEW", 5)
    for number in range(12):
        known(project, f"memory {number:02}", tags=["auth"], confidence=0.4 + number / 100)
    known(project, "sure", confidence=1.0)
    selection = select(project, Subject("auth"), at=AT)
    assert said(selection)[:3] == ["memory 11", "memory 10", "memory 09"]
    assert len(said(selection)) == 10


def test_the_tags_of_a_project_follow_its_memories_whoever_writes_them(project):
    memory = known(project, "one", tags=["Auth", "src/**", "auth", 7, "x" * 201])
    rows = ProjectTag.objects.order_by("kind", "tag").values_list("kind", "tag", "memory_id", "project_id")
    assert list(rows) == [(0, "auth", memory.pk, project.pk), (1, "src/**", memory.pk, project.pk)]
    Memory.objects.filter(pk=memory.pk).update(tags=["Näher"])
    assert [row[:2] for row in rows.all()] == [(1, "Näher")]
    Memory.objects.filter(pk=memory.pk).update(project=None)
    assert [row[3] for row in rows.all()] == [tag_index.ALL_PROJECTS]
    Memory.objects.filter(pk=memory.pk).update(project=project)
    assert len(rows.all()) == 1
    Memory.objects.filter(pk=memory.pk).delete()
    assert not rows.all()


def test_triggers_that_were_lost_are_made_again_and_the_tags_read_anew(project):
    with connection.cursor() as cursor:
        for name in tag_index.NAMES:
            cursor.execute(f"DROP TRIGGER {name}" + " ON memories" * (connection.vendor == "postgresql"))
    known(project, "one", tags=["auth"])
    assert not ProjectTag.objects.exists()
    tag_index.keep(connection)
    assert ProjectTag.objects.get().tag == "auth"
    known(project, "two", tags=["auth"])
    assert ProjectTag.objects.count() == 2


def test_the_number_of_queries_does_not_grow_with_the_memories(project):
    def queries():
        with CaptureQueriesContext(connection) as found:
            select(project, Subject("auth", ("src/x.py",)), at=AT)
        return len(found)

    for number in range(10):
        known(project, f"memory {number}", tags=["auth"])
    few = queries()
    for number in range(10):
        known(project, f"more {number}", tags=["auth", "src/**"])
    assert queries() == few <= 14


def test_the_best_are_read_in_the_order_of_an_index_and_counted_from_indexes(project):
    known(project, "one", tags=["auth"])
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for way in ("seqscan", "sort", "bitmapscan"):
                cursor.execute(f"SET LOCAL enable_{way} = off")
    with CaptureQueriesContext(connection) as found:
        select(project, Subject("auth"), at=AT)
    plans = []
    with connection.cursor() as cursor:
        for query in found.captured_queries:
            explain = "EXPLAIN " if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN "
            cursor.execute(explain + query["sql"].replace("%", "%%"))
            plans.append((query["sql"], "\n".join(str(row[-1]) for row in cursor.fetchall())))
    best = [(sql, plan) for sql, plan in plans if "ORDER BY (confidence" in sql]
    assert len(best) == 4
    for sql, plan in best:
        if connection.vendor == "postgresql" and "project_id IS NULL" in sql:
            continue  # of a handful of rows any index will do; with many its statistics decide
        assert "memories_project_rank" in plan, plan
        assert "TEMP B-TREE" not in plan, plan
        assert "Sort" not in plan, plan
    counts = [plan for sql, plan in plans if "count(*)" in sql]
    wanted = ["memories_project_rank", "memories_project_rank", "memories_of_project"]
    named = [name in plan for name, plan in zip(wanted, counts, strict=True)]
    assert named[::2] == [True, True], counts
    assert named[1] or connection.vendor == "postgresql", counts
    tags = [plan for sql, plan in plans if "project_tags" in sql]
    assert all("project_tags_by_tag" in plan for plan in tags), tags
