"""`manage.py runworker` as it is: real processes, real signals, on both databases."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from django_q.models import OrmQ, Schedule, Task
from django_q.tasks import async_task

from claudeops.features.overview import health
from memories.files import storage, watch
from memories.files.sync import sync_file
from memories.lifecycle import verbs
from memories.models import Memory, Project, Transcript
from sessions_app import queue
from sessions_app.models import Event, Session, Status, TranscriptFolder, WorkerHeartbeat, WorkerRun
from tests.claudeops.processes import alive, slow_cli, started, until
from tests.support import transcripts
from tests.support.factories import ProjectFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's death signal is Linux's own")
SECONDS = 20.0
"""The time limit for "in seconds" on a busy machine; a hang would take far longer."""


@pytest.fixture
def log(tmp_path):
    return tmp_path / "worker.log"


def serving(*clusters: str) -> bool:
    beating = set(WorkerHeartbeat.objects.values_list("cluster", flat=True))
    return set(clusters) <= beating


def done(function: str = "sessions_app.tasks.prune") -> int:
    """How many tasks of `function` have succeeded and left the queue (their result is stored first)."""
    succeeded = set(Task.objects.filter(func=function, success=True).values_list("pk", flat=True))
    return len(succeeded.difference(row.task_id() for row in OrmQ.objects.all()))


def test_a_worker_runs_a_task_beats_and_leaves_nothing_behind(log):
    async_task("sessions_app.tasks.prune", cluster="default")
    with started("runworker", "--cluster", "default", log=log) as worker:
        until(lambda: done() == 1, "the task was not run")
        until(lambda: serving("default"), "no heartbeat")
        beat = WorkerHeartbeat.objects.get()
        assert (beat.pid, beat.cluster) == (worker.pid, "default")
        assert (timezone.now() - beat.beat_at).total_seconds() < 30
        assert Schedule.objects.filter(name="claudeops:tick").count() == 1
        until(lambda: not worker.family(), "the process of an ended task stays")
        os.kill(worker.pid, signal.SIGTERM)
        assert worker.wait(SECONDS) == 0, worker.output()
    assert not WorkerHeartbeat.objects.exists()
    assert list(WorkerRun.objects.values_list("queues", "after", "ending")) == [("default", "", "stopped")]
    assert not OrmQ.objects.filter(key="default").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_whole_process_group_ends_it_in_order(log, number):
    with started("runworker", "--cluster", "default", log=log) as worker:
        until(lambda: serving("default"), "no heartbeat")
        os.killpg(worker.pid, number)
        assert worker.wait(SECONDS) == 0, worker.output()
        until(lambda: not worker.family(), "processes were left behind")
    assert not WorkerHeartbeat.objects.exists()


def test_the_queue_of_the_sessions_is_served_by_its_own_worker(log):
    with started("runworker", "--cluster", "sessions", log=log) as worker:
        until(lambda: serving("sessions"), "no heartbeat")
        async_task("sessions_app.tasks.prune", cluster="default")
        async_task("sessions_app.tasks.prune", cluster="sessions")
        until(lambda: done() == 1, "the task was not run")
        assert Task.objects.get(func="sessions_app.tasks.prune").cluster == "sessions"
        assert OrmQ.objects.filter(key="default").count() == 1
        os.kill(worker.pid, signal.SIGTERM)
        assert worker.wait(SECONDS) == 0, worker.output()


def test_what_is_addressed_to_a_host_is_taken_there_alone(log):
    async_task("sessions_app.tasks.prune", cluster="default@elsewhere")
    async_task("sessions_app.tasks.prune", cluster="default@here")
    with started("runworker", "--cluster", "default", log=log, CLAUDEOPS_HOST="here"):
        until(lambda: done() == 1, "the task was not run")
    assert list(OrmQ.objects.filter(key__contains="@").values_list("key", flat=True)) == ["default@elsewhere"]


def test_without_a_cluster_one_process_serves_both(log):
    async_task("sessions_app.tasks.prune", cluster="default")
    async_task("sessions_app.tasks.prune", cluster="sessions")
    with started("runworker", log=log) as worker:
        until(lambda: serving("default", "sessions"), "no heartbeats")
        until(lambda: done() == 2, "the tasks were not run")
        assert set(Task.objects.filter(func="sessions_app.tasks.prune").values_list("cluster", flat=True)) == {
            "default",
            "sessions",
        }
        os.kill(worker.pid, signal.SIGINT)
        assert worker.wait(SECONDS) == 0, worker.output()
        assert not worker.family()
    assert not WorkerHeartbeat.objects.exists()


def test_a_queue_runs_no_more_tasks_at_once_than_it_has_workers(log):
    for _ in range(4):
        async_task("time.sleep", 600, cluster="default")
    async_task("sessions_app.tasks.prune", cluster="sessions")
    with started("runworker", log=log, CLAUDEOPS_WORKERS="2") as worker:
        until(lambda: len(worker.family()) == 2 and done() == 1, "two tasks do not run beside another queue's")
        assert OrmQ.objects.filter(key="default", lock__lte=timezone.now()).count() == 2


def test_a_task_that_fails_is_stored_with_its_error_and_not_run_again(log):
    async_task("math.sqrt", -1, cluster="default")
    with started("runworker", "--cluster", "default", log=log):
        until(lambda: Task.objects.filter(func="math.sqrt").exists(), "the failure was not stored")
        until(lambda: not OrmQ.objects.filter(key="default").exists(), "the task stays in the queue")
    task = Task.objects.get(func="math.sqrt")
    assert not task.success
    assert "math domain error" in task.result


def test_a_task_that_takes_too_long_is_ended(log):
    async_task("time.sleep", 600, cluster="default", timeout=1)
    with started("runworker", "--cluster", "default", log=log) as worker:
        until(lambda: Task.objects.filter(func="time.sleep", success=False).exists(), "the task was not ended")
        until(lambda: not worker.family(), "its process goes on")


def test_a_task_that_cannot_be_read_is_dropped(log):
    OrmQ.objects.create(key="default", payload="forged", lock=timezone.now())
    async_task("sessions_app.tasks.prune", cluster="default")
    with started("runworker", "--cluster", "default", log=log) as worker:
        until(lambda: done() == 1, "the next task was not run")
        assert not OrmQ.objects.filter(payload="forged").exists()
        assert "cannot be read" in worker.output()


@pytest.fixture
def busy():
    """A task that goes on until it is killed."""
    async_task("time.sleep", 600, cluster="default")


@linux
@pytest.mark.usefixtures("busy")
def test_a_killed_worker_takes_all_its_processes_with_it(log):
    with started("runworker", log=log) as worker:
        until(worker.family, "the task does not run")
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait(SECONDS)
        until(lambda: not worker.family(), "its processes go on without it", SECONDS)


@pytest.mark.usefixtures("busy")
def test_a_task_that_is_killed_costs_no_other_and_is_delivered_again(log):
    with started("runworker", "--cluster", "default", log=log) as worker:
        until(worker.family, "the task does not run")
        (process,) = worker.family()
        process.kill()
        until(lambda: "ended with -9 before its result was stored" in worker.output(), "its death is not logged")
        async_task("sessions_app.tasks.prune", cluster="default")
        until(lambda: done() == 1, "the next task was not run")
    assert not Task.objects.filter(func="time.sleep").exists()
    assert OrmQ.objects.get(key__startswith="default@").lock > timezone.now()  # until the queue's retry


@pytest.fixture
def session():
    return queue.request_session(agent=None, trigger="manual", by="operator", prompt_task="look")


def running(session: Session) -> bool:
    session.refresh_from_db()
    return session.status == Status.RUNNING and session.pid is not None and Event.objects.exists()


@linux
@pytest.mark.usefixtures("busy")
def test_what_killed_workers_had_taken_is_given_back_and_their_heartbeats_go(log, tmp_path, session):
    cli = {"CLAUDEOPS_CLAUDE_BIN": str(slow_cli(tmp_path)), "CLAUDEOPS_HOST": "here"}
    taken = OrmQ.objects.filter(key__contains="#")

    def sleeps(worker) -> bool:
        return taken.filter(key=f"default@here##{worker.pid}").exists()

    for _ in range(2):
        with started("runworker", log=log, **cli) as worker:
            until(lambda worker=worker: running(session) and sleeps(worker), f"not both run:\n{worker.output()}")
            os.kill(worker.pid, signal.SIGKILL)
            worker.wait(SECONDS)
    os.kill(session.pid, signal.SIGKILL)
    assert taken.filter(lock__gt=timezone.now() + timedelta(minutes=10)).exists()
    with started("runworker", log=log, **cli) as worker:
        until(
            lambda: sleeps(worker) and not taken.exclude(key__endswith=f"#{worker.pid}").exists(),
            f"tasks of the killed workers stay:\n{worker.output()}",
        )
        assert set(WorkerHeartbeat.objects.values_list("pid", flat=True)) == {worker.pid}
        assert [one.silent for one in health.read().queues] == [(), ()]


def test_a_session_outlives_its_worker_and_is_followed_by_the_next_one(log, tmp_path, session):
    own = {"CLAUDEOPS_CLAUDE_BIN": str(slow_cli(tmp_path)), "CLAUDEOPS_HOST": "here"}
    with started("runworker", "--cluster", "sessions", log=log, **own) as worker:
        until(lambda: running(session), f"the session does not run:\n{worker.output()}")
        os.kill(worker.pid, signal.SIGTERM)
        assert worker.wait(SECONDS) == 0, worker.output()
    cli = session.pid
    try:
        session.refresh_from_db()
        assert (session.status, session.heartbeat_at) == (Status.RUNNING, None)
        assert alive(cli)
        with started("runworker", "--cluster", "sessions", log=log, **own) as worker:
            until(lambda: Session.objects.get(pk=session.pk).heartbeat_at, f"not followed:\n{worker.output()}")
            queue.request_stop(session.pk, by="operator")
            until(lambda: Session.objects.get(pk=session.pk).status == Status.STOPPED, "it was not stopped")
            until(lambda: not alive(cli), "its process goes on")
            os.kill(worker.pid, signal.SIGTERM)
            assert worker.wait(SECONDS) == 0, worker.output()
    finally:
        if alive(cli):
            os.kill(cli, signal.SIGKILL)
    assert Event.objects.count() == 1


@linux
def test_a_killed_worker_leaves_the_cli_of_its_session_running(log, tmp_path, session):
    own = {"CLAUDEOPS_CLAUDE_BIN": str(slow_cli(tmp_path)), "CLAUDEOPS_HOST": "here"}
    with started("runworker", "--cluster", "sessions", log=log, **own) as worker:
        until(lambda: running(session), f"the session does not run:\n{worker.output()}")
        worker.family()
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait(SECONDS)
        until(lambda: not worker.family(), "its processes go on without it", SECONDS)
    try:
        assert alive(session.pid)
        assert Session.objects.get(pk=session.pk).status == Status.RUNNING
    finally:
        os.kill(session.pid, signal.SIGKILL)


def test_an_idle_worker_takes_a_session_whose_wakeup_died_with_another_worker(log, tmp_path, session):
    own = {"CLAUDEOPS_CLAUDE_BIN": str(slow_cli(tmp_path)), "CLAUDEOPS_HOST": "here"}
    now = timezone.now()
    OrmQ.objects.update(key=f"sessions@here##{2**22 - 1}", lock=now + timedelta(hours=2))  # its worker was killed
    Session.objects.update(dispatched_at=now - timedelta(seconds=31))
    with started("runworker", "--cluster", "sessions", "--on-stop", "stop", log=log, **own) as worker:
        until(lambda: running(session), f"the session does not run:\n{worker.output()}", SECONDS)
        os.kill(worker.pid, signal.SIGTERM)
        assert worker.wait(SECONDS) == 0, worker.output()


def test_a_worker_can_stop_its_sessions_with_it(log, tmp_path, session):
    own = {"CLAUDEOPS_CLAUDE_BIN": str(slow_cli(tmp_path)), "CLAUDEOPS_HOST": "here"}
    with started("runworker", "--cluster", "sessions", "--on-stop", "stop", log=log, **own) as worker:
        until(lambda: running(session), f"the session does not run:\n{worker.output()}")
        waiting = queue.request_session(agent=None, trigger="alert", by="api")
        os.kill(worker.pid, signal.SIGTERM)
        assert worker.wait(2 * SECONDS) == 0, worker.output()
    session.refresh_from_db()
    assert (session.status, session.stop_requested_by) == (Status.STOPPED, "worker")
    assert not alive(session.pid)
    waiting.refresh_from_db()
    assert waiting.status in (Status.QUEUED, Status.STOPPED)


@pytest.fixture
def shop(tmp_path) -> Project:
    """A project with a repository and an agent's file in it."""
    (tmp_path / "shop").mkdir()
    project = ProjectFactory(slug="shop", path=str(tmp_path / "shop"))
    sync_file(project, "research", create=True)
    return project


def save(project: Project, text: str) -> float:
    """Save a line as an editor does that renames, and return when (monotonic)."""
    path = storage.location(project, "research")
    aside = path.with_name(".research.tmp")
    aside.write_text(f"{path.read_text()}- {text}\n")
    aside.replace(path)
    return time.monotonic()


def test_what_a_person_saves_is_read_within_ten_seconds_and_what_is_deactivated_leaves_the_file(log, shop):
    with started("runworker", "--cluster", "default", log=log) as worker:
        until(watch.is_watched, "nobody watches")
        saved = save(shop, "The suite takes 4 minutes")
        until(lambda: Memory.objects.filter(taxonomy="agent").exists(), f"it was not read:\n{worker.output()}")
        assert time.monotonic() - saved < 10
        memory = Memory.objects.get(taxonomy="agent")
        assert (memory.observation, memory.agent, memory.project) == ("The suite takes 4 minutes", "research", shop)
        verbs.deactivate(memory, by="operator")
        until(lambda: "4 minutes" not in storage.location(shop, "research").read_text(), "it stays in the file", 10)
        os.kill(worker.pid, signal.SIGTERM)
        assert worker.wait(SECONDS) == 0, worker.output()
        assert not worker.family()
    assert not watch.is_watched()


def test_a_watcher_that_is_killed_is_noticed_and_started_again(log, shop):
    with started("runworker", "--cluster", "default", log=log) as worker:
        until(watch.is_watched, "nobody watches")
        (process,) = worker.family()
        process.kill()
        until(lambda: "the watcher of agent files ended with -9" in worker.output(), "its death is not logged")
        save(shop, "The suite takes 4 minutes")
        until(lambda: Memory.objects.filter(taxonomy="agent").exists(), f"it was not read:\n{worker.output()}")


def test_the_queue_of_the_sessions_alone_has_no_watcher(log, shop):
    async_task("sessions_app.tasks.prune", cluster="sessions")
    with started("runworker", "--cluster", "sessions", log=log) as worker:
        until(lambda: done() == 1 and not worker.family(), "the task was not run")
        assert not watch.is_watched()


def test_a_database_without_tables_is_refused_in_words(log, tmp_path):
    with started(
        "runworker", "--cluster", "default", log=log, DATABASE_URL=f"sqlite:///{tmp_path}/empty.sqlite3"
    ) as worker:
        assert worker.wait() == 1
        assert re.search(r"migrations are not applied\. Run: manage\.py migrate", worker.output())


def test_a_queue_that_is_not_there_is_wrong_usage():
    with pytest.raises(CommandError, match="invalid choice: 'nightly'"):
        call_command("runworker", "--cluster", "nightly")


def test_a_worker_that_starts_sweeps_the_transcripts_that_were_written_meanwhile(log, tmp_path):
    """The server was down while a session ran: its transcript is taken in without waiting for the schedule."""
    path = transcripts.write(tmp_path, transcripts.typed("Never restart it by day"), transcripts.says("I will wait"))
    then = (timezone.now() - timedelta(hours=1)).timestamp()
    os.utime(path, (then, then))
    TranscriptFolder.objects.create(host="here", path=str(path.parent.parent), since=timezone.now() - timedelta(days=1))
    more = {"CLAUDEOPS_HOST": "here", "CLAUDEOPS_OBSERVE": "true", "CLAUDEOPS_MODEL_OBSERVER": ""}
    with started("runworker", "--cluster", "default", log=log, **more) as worker:
        until(lambda: Transcript.objects.filter(observed_to=path.stat().st_size).exists(), worker.output())
        os.kill(worker.pid, signal.SIGTERM)
        assert worker.wait(SECONDS) == 0, worker.output()
    assert Transcript.objects.get().arrived_by == "sweep"
