"""Silence is an alarm: each with what was expected, and none where nothing was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django_q.models import Schedule

from claudeops.features import doctor
from claudeops.features.overview import silence
from claudeops.workers import schedules
from memories.models import (
    CallOutcome,
    MaintenanceRun,
    MemoryFile,
    ModelCall,
    PartState,
    ProposalState,
    RunState,
    TelemetryRecord,
    Tier,
    TranscriptPart,
)
from memories.telemetry import record
from sessions_app.models import Ending, Status, WorkerHeartbeat, WorkerRun
from tests.memories.llm.conftest import recordings  # noqa: F401  # a fixture
from tests.support.factories import (
    MemoryFileFactory,
    PartFactory,
    ProjectFactory,
    ProposalFactory,
    SessionFactory,
    StageFactory,
    TranscriptFactory,
)

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def observing(settings):
    settings.CLAUDEOPS_OBSERVE = True


def names() -> list[str]:
    return [alarm.name for alarm in silence.read(AT)]


def urgent() -> list[str]:
    return [alarm.name for alarm in silence.read(AT) if alarm.is_urgent]


@pytest.fixture
def workers():
    for cluster in ("default", "sessions"):
        WorkerHeartbeat.objects.create(host="nuc-1", cluster=cluster, pid=7, beat_at=AT)
    WorkerRun.objects.create(host="nuc-1", pid=7, queues="default, sessions", started_at=AT - DAY)


def long_ago() -> None:
    """Something was recorded before the last day, so that what is missing since then is missing."""
    record("memory.decay.completed", component="lifecycle", source="schedule", key="old", at=AT - 3 * DAY)


def ended(number: int, ago: timedelta = 3 * HOUR, **fields) -> None:
    for _ in range(number):
        SessionFactory(status=Status.COMPLETED, ended_at=AT - ago, **fields)


def test_a_fresh_installation_has_no_alarm():
    assert names() == []


def test_a_house_where_all_is_well_has_no_alarm(workers):
    long_ago()
    schedules.sync_schedules(AT)
    ended(5)
    TranscriptFactory(seen_at=AT - 2 * HOUR)
    record("memory.parse.completed", component="observe", source="transcript", key="new", at=AT - HOUR)
    MemoryFileFactory()
    MaintenanceRun.objects.create(night=AT.date(), at=AT - 9 * HOUR, by="system", state=RunState.DONE)
    assert names() == []


def test_workers_that_were_stopped_are_paused_and_no_alarm():
    WorkerRun.objects.create(host="nuc-1", pid=7, queues="default", ended_at=AT - DAY, ending=Ending.STOPPED)
    assert names() == []


def test_workers_that_were_lost_are_an_alarm_for_a_person():
    WorkerRun.objects.create(host="nuc-1", pid=7, queues="default", ended_at=AT - DAY, ending=Ending.LOST)
    assert urgent() == ["worker default", "worker sessions"]
    assert silence.read(AT)[0].since == AT - DAY


def test_a_schedule_that_did_not_fire_is_an_alarm_where_a_worker_serves(workers):
    Schedule.objects.create(name="claudeops:sweep", func="x", next_run=AT - timedelta(minutes=10))
    assert (names(), urgent()) == (["schedules"], [])
    Schedule.objects.update(next_run=AT - 2 * HOUR)
    assert urgent() == ["schedules"]
    assert silence.read(AT)[0].since == AT - 2 * HOUR
    WorkerHeartbeat.objects.all().delete()
    assert "schedules" not in names(), "its workers are the alarm then"


def test_a_schedule_that_an_operator_switched_off_is_none(workers):
    Schedule.objects.create(name="claudeops:sweep", func="x", next_run=AT - DAY, repeats=0)
    assert names() == []


def test_a_memory_file_that_cannot_be_used_needs_a_person():
    MemoryFileFactory(problem="MEMORY.md is missing", problem_since=AT - HOUR)
    (alarm,) = silence.read(AT)
    assert (alarm.is_urgent, alarm.since) == (True, AT - HOUR)
    assert alarm.text == "MEMORY.md cannot be used: MEMORY.md is missing"
    MemoryFile.objects.update(problem="")
    assert names() == []


def test_sessions_of_which_none_was_taken_in_are_an_alarm():
    long_ago()
    ended(3)
    assert urgent() == ["transcripts"]
    TranscriptFactory(seen_at=AT - HOUR)
    assert names() == []


@pytest.mark.parametrize("why", ["not observed", "off", "too few", "too new", "no records of that day"])
def test_sessions_that_nobody_observes_are_no_alarm(settings, why):
    if why != "no records of that day":
        long_ago()
    settings.CLAUDEOPS_OBSERVE = why != "off"
    project = ProjectFactory(observed=why != "not observed")
    ended(2 if why == "too few" else 4, HOUR if why == "too new" else 3 * HOUR, project=project)
    assert names() == []


def waiting(number: int, ago: timedelta) -> None:
    transcript = TranscriptFactory(seen_at=AT - 3 * HOUR)
    for place in range(1, number + 1):
        part = PartFactory(transcript=transcript, number=place, start=place, end=place + 1)
        TranscriptPart.objects.filter(pk=part.pk).update(created_at=AT - ago)
        StageFactory(part=part, name="prepare")


def test_parts_that_wait_while_no_stage_does_anything_are_an_alarm(recordings):  # noqa: F811
    long_ago()
    waiting(3, 3 * HOUR)
    assert urgent() == ["observing"]
    record("memory.store.completed", component="observe", source="transcript", key="new", at=AT - HOUR)
    assert names() == []


def test_parts_whose_answer_cannot_be_read_are_an_alarm_of_doctor_and_overview(admin_client):
    first, second = PartFactory.create_batch(2, state=PartState.UNREADABLE, created_at=AT - HOUR)
    StageFactory(part=first, name="call", state="failed")
    StageFactory(part=second, name="call", not_before=AT + HOUR)
    (alarm,) = silence.read(AT)
    assert alarm.text == "2 parts of transcripts cannot be observed: the observer's answer could not be read."
    assert alarm.advice.startswith("1 will be tried again by itself, 1 will not. Observe again on the page")
    assert (alarm.since, alarm.url) == (AT - HOUR, "/learning-log?state=unreadable")
    findings = [one for one in doctor.examine(AT).findings if one.subject == "silence"]
    assert [(one.level, alarm.text in one.text, one.hint) for one in findings] == [(doctor.WARNING, True, alarm.advice)]
    assert alarm.text.replace("'", "&#x27;") in admin_client.get("/").content.decode()
    TranscriptPart.objects.update(state=PartState.DONE)
    assert names() == []


def test_a_backlog_that_grows_is_an_alarm_and_one_that_shrinks_is_none():
    waiting(15, 8 * HOUR)
    assert names() == []
    transcript = TranscriptFactory(seen_at=AT - 3 * HOUR)
    for place in range(1, 11):
        part = PartFactory(transcript=transcript, number=place, start=place, end=place + 1)
        TranscriptPart.objects.filter(pk=part.pk).update(created_at=AT - HOUR)
    assert names() == ["backlog"]
    for number in range(10):
        record("memory.parse.completed", component="observe", source="x", key=f"{number}", at=AT - HOUR)
    assert names() == []


def test_proposals_that_no_stage_takes_up_are_an_alarm_and_those_for_a_person_are_none():
    one = ProposalFactory(created_at=AT - 4 * HOUR)
    assert names() == ["triage: rules"]
    type(one).objects.update(tier=Tier.PERSON)
    assert names() == []
    type(one).objects.update(state=ProposalState.APPROVED, decided_at=AT - 4 * HOUR)
    assert names() == ["promote"]
    type(one).objects.update(decided_at=AT - HOUR)
    assert names() == []


def test_a_night_that_was_left_out_is_an_alarm_where_a_worker_serves(workers):
    run = MaintenanceRun.objects.create(night=AT.date() - 3 * DAY, at=AT - 3 * DAY, by="system", state=RunState.DONE)
    assert names() == ["maintenance"]
    MaintenanceRun.objects.update(at=AT - HOUR)
    assert names() == []
    MaintenanceRun.objects.filter(pk=run.pk).update(state=RunState.FAILED, problem="no disk")
    assert [alarm.text for alarm in silence.read(AT)] == ["The last nightly maintenance failed: no disk"]


def calls(answered: int, unreadable: int) -> None:
    for outcome, number in ((CallOutcome.ANSWERED, answered), (CallOutcome.UNREADABLE, unreadable)):
        for _ in range(number):
            ModelCall.objects.create(role="judge", backend="http", model="m", asked_at=AT - HOUR, outcome=outcome)


@pytest.mark.parametrize(
    ("answered", "unreadable", "found"), [(7, 3, ["answers judge"]), (8, 2, []), (0, 9, []), (0, 0, [])]
)
def test_answers_that_cannot_be_read_are_an_alarm_above_a_share(answered, unreadable, found):
    calls(answered, unreadable)
    assert names() == found


def test_a_budget_that_is_used_up_is_an_alarm_while_something_waits(settings):
    settings.CLAUDEOPS_DAILY_BUDGET_USD = 5.0
    ended(1, HOUR, cost_usd=Decimal(6), started_at=AT - 2 * HOUR)
    assert names() == []
    SessionFactory(status=Status.QUEUED, queued_at=AT - HOUR)
    (alarm,) = silence.read(AT)
    assert (alarm.name, alarm.since, alarm.is_urgent) == ("budget", AT - HOUR, False)


def test_the_doctor_is_unhealthy_only_for_what_needs_a_person_now():
    calls(7, 3)
    findings = [one for one in doctor.examine(AT).findings if one.subject == "silence"]
    assert [one.level for one in findings] == [doctor.WARNING]
    MemoryFileFactory(problem="gone", problem_since=AT)
    findings = [one for one in doctor.examine(AT).findings if one.subject == "silence"]
    assert [one.level for one in findings] == [doctor.ERROR, doctor.WARNING]
    assert not doctor.examine(AT).healthy


def test_the_overview_shows_what_has_gone_quiet(admin_client):
    assert "Silence" not in admin_client.get("/").content.decode()
    MemoryFileFactory(problem="<b>gone</b>", problem_since=AT)
    html = admin_client.get("/").content.decode()
    assert 'id="figure-silence"' in html and 'id="silence"' in html
    assert "<b>gone</b>" not in html


def test_the_number_of_queries_is_bounded(workers):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            silence.read(AT)
        return len(captured)

    long_ago()
    ended(5)
    before = queries()
    ended(20)
    calls(20, 20)
    TelemetryRecord.objects.update(at=AT - 3 * DAY)
    assert queries() <= before + 1 <= 40, "one more, for the last transcript"
