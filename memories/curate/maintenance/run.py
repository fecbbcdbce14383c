"""Run the maintenance: claim a run, do its steps in order, go on where a run ended that died.

Each batch of a step is written together with its cursor, or would find nothing to do when it is repeated. All changes
bear the time of the run and name it in their evidence.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from claudeops.lib.lease import Lease
from memories.curate.maintenance import night
from memories.curate.maintenance.steps import ENDED, STEPS, Step, counted
from memories.errors import Conflict
from memories.lifecycle.lock import writing
from memories.models import MaintenanceRun, MaintenanceStep, RunState
from memories.telemetry import record

LEASE = Lease(timedelta(minutes=6))
"""No batch takes longer; each beat renews it."""
TASK_SECONDS = 200.0
"""A run of the task ends then, and the next one goes on: the queue ends a task after 300 seconds."""
LATEST = timedelta(hours=20)
"""A night that was missed for longer, such as by a new installation, is left out."""


class Lost(Exception):
    """Another worker has the run."""


@dataclass(frozen=True, slots=True)
class Place:
    """When runs are due: at `hour` o'clock in `zone`."""

    hour: int
    zone: ZoneInfo

    @classmethod
    def of_settings(cls) -> Place:
        hour, zone = settings.CLAUDEOPS_MAINTENANCE_HOUR
        return cls(hour, ZoneInfo(zone))

    def night(self, at: datetime) -> date:
        return night.night_of(at, self.hour, self.zone)

    def next(self, at: datetime) -> datetime:
        return night.next_after(at, self.hour, self.zone)


def maintain_due(
    *, at: datetime | None = None, seconds: float | None = TASK_SECONDS, is_scheduled: bool = True
) -> MaintenanceRun | None:
    """Do the night's run if it is due, or go on with one that was interrupted; None when there is nothing to do.

    Without `is_scheduled` it begins none by itself. It ends after `seconds` (None: when all is done), and the next call
    goes on.
    """
    now = at or timezone.now()
    open_run = MaintenanceRun.objects.filter(state=RunState.RUNNING).order_by("pk").first()
    if open_run is not None and now - open_run.at > LATEST:
        _give_up(open_run, now)
        open_run = None
    if open_run is None and not is_scheduled:
        return None
    if open_run is None:
        place = Place.of_settings()
        due = place.night(now)
        is_late = now - night.start_of(due, place.hour, place.zone) > LATEST
        if is_late or MaintenanceRun.objects.filter(night=due).exists():
            return None
        open_run = _begin(due, "system", now)
    return go_on(open_run, at=at, seconds=seconds)


def maintain_now(*, by: str, at: datetime | None = None, seconds: float | None = None) -> MaintenanceRun:
    """Do a run by hand, beside that of the night; goes on with one that was interrupted.

    Raises Conflict while another worker does one.
    """
    run = begin_by_hand(by=by, at=at)
    outcome = go_on(run, at=at, seconds=seconds)
    if outcome is None:
        raise Conflict("A maintenance run is under way.", "Its page shows how far it is.")
    return outcome


def begin_by_hand(*, by: str, at: datetime | None = None) -> MaintenanceRun:
    """Return the run that is under way, or begin one by hand: a worker does it."""
    return _begin(None, by, at or timezone.now())


def _begin(due: date | None, by: str, at: datetime) -> MaintenanceRun:
    with writing():
        run = MaintenanceRun.objects.filter(state=RunState.RUNNING).order_by("pk").first()
        if run is None and due is not None:
            run = MaintenanceRun.objects.filter(night=due).first()
        return run or MaintenanceRun.objects.create(night=due, at=at, by=by[:150])


def go_on(run: MaintenanceRun, *, at: datetime | None = None, seconds: float | None = None) -> MaintenanceRun | None:
    """Do what is left of a run; None when another worker has it. `at` (UTC) is the time of its claims, for tests."""
    me = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4()}"[:300]
    now = at or timezone.now()
    if not LEASE.take(MaintenanceRun.objects.filter(pk=run.pk, state=RunState.RUNNING), now, claimed_by=me):
        return None
    end = None if seconds is None else time.monotonic() + seconds
    try:
        is_done = all(_do(run, step, position, me, at, end) for position, step in enumerate(STEPS, 1))
    except Lost:
        return None
    except Exception as error:
        _fail(run, me, error)
        raise
    if is_done:
        _finish(run, me, at)
    else:
        _mine(run, me).update(claimed_by="", claimed_until=None)
    run.refresh_from_db()
    return run


def _mine(run: MaintenanceRun, me: str) -> Any:
    return MaintenanceRun.objects.filter(pk=run.pk, state=RunState.RUNNING, claimed_by=me)


def _beat(run: MaintenanceRun, me: str, at: datetime | None) -> None:
    if not LEASE.renew(_mine(run, me), at or timezone.now()):
        raise Lost


def _do(run: MaintenanceRun, step: Step, position: int, me: str, at: datetime | None, end: float | None) -> bool:
    """Do a step to its end; False when the time is over before."""
    row, _ = MaintenanceStep.objects.get_or_create(run=run, name=step.name, defaults={"position": position})
    if row.state == RunState.DONE:
        return True
    begun = time.monotonic()
    while not row.cursor.get(ENDED):
        if end is not None and time.monotonic() > end:
            return False
        _beat(run, me, at)
        batch = step.look(run, row.cursor)
        with writing():
            _beat(run, me, at)
            row.cursor[ENDED] = not step.write(run, row.cursor, batch)
            row.save(update_fields=["cursor"])
    if step.after is not None:
        _beat(run, me, at)
        step.after(run, row.cursor)
    with transaction.atomic():
        _beat(run, me, at)
        row.state, row.finished_at = RunState.DONE, at or timezone.now()
        row.counts = counted(step, run, row)
        row.duration_ms = int((time.monotonic() - begun) * 1000)
        row.save(update_fields=["state", "finished_at", "counts", "duration_ms"])
    return True


def _finish(run: MaintenanceRun, me: str, at: datetime | None) -> None:
    with transaction.atomic():
        ended = at or timezone.now()
        if not _mine(run, me).update(
            state=RunState.DONE, finished_at=ended, claimed_by="", claimed_until=None, problem=""
        ):
            raise Lost
        counts = {row.name: row.counts.get("did", 0) for row in run.steps.all()}
        record(
            "memory.maintain.completed",
            component="maintenance",
            source="memories",
            key=f"maintain:{run.pk}",
            at=ended,
            run=run.pk,
            **counts,
        )


def _give_up(run: MaintenanceRun, now: datetime) -> None:
    """End a run that did not end within its night, so that the next one begins."""
    stuck = MaintenanceRun.objects.filter(pk=run.pk, state=RunState.RUNNING)
    stuck.exclude(claimed_until__gt=now).update(state=RunState.FAILED, finished_at=now, claimed_by="")


def _fail(run: MaintenanceRun, me: str, error: Exception) -> None:
    """Say what went wrong, and let the claim lapse, so that the next call tries again later."""
    _mine(run, me).update(problem=f"{type(error).__name__}: {error}"[:500])
    record(
        "memory.maintain.failed",
        component="maintenance",
        source="memories",
        success=False,
        run=run.pk,
        error=type(error).__name__,
    )
