"""Note when each hook was last heard of, without a write for each call."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

from django.db import DatabaseError, transaction
from django.db.models import F

from sessions_app.models import HookHeard

logger = logging.getLogger(__name__)

WRITTEN_EVERY = timedelta(minutes=1)
LONGEST_PROBLEM = 300

Key = tuple[str, str]
"""(event, installation)."""


@dataclass(slots=True)
class _Count:
    calls: int
    written_at: datetime | None
    problem: str


class Tally:
    """Count calls, and say which are due to be written: at most once a minute for each key, a new problem at once."""

    def __init__(self) -> None:
        self._counts: dict[Key, _Count] = {}
        self._lock = Lock()

    def due(self, key: Key, problem: str, at: datetime) -> int:
        """Count one call at `at` (UTC); return how many calls are to be written now, 0 for none."""
        with self._lock:
            count = self._counts.setdefault(key, _Count(0, None, ""))
            count.calls += 1
            age = at - count.written_at if count.written_at else WRITTEN_EVERY
            if problem == count.problem and timedelta(0) <= age < WRITTEN_EVERY:  # negative: the clock was set back
                return 0
            calls, count.calls, count.written_at, count.problem = count.calls, 0, at, problem
            return calls


TALLY = Tally()


def note(key: Key, problem: str, *, at: datetime) -> bool:
    """Note a call and why it was not answered (empty when it was). A busy database is logged, not raised.

    `last_at` is exact to a minute, and `calls` without those of a process's last minute. Return whether there is a
    problem that is noted now: the same one counts once a minute.
    """
    event, installation = key
    problem = problem[:LONGEST_PROBLEM]
    calls = TALLY.due(key, problem, at)
    if not calls:
        return False
    rows = HookHeard.objects.filter(event=event, installation=installation)
    values = {"last_at": at, "problem": problem, "calls": F("calls") + calls}
    try:
        with transaction.atomic():
            if not rows.update(**values):
                HookHeard.objects.bulk_create(
                    [HookHeard(event=event, installation=installation, first_at=at)], ignore_conflicts=True
                )
                rows.update(**values)
    except DatabaseError as error:
        logger.warning("could not note the hook %s of %s: %s", event, installation, error)
    return bool(problem)
