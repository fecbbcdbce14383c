"""Compare the sessions that were told a memory with those about the same service that were not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from claudeops.lib import humanize
from sessions_app.models import Injected, Session, Status, Trigger
from sessions_app.queries.failures import sessions_about

WINDOW = timedelta(days=90)
FEWEST = 5
"""Sessions that a group needs before its numbers are compared."""
ENDED = (Status.COMPLETED, Status.FAILED, Status.TIMED_OUT, Status.ESCALATED, Status.LOST)
"""What counts as an outcome. A stopped session does not: a person ended it."""


@dataclass(frozen=True, slots=True)
class Run:
    """An ended session: milliseconds (0: unknown), and whether it was told the memory."""

    status: str
    duration_ms: int
    told: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Sessions and how many of them completed; `median_ms` of the completed ones, None for fewer than FEWEST."""

    sessions: int
    completed: int
    median_ms: float | None

    @property
    def percent(self) -> int:
        return round(100 * self.completed / self.sessions) if self.sessions else 0


@dataclass(frozen=True, slots=True)
class Helped:
    """Both groups, of the sessions about `service` since a time (aware UTC). `cut`: earlier ones were left out."""

    service: str
    told: Group
    others: Group
    since: datetime
    cut: bool

    @property
    def enough(self) -> bool:
        return min(self.told.sessions, self.others.sessions) >= FEWEST

    @property
    def time(self) -> str:
        """Say how the median durations differ; empty when a group has too few completed sessions."""
        if not self.enough or self.told.median_ms is None or self.others.median_ms is None:
            return ""
        seconds = (self.told.median_ms - self.others.median_ms) / 1000
        if abs(seconds) < 1:
            return "Completed ones took as long, by the median."
        return f"Completed ones that were told it took {humanize.span(abs(seconds))} {_than(seconds)}, by the median."


def _than(seconds: float) -> str:
    return "less" if seconds < 0 else "more"


def group(runs: Sequence[Run]) -> Group:
    """Count the runs of one group. Pure."""
    completed = [run for run in runs if run.status == Status.COMPLETED]
    took = [run.duration_ms for run in completed if run.duration_ms]
    return Group(len(runs), len(completed), median(took) if len(took) >= FEWEST else None)


def compare(runs: Iterable[Run]) -> tuple[Group, Group]:
    """Return the groups of the runs that were told the memory, and of those that were not. Pure."""
    with_memory: list[Run] = []
    others: list[Run] = []
    for run in runs:
        if run.status in ENDED:
            (with_memory if run.told else others).append(run)
    return group(with_memory), group(others)


def helped(memory: int, service: str, *, at: datetime) -> Helped:
    """Compare the sessions of the last WINDOW before `at` (aware). Seven queries.

    Left out are imported logs, which are told nothing, and dry runs. Told is what its prompt held; sessions from before
    the memory existed were not told it.
    """
    scope = sessions_about(service, since=at - WINDOW)
    rows = Session.objects.filter(pk__in=scope.sessions, dry_run=False).exclude(trigger=Trigger.IMPORT)
    with_memory = set(
        Injected.objects.filter(memory_id=memory, session__in=scope.sessions).values_list("session_id", flat=True)
    )
    runs = (
        Run(status, took, pk in with_memory)
        for pk, status, took in rows.values_list("pk", "status", "duration_ms").order_by()
    )
    return Helped(service, *compare(runs), since=scope.since, cut=scope.cut)
