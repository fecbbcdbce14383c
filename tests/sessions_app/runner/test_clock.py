"""The product's own clock is set by hours, both ways, while a worker follows a session: nothing ends, all goes on."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import OrmQ, Schedule, Success

from sessions_app import queue, reaper
from sessions_app.models import Session, Status, WorkerHeartbeat
from sessions_app.queue import tasks
from tests.claudeops.processes import slow_cli
from tests.support.factories import AgentFactory
from tests.support.processes import start, wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

HOURS = 5
WORKER = """
import datetime, pathlib, sys, time
import django
from django.utils import timezone
from psutil import _pslinux

def shift():
    return float(pathlib.Path(sys.argv[1]).read_text()) * 3600

def shifted(function, unit=1.0):
    return lambda: function() + unit * shift()

timezone.now = shifted(timezone.now, datetime.timedelta(seconds=1))
time.time = shifted(time.time)
_pslinux.boot_time = shifted(_pslinux.boot_time)  # the kernel tells it by the clock
django.setup()

from claudeops.workers.schedules import sync_schedules
from claudeops.workers.worker import Worker

sync_schedules()
Worker(["default", "sessions"]).run()
"""


def test_a_clock_that_is_set_ends_no_session_and_the_worker_goes_on(tmp_path, settings):
    settings.CLAUDEOPS_CLAUDE_BIN = str(slow_cli(tmp_path))
    settings.CLAUDEOPS_CLAUDE_HOME = settings.CLAUDEOPS_WORK_DIR = str(tmp_path)
    setting = tmp_path / "hours"

    def set_clock(hours: float) -> None:
        (tmp_path / "new").write_text(str(hours))
        (tmp_path / "new").replace(setting)

    set_clock(0)
    queue.request_session(agent=AgentFactory(slug="watch"), trigger="manual", by="anna", tier=1)
    session = Session.objects.get()
    worker = start(["-c", WORKER, str(setting)])
    try:
        wait_for(lambda: Session.objects.running().exclude(ingest_offset=0).exists(), 60)
        session.refresh_from_db()
        process = reaper.process_of(session)
        for hours in (HOURS, -HOURS):
            set_clock(hours)
            near = (timezone.now() + timedelta(hours=hours - 1), timezone.now() + timedelta(hours=hours + 1))
            wait_for(lambda near=near: Session.objects.filter(heartbeat_at__range=near).exists())
            wait_for(lambda near=near: WorkerHeartbeat.objects.filter(beat_at__range=near).count() == 2)
            done = Success.objects.filter(func=tasks.REAP).count()
            tasks.send(tasks.REAP, host=settings.CLAUDEOPS_HOST)
            OrmQ.objects.filter(key__startswith="default").update(lock=near[0])
            wait_for(lambda done=done: Success.objects.filter(func=tasks.REAP).count() > done)
            session.refresh_from_db()
            assert (session.status, session.attempts) == (Status.RUNNING, 1)
            assert process.poll()[0]
        latest = timezone.now() + timedelta(hours=1 - HOURS)
        wait_for(lambda: Schedule.objects.get(name="claudeops:tick").next_run < latest)
        queue.request_stop(session.pk, by="anna")
        wait_for(lambda: not Session.objects.running().exists())
    finally:
        worker.send_signal(signal.SIGTERM)
        out, err = worker.communicate(timeout=60)
    session.refresh_from_db()
    assert session.status == Status.STOPPED
    forward, back = f"The clock was set {HOURS} h forward", f"The clock was set {2 * HOURS} h back"
    assert session.status_reason == f"Stopped by anna. {forward} while it ran. {back} while it ran."
    for line in (forward, back):
        assert f"worker: {line[0].lower()}{line[1:]}" in err
    assert "Traceback" not in out + err
    assert not OrmQ.objects.filter(key__contains=tasks.TAKEN).exists()
