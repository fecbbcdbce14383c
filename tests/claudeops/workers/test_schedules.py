"""The declared schedules in django-q2's table: `sync_schedules` and what it leaves alone."""

from __future__ import annotations

import ast
import json
import pydoc
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django_q.models import Schedule
from hypothesis import given
from hypothesis import strategies as st

from claudeops.workers import schedules
from claudeops.workers.schedules import Declared, Synced, declared, sync_schedules

ALL = (
    "tick",
    "reap",
    "observe",
    "memory_files",
    "agent_files",
    "transcripts",
    "task_items",
    "journal",
    "summaries",
    "prune",
    "relevance",
    "sweep",
    "judge",
    "reflect",
    "triage",
    "embed",
    "recall",
    "maintain",
    "export",
    "backup",
    "purges",
)
AT = datetime(2026, 3, 10, 12, 34, 56, tzinfo=UTC)


def rows() -> list[dict[str, object]]:
    return list(Schedule.objects.order_by("id").values())


def test_what_is_declared_can_be_called(subtests):
    for schedule in declared():
        with subtests.test(str(schedule)):
            assert callable(pydoc.locate(schedule.func))


def test_what_runs_each_minute_hour_day_and_week():
    assert {schedule.name: schedule.minutes for schedule in declared()} == {
        "claudeops:tick": 1,
        "claudeops:reap": 1,
        "claudeops:observe": 1,
        "claudeops:memory_files": 1,
        "claudeops:export": 1,
        "claudeops:agent_files": 5,
        "claudeops:transcripts": 5,
        "claudeops:task_items": 5,
        "claudeops:embed": 1,
        "claudeops:recall": 1,
        "claudeops:maintain": 1,
        "claudeops:sweep": 60,
        "claudeops:judge": 60,
        "claudeops:reflect": 60,
        "claudeops:triage": 30,
        "claudeops:journal": 60,
        "claudeops:backup": 60,  # which makes one a day
        "claudeops:purges": 15,
        "claudeops:summaries": 24 * 60,
        "claudeops:prune": 24 * 60,
        "claudeops:relevance": 7 * 24 * 60,
    }


@given(
    at=st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    minutes=st.integers(1, 30_000),
    offset=st.integers(0, 1440),
)
def test_a_first_run_is_the_next_point_of_the_grid(at, minutes, offset):
    first = Declared("claudeops:x", "x", minutes, offset).first_run(at)
    assert timedelta(0) < first - at <= timedelta(minutes=minutes)
    since = first - datetime(1970, 1, 1, tzinfo=UTC) - timedelta(minutes=offset)
    assert since % timedelta(minutes=minutes) == timedelta(0)


@pytest.mark.django_db
class TestSync:
    def test_what_is_declared_is_created_with_its_first_time(self):
        assert sync_schedules(AT) == Synced(created=ALL)
        sweep = Schedule.objects.get(name="claudeops:sweep")
        assert (sweep.func, sweep.schedule_type, sweep.minutes, sweep.cluster, sweep.repeats) == (
            "memories.tasks.sweep",
            Schedule.MINUTES,
            60,
            None,
            -1,
        )
        assert sweep.next_run == datetime(2026, 3, 10, 13, 7, tzinfo=UTC)
        assert Schedule.objects.get(name="claudeops:prune").next_run == datetime(2026, 3, 11, 3, 20, tzinfo=UTC)

    def test_a_schedule_may_have_a_time_limit_of_its_own(self):
        sync_schedules(AT)
        options = ast.literal_eval(Schedule.objects.get(name="claudeops:backup").kwargs)
        assert options == {"q_options": {"timeout": 4 * 3600}}

    def test_again_it_changes_nothing(self):
        sync_schedules(AT)
        before = rows()
        assert not sync_schedules(AT + timedelta(days=3))
        assert rows() == before

    def test_another_rhythm_moves_the_next_run_of_that_one_alone(self):
        sync_schedules(AT)
        Schedule.objects.update(next_run=AT - timedelta(days=9))
        Schedule.objects.filter(name="claudeops:sweep").update(minutes=5)
        assert sync_schedules(AT) == Synced(changed=("sweep",))
        times = dict(Schedule.objects.values_list("name", "next_run"))
        assert times.pop("claudeops:sweep") == datetime(2026, 3, 10, 13, 7, tzinfo=UTC)
        assert set(times.values()) == {AT - timedelta(days=9)}

    def test_a_clock_that_was_set_back_leaves_no_schedule_waiting_for_hours(self):
        sync_schedules(AT + timedelta(hours=5))
        assert "tick" in sync_schedules(AT).changed
        assert Schedule.objects.get(name="claudeops:tick").next_run <= AT + timedelta(minutes=1)

    def test_another_function_leaves_the_next_run_where_it_is(self):
        sync_schedules(AT)
        Schedule.objects.filter(name="claudeops:sweep").update(func="old.name", next_run=AT)
        assert sync_schedules(AT) == Synced(changed=("sweep",))
        sweep = Schedule.objects.get(name="claudeops:sweep")
        assert (sweep.func, sweep.next_run) == ("memories.tasks.sweep", AT)

    @pytest.mark.parametrize("broken", [{"repeats": 0}, {"next_run": None}, {"cluster": "sessions"}, {"kwargs": "a=1"}])
    def test_what_somebody_broke_is_mended(self, broken):
        sync_schedules(AT)
        Schedule.objects.filter(name="claudeops:tick").update(**broken)
        assert sync_schedules(AT) == Synced(changed=("tick",))
        assert not sync_schedules(AT)

    def test_a_double_is_removed_and_the_first_one_kept(self):
        sync_schedules(AT)
        first = Schedule.objects.get(name="claudeops:tick")
        Schedule.objects.create(name=first.name, func=first.func, schedule_type="I", minutes=1)
        assert sync_schedules(AT) == Synced(removed=("tick",))
        assert Schedule.objects.get(name="claudeops:tick").pk == first.pk

    def test_what_is_no_longer_declared_is_removed_and_what_is_not_ours_stays(self):
        Schedule.objects.create(name="claudeops:of-yesterday", func="gone")
        Schedule.objects.create(name="an operator's own", func="backup", next_run=AT)
        theirs = Schedule.objects.filter(name="an operator's own").values().get()
        assert sync_schedules(AT).removed == ("of-yesterday",)
        assert Schedule.objects.filter(name="an operator's own").values().get() == theirs

    def test_looking_writes_nothing(self):
        assert schedules.out_of_sync(AT) == Synced(created=ALL)
        assert not Schedule.objects.exists()

    def test_a_schedule_nobody_looked_at_is_late(self):
        sync_schedules(AT)
        assert schedules.late(AT + timedelta(minutes=5)) == []
        assert schedules.late(AT + timedelta(minutes=7)) == [
            "embed",
            "export",
            "maintain",
            "memory_files",
            "observe",
            "reap",
            "recall",
            "tick",
        ]


def test_a_name_that_is_declared_twice_is_refused(monkeypatch):
    monkeypatch.setattr("memories.schedules.SCHEDULES", [{"name": "tick", "func": "x", "minutes": 1}])
    with pytest.raises(ValueError, match="Declared more than once: claudeops:tick"):
        declared()


def test_a_schedule_is_a_value():
    schedule = declared()[0]
    assert replace(schedule) == schedule


@pytest.mark.django_db
class TestTheCommand:
    def test_it_says_what_it_did_and_then_that_nothing_was_left_to_do(self, capsys):
        call_command("sync_schedules")
        assert f"{len(ALL)} schedules in sync. created: {', '.join(ALL)}." in capsys.readouterr().out
        call_command("sync_schedules")
        assert capsys.readouterr().out.strip() == f"{len(ALL)} schedules in sync."

    def test_as_json_it_is_one_document(self, capsys):
        call_command("sync_schedules", json=True)
        document = json.loads(capsys.readouterr().out)
        assert (document["ok"], document["command"]) == (True, "sync_schedules")
        assert document["result"]["created"] == list(ALL)
