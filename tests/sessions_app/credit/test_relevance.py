"""The relevance of project memories, learned from the sessions that used them."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from memories.lifecycle import verbs
from memories.lifecycle.credit import Outcomes, base_rate, learned
from memories.models import Memory, MemoryChange
from sessions_app import tasks
from sessions_app.credit.outcome import adjust_relevance
from sessions_app.models import How, UsedMemory
from tests.support.factories import MemoryFactory, ProjectFactory, SessionFactory

OUTCOMES = st.integers(0, 500).flatmap(lambda n: st.builds(Outcomes, st.integers(0, n), st.just(n)))
BASES = st.floats(0.001, 1.0)


@given(OUTCOMES, BASES)
def test_a_score_is_between_0_and_1(one, base):
    assert 0.0 <= learned(one, base) <= 1.0


@given(BASES)
def test_without_evidence_it_is_neutral(base):
    assert learned(Outcomes(0, 0), base) == 0.5


@given(OUTCOMES, BASES)
def test_one_more_success_never_lowers_it_and_one_more_failure_never_raises_it(one, base):
    score = learned(one, base)
    assert learned(Outcomes(one.helped + 1, one.decided + 1), base) >= score
    assert learned(Outcomes(one.helped, one.decided + 1), base) <= score


@given(st.integers(1, 50), st.integers(1, 50))
def test_what_helps_as_often_as_the_others_is_neutral_however_often_it_was_used(helped, times):
    same = Outcomes(helped, helped + 3)
    base = base_rate([same] * times)
    assert learned(same, base) == pytest.approx(0.5, abs=1e-4)


def test_few_uses_are_shrunk():
    assert learned(Outcomes(1, 1), 0.5) == 0.6
    assert learned(Outcomes(20, 20), 0.5) == 0.9167
    assert learned(Outcomes(0, 1), 0.5) == 0.4
    assert base_rate([]) == base_rate([Outcomes(0, 0)]) == 0.0


def used(memory: Memory, *ends: bool | None) -> None:
    for helped in ends:
        UsedMemory.objects.create(session=SessionFactory(), memory_id=memory.pk, how=How.NAMED, helped=helped)


def a_memory(project, **fields) -> Memory:
    return MemoryFactory(project=project, taxonomy="project", category="pattern", service=None, **fields)


def score(memory: Memory) -> float | None:
    return Memory.objects.get(pk=memory.pk).relevance_score


@pytest.fixture
def project(db):
    return ProjectFactory(slug="importer")


def test_scores_are_written_with_a_change_each_and_a_second_time_changes_nothing(project):
    good, bad, unknown, ops = (*(a_memory(project) for _ in range(3)), MemoryFactory(project=project))
    used(good, True, True)
    used(bad, False, False, None)
    used(ops, True)
    used(unknown, None)
    adjust_relevance(project)
    assert (score(good), score(bad), score(unknown), score(ops)) == (0.6667, 0.3333, None, None)
    assert {change.memory_id: change.after for change in MemoryChange.objects.all()} == {
        good.pk: {"relevance_score": 0.6667},
        bad.pk: {"relevance_score": 0.3333},
    }
    adjust_relevance(project)
    assert MemoryChange.objects.count() == 2
    used(good, False)
    adjust_relevance(project)
    assert score(good) < 0.6667


def test_a_score_that_a_person_set_stays_unless_all_are_asked_for(project):
    mine, put = a_memory(project), a_memory(project, relevance_score=0.9)
    used(mine, True)
    used(put, True, False)
    adjust_relevance(project)
    verbs.edit(mine, by="ann", relevance_score=0.1)
    adjust_relevance(project)
    assert (score(mine), score(put)) == (0.1, 0.9)
    adjust_relevance(project, also_set=True)
    assert 0.1 != score(mine) is not None
    assert score(put) != 0.9


def test_a_dry_run_writes_nothing_and_prints_the_table(project):
    memory = a_memory(project)
    used(memory, True, False)
    out = StringIO()
    call_command("memory", "adjust-relevance", "--project", "importer", "--dry-run", stdout=out)
    assert f"importer  {memory.pk}" in out.getvalue()
    assert "1 of 2" in out.getvalue()
    assert "Nothing was written" in out.getvalue()
    assert score(memory) is None


def test_nothing_to_learn_says_so(project):
    used(a_memory(project), False)
    out = StringIO()
    call_command("memory", "adjust-relevance", stdout=out)
    assert "importer: nothing to learn" in out.getvalue()


def test_the_command_as_json_and_for_a_project_that_there_is_not(project):
    memory = a_memory(project)
    used(memory, True)
    out = StringIO()
    call_command("memory", "adjust-relevance", "--json", stdout=out)
    assert json.loads(out.getvalue())["result"] == [
        {
            "project": "importer",
            "base": 1.0,
            "adjustments": [
                {
                    "memory_id": memory.pk,
                    "outcomes": {"helped": 1, "decided": 1},
                    "before": None,
                    "after": 0.5,
                    "kept": False,
                }
            ],
        }
    ]
    with pytest.raises((SystemExit, CommandError)):
        call_command("memory", "adjust-relevance", "--project", "nobody", stderr=StringIO())


def test_the_weekly_task_learns_when_the_setting_says_so(project, settings):
    memory = a_memory(project)
    used(memory, True)
    tasks.adjust_relevance()
    assert score(memory) is None
    settings.CLAUDEOPS_ADJUST_RELEVANCE = True
    tasks.adjust_relevance()
    assert score(memory) == 0.5


def test_as_many_queries_for_20_memories_as_for_10(project):
    counts = []
    for _ in range(2):
        for _ in range(10):
            used(a_memory(project), True)
        with CaptureQueriesContext(connection) as captured:
            adjust_relevance(project, also_set=True)
        counts.append(len(captured))
        MemoryChange.objects.all().delete()
        Memory.objects.update(relevance_score=None)
    assert counts[0] == counts[1]
