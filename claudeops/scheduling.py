"""The schedules the apps declare, brought into django-q2's table: idempotent, and only ever our own rows.

django-q2 has no unique names and does not move `next_run` when a schedule is edited; both are seen to here.
Knows of the apps only their names and their `schedules.SCHEDULES`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module

from django.db import connection, transaction
from django.utils import timezone
from django_q.models import Schedule

PREFIX = "claudeops:"
"""What the names of our rows begin with; rows of other names are an operator's own and left alone."""

APPS = ("sessions_app", "memories")
LOCK = 0x636C6F7073  # "clops": two hosts that start at once must not both insert
LATE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Declared:
    """One schedule: `func` every `minutes`, `offset` minutes after the multiples of them since the epoch (UTC)."""

    name: str
    func: str
    minutes: int
    offset: int = 0
    cluster: str | None = None

    def first_run(self, at: datetime) -> datetime:
        """The first time after `at`."""
        step = timedelta(minutes=self.minutes)
        epoch = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=self.offset)
        return epoch + ((at - epoch) // step + 1) * step


@dataclass(frozen=True, slots=True)
class Synced:
    """Names (without the prefix) by what was done to them."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.created or self.changed or self.removed)


def declared() -> list[Declared]:
    """What the apps declare. Raises ValueError when two of them use one name."""
    found = [
        Declared(**{**entry, "name": PREFIX + entry["name"]})
        for app in APPS
        for entry in import_module(f"{app}.schedules").SCHEDULES
    ]
    twice = [name for name, count in Counter(schedule.name for schedule in found).items() if count > 1]
    if twice:
        raise ValueError(f"Declared more than once: {', '.join(twice)}")
    return found


def sync_schedules(at: datetime | None = None, *, schedules: Iterable[Declared] | None = None) -> Synced:
    """Make the table hold what is declared, at `at` (UTC; now when None). Called again it changes nothing.

    `next_run` is only computed anew for what was created, whose rhythm changed, or that had none.
    """
    at = at or timezone.now()
    with transaction.atomic():
        _lock()
        return _apply(list(declared() if schedules is None else schedules), at, write=True)


def out_of_step(at: datetime | None = None) -> Synced:
    """What `sync_schedules` would do; nothing is written."""
    return _apply(declared(), at or timezone.now(), write=False)


def late(at: datetime | None = None) -> list[str]:
    """Our schedules that should have run more than five minutes ago: no worker of the default queue looks at them."""
    before = (at or timezone.now()) - LATE
    rows = Schedule.objects.filter(name__startswith=PREFIX, next_run__lt=before).exclude(repeats=0)
    return sorted(name.removeprefix(PREFIX) for name in rows.values_list("name", flat=True))


def _apply(wanted: list[Declared], at: datetime, *, write: bool) -> Synced:
    created, changed, removed = [], [], []
    rows: dict[str, Schedule] = {}
    surplus: list[Schedule] = []
    names = {schedule.name for schedule in wanted}
    for row in Schedule.objects.filter(name__startswith=PREFIX).order_by("id"):
        if row.name in names and row.name not in rows:
            rows[row.name] = row
        else:
            surplus.append(row)
    for row in surplus:
        removed.append(row.name.removeprefix(PREFIX))
        if write:
            row.delete()
    for schedule in wanted:
        row = rows.get(schedule.name)
        if row is None:
            created.append(schedule.name.removeprefix(PREFIX))
            row = Schedule(name=schedule.name)
        elif not _differs(row, schedule):
            continue
        else:
            changed.append(schedule.name.removeprefix(PREFIX))
        if write:
            _write(row, schedule, at)
    return Synced(tuple(created), tuple(changed), tuple(removed))


def _fields(schedule: Declared) -> dict[str, object]:
    return {
        "func": schedule.func,
        "schedule_type": Schedule.MINUTES,
        "minutes": schedule.minutes,
        "cluster": schedule.cluster,
        "repeats": -1,
        "args": None,
        "kwargs": None,
        "hook": None,
        "cron": None,
        "intended_date_kwarg": None,
    }


def _differs(row: Schedule, schedule: Declared) -> bool:
    return row.next_run is None or any(getattr(row, name) != value for name, value in _fields(schedule).items())


def _write(row: Schedule, schedule: Declared, at: datetime) -> None:
    same_rhythm = row.pk and (row.schedule_type, row.minutes) == (Schedule.MINUTES, schedule.minutes)
    for name, value in _fields(schedule).items():
        setattr(row, name, value)
    if not same_rhythm or row.next_run is None:
        row.next_run = schedule.first_run(at)
    row.save()


def _lock() -> None:
    """SQLite's IMMEDIATE transactions exclude each other; PostgreSQL needs a lock of its own."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
