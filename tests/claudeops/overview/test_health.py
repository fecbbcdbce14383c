"""The workers and the queues: who serves each, what waits, what failed, and what a person is told to do about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django_q.models import OrmQ, Schedule, Task

from claudeops.features.backups import folder
from claudeops.features.overview import changes, health
from claudeops.features.overview.health import Trouble
from memories.models import AgentFile, FileState, ModelCall, TranscriptPart
from sessions_app.models import Status, TranscriptFolder, WorkerHeartbeat
from sessions_app.queue import tasks
from tests.support.factories import ProjectFactory, SessionFactory, StageFactory, TranscriptFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def worker(cluster: str = "default", host: str = "nuc-1", age: float = 3) -> WorkerHeartbeat:
    return WorkerHeartbeat.objects.create(host=host, cluster=cluster, pid=7, beat_at=AT - timedelta(seconds=age))


def queue(name: str) -> health.Queue:
    return next(queue for queue in health.read(AT).queues if queue.name == name)


def failure(cluster: str | None, age: timedelta, **fields) -> None:
    Task.objects.create(
        id=f"{Task.objects.count():032}", name="x", func="x", started=AT - age, stopped=AT - age, success=False,
        cluster=cluster, **fields,
    )  # fmt: skip


def test_a_house_where_all_is_well():
    worker(), worker("sessions")
    found = health.read(AT)
    assert found.ok
    assert [queue.name for queue in found.queues] == ["default", "sessions"]
    assert [[one.host for one in queue.workers] for queue in found.queues] == [["nuc-1"], ["nuc-1"]]
    assert found.database == connection.display_name


@pytest.mark.parametrize(("age", "within"), [(0, 20), (15, 20), (20, 20), (21, 40), (59, 60), (61, None), (7200, None)])
def test_a_heartbeat_is_told_in_steps_so_that_one_that_comes_in_time_changes_nothing(age, within):
    worker(age=age)
    (one,) = (*queue("default").workers, *queue("default").silent)
    assert one.within == within
    assert (one.beat_at is None) == (within is not None)


def test_a_queue_nobody_serves_says_what_to_start():
    worker()
    assert queue("default").troubles == []
    assert queue("sessions").troubles == [Trouble("No worker serves this queue.", health.START)]


def test_a_worker_that_fell_silent_is_named():
    worker(), worker(host="nuc-2", age=300)
    assert [trouble.text for trouble in queue("default").troubles] == ["nuc-2 (pid 7) has stopped sending heartbeats."]


def test_what_waits_is_counted_with_what_is_addressed_to_a_host():
    worker(), worker("sessions")
    tasks.send(tasks.REAP, host="nuc-1")
    tasks.send(tasks.RUN, 1, cluster=tasks.SESSIONS)
    tasks.send(tasks.FOLLOW, 1, host="nuc-1", cluster=tasks.SESSIONS)
    OrmQ.objects.filter(key="default@nuc-1").update(lock=AT - 2 * MINUTE)
    OrmQ.objects.filter(key="sessions").update(lock=AT - 9 * MINUTE)
    OrmQ.objects.filter(key="sessions@nuc-1").update(lock=AT + 9 * MINUTE)  # a worker has it
    assert (queue("default").waiting, queue("default").since) == (1, AT - 2 * MINUTE)
    assert (queue("sessions").waiting, queue("sessions").since) == (1, AT - 9 * MINUTE)
    assert queue("default").troubles == queue("sessions").troubles == []


def test_tasks_that_wait_for_too_long_say_what_to_restart():
    worker()
    tasks.send(tasks.REAP, host="nuc-1")
    OrmQ.objects.update(lock=AT - 6 * MINUTE)
    assert queue("default").troubles == [Trouble("Its tasks have waited too long.", health.STUCK)]


def test_failures_of_a_day_are_counted_by_queue():
    worker(), worker("sessions")
    for cluster in (None, "default", "default@nuc-1"):
        failure(cluster, MINUTE)
    failure("default", timedelta(hours=25))
    failure("sessions", MINUTE)
    assert [trouble.text for trouble in queue("default").troubles] == ["3 tasks have failed in the last 24 hours."]
    assert [trouble.text for trouble in queue("sessions").troubles] == ["One task has failed in the last 24 hours."]


def test_sessions_nobody_follows_and_schedules_nobody_looks_at_are_said():
    SessionFactory.create_batch(2, status=Status.RUNNING, heartbeat_at=AT - 3 * MINUTE)
    Schedule.objects.create(name="claudeops:tick", func="x", schedule_type=Schedule.MINUTES, next_run=AT - 6 * MINUTE)
    assert health.read(AT).troubles == [
        Trouble("No worker follows 2 running sessions.", health.REAP),
        Trouble("Overdue for more than five minutes: tick.", health.OVERDUE),
    ]


def test_a_backup_that_is_missing_or_old_is_said_where_one_is_made_each_day(settings, tmp_path, monkeypatch):
    settings.CLAUDEOPS_BACKUP_DIR = tmp_path
    assert health.read(AT).troubles == []
    monkeypatch.setattr(folder, "is_daily_on", lambda: True)
    assert health.read(AT).troubles == [Trouble("There is no backup yet.", health.BACKUP)]
    for days, troubles in ((3, [Trouble("The last backup is older than two days.", health.BACKUP)]), (1, [])):
        made = AT - timedelta(days=days)
        (tmp_path / f"{made:{folder.STAMP}}").mkdir()
        (tmp_path / f"{made:{folder.STAMP}}" / folder.MANIFEST).touch()
        assert (health.read(AT).backup, health.read(AT).troubles) == (made, troubles)


def test_agent_files_that_need_a_person_are_told_the_first_one_by_name():
    def a_file(agent: str, state: str = FileState.OK, problem: str = "", **fields: object) -> None:
        AgentFile.objects.create(project=project, agent=agent, state=state, problem=problem, **fields)

    project = ProjectFactory(slug="shop")
    a_file("engineer")
    a_file("off", FileState.UNREADABLE, enabled=False)
    assert health.read(AT).troubles == []
    a_file("research", FileState.UNREADABLE, "It holds NUL bytes.")
    first = "The memory file of research in shop cannot be read: It holds NUL bytes"
    assert health.read(AT).troubles == [Trouble(f"{first}.", health.FILES)]
    a_file("security", FileState.FULL, "9.0 KB, at most 8. Nothing is added to it.")
    assert health.read(AT).troubles == [Trouble(f"{first}; another file needs a person, too.", health.FILES)]
    a_file("tester", problem="The sync before session 7 failed")
    assert health.read(AT).troubles == [Trouble(f"{first}; 2 other files need a person, too.", health.FILES)]


def test_a_model_that_gives_no_answer_is_a_problem_when_work_has_waited_for_long(settings):
    settings.CLAUDEOPS_CLAUDE_BIN = "no-such-cli"
    stage = StageFactory(name="call", part__created_at=AT - timedelta(minutes=59))
    (model,) = health.read(AT).models
    assert (model.role, model.state, model.waiting, model.left) == (
        "observer",
        "not set up",
        "1 transcript part",
        "$2.00",
    )
    assert health.read(AT).troubles == []
    TranscriptPart.objects.filter(pk=stage.part_id).update(created_at=AT - timedelta(minutes=61))
    (trouble,) = health.read(AT).troubles
    assert "The model of the role observer gives no answer, and work waits: the Claude Code CLI" in trouble.text


def test_the_overview_shows_what_waits_for_models_and_until_when_one_rests(client, operator, settings):
    client.force_login(operator)
    assert "none was needed in 24&nbsp;h" in client.get("/").content.decode()
    changes.forget()
    settings.CLAUDEOPS_MODEL_URL = "http://127.0.0.1:9/v1/chat/completions"
    settings.CLAUDEOPS_MODEL_OBSERVER = "http:small"
    StageFactory(name="call")
    for _ in range(3):
        ModelCall.objects.create(
            role="observer", backend="http", model="small", prompt_hash="a", outcome="failed", error="<b>HTTP 500</b>"
        )
    html = " ".join(client.get("/").content.decode().split())
    assert 'id="model-observer"' in html and "1 transcript part waiting, the oldest" in html
    assert "It failed several times and is asked again" in html and "http:small, $2.00 left today" in html
    assert "<b>HTTP 500" not in html and "&lt;b&gt;HTTP 500" in html
    assert 'href="/admin/memories/modelcall/"' in html


def test_it_asks_the_same_number_of_times_however_much_there_is():
    def queries(count: int) -> int:
        for n in range(count):
            worker(host=f"host-{WorkerHeartbeat.objects.count()}")
            tasks.send(tasks.REAP, host=f"host-{n}")
            failure("default", MINUTE)
            AgentFile.objects.create(project=ProjectFactory(), agent="research", state="unreadable", problem="Why.")
        with CaptureQueriesContext(connection) as captured:
            health.read(AT)
        return len(captured)

    assert queries(2) == queries(6) == 13


def test_the_overview_shows_it_and_says_what_to_type(client, operator):
    client.force_login(operator)
    WorkerHeartbeat.objects.create(host="nuc-9", cluster="default", pid=12)
    failure("default", AT - AT)
    Task.objects.update(stopped=WorkerHeartbeat.objects.get().beat_at)
    html = " ".join(client.get("/").content.decode().split())
    assert "nuc-9 alive, pid 12, heartbeat within 20&nbsp;s" in html
    assert "No worker serves this queue. Start <code>manage.py runworker</code> (or <code>up</code>)." in html
    assert "One task has failed in the last 24 hours." in html
    assert 'href="/admin/django_q/failure/"' in html
    assert f"{connection.display_name} answers" in html


def test_what_was_seen_last_of_transcripts_is_said_and_what_is_wrong_is_a_trouble():
    assert (health.read(AT).transcripts.last_at, health.read(AT).troubles) == (None, [])
    TranscriptFactory(seen_at=AT - MINUTE, installation="laptop")
    TranscriptFactory(seen_at=AT - 2 * MINUTE, problem="Not observed any further.")
    TranscriptFactory(seen_at=AT - timedelta(days=2), problem="Long ago.")
    TranscriptFolder.objects.create(host="nuc-1", path="/srv/projects", problem="The folder cannot be read.")
    found = health.read(AT)
    assert (found.transcripts.last_at, found.transcripts.last_from) == (AT - MINUTE, "a hook of laptop")
    assert [trouble.text for trouble in found.troubles] == [
        "Transcripts in /srv/projects on nuc-1: The folder cannot be read.",
        "One transcript of the last day cannot be observed any further.",
    ]


def test_a_session_of_ours_is_named_as_what_brought_its_transcript():
    session = SessionFactory()
    TranscriptFactory(seen_at=AT, session=session, arrived_by="session")
    assert health.read(AT).transcripts.last_from == f"session {session.pk}"
