"""Summarise the latest runs of a project for the rules. What is read is bounded, whatever the project has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import reduce
from operator import or_

from django.db.models import Q
from django.db.models.functions import Substr

from memories.models import Project
from sessions_app.learning.rules import Run, Step, plain, step_of
from sessions_app.models import FollowsAs, LogEntry, LogKind, Session, Status, Trigger

DAYS = timedelta(days=90)
MOST_RUNS = 100
MOST_ERRORS = 1_000
ERRORS_A_RUN = 5
"""The last ones: these are nearest to the end."""
PAIRS_AT_ONCE = 100
MOST_RETRIES = 10
STEPS_A_RUN = 300
WORDS = 500
"""Characters of a log entry that are read."""


def runs_of(project: Project, *, at: datetime) -> tuple[list[Run], dict[int, Session]]:
    """Return the latest runs of `project` that completed or failed until `at`, and their rows by id. No imports."""
    rows = (
        Session.objects.filter(
            project=project, status__in=(Status.COMPLETED, Status.FAILED), queued_at__gte=at - DAYS, queued_at__lte=at
        )
        .exclude(trigger=Trigger.IMPORT)
        .order_by("-queued_at", "-pk")
        .only("status", "parent", "follows_as", "ingest_state")
    )
    sessions = {row.pk: row for row in rows[:MOST_RUNS]}
    errors = _errors(sessions)
    retries = {
        pk: row.parent_id
        for pk, row in sessions.items()
        if row.follows_as == FollowsAs.RETRY and row.status == Status.COMPLETED and row.parent_id in sessions
    }
    latest = dict(sorted(retries.items())[-MOST_RETRIES:])
    steps = _steps({*latest, *filter(None, latest.values())})
    return [
        Run(pk, row.status == Status.FAILED, tuple(errors[pk]), tuple(steps[pk]), latest.get(pk))
        for pk, row in sorted(sessions.items())
    ], sessions


def _errors(sessions: Iterable[int]) -> dict[int, list[tuple[str, Step | None]]]:
    """Return the last errors of each session, the oldest first, with the calls that ended so."""
    rows = (
        LogEntry.objects.filter(session__in=sessions, is_error=True, kind=LogKind.TOOL_RESULT)
        .order_by("-session", "-seq")
        .values_list("session", "call", Substr("text", 1, WORDS))
    )
    last: dict[int, list[tuple[int | None, str]]] = defaultdict(list)
    for session, call, text in rows[:MOST_ERRORS]:
        if len(last[session]) < ERRORS_A_RUN:
            last[session].insert(0, (call, text))
    calls = _calls([(session, call) for session, found in last.items() for call, _ in found if call])
    return defaultdict(
        list,
        {
            session: [(plain(text), calls.get((session, call or 0))) for call, text in found]
            for session, found in last.items()
        },
    )


def _calls(pairs: list[tuple[int, int]]) -> dict[tuple[int, int], Step]:
    found: dict[tuple[int, int], Step] = {}
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        wanted = reduce(or_, (Q(session=one, seq=seq) for one, seq in pairs[start : start + PAIRS_AT_ONCE]))
        rows = LogEntry.objects.filter(wanted, kind=LogKind.TOOL_USE).order_by()
        for session, seq, text in rows.values_list("session", "seq", Substr("text", 1, WORDS)):
            found[session, seq] = step_of(text)
    return found


def _steps(sessions: Iterable[int]) -> dict[int, list[Step]]:
    """Return the first calls of each session: one query for each of a few."""
    found: dict[int, list[Step]] = defaultdict(list)
    for session in sorted(sessions):
        rows = LogEntry.objects.filter(session=session, kind=LogKind.TOOL_USE).order_by("seq")
        found[session] = [step_of(text) for text in rows.values_list(Substr("text", 1, WORDS), flat=True)[:STEPS_A_RUN]]
    return found
