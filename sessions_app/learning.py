"""Learn from the runs of a project by rules: what several failed runs had in common, what a retry did differently.

What a lesson repeats of a log is another's text: it is folded to plain characters, cut and quoted.

A lesson's natural key is its text: a run counts once for it, and a new run confirms it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_

from django.db import IntegrityError
from django.db.models import Q
from django.db.models.functions import Substr
from django.utils import timezone

from memories import store
from memories.candidates import latest_change, same_text
from memories.capture.text import fold
from memories.lifecycle import verbs
from memories.models import Exposure, Inactive, Memory, MemoryChange, Project, Source, Verdict
from memories.taxonomy import PROJECT
from sessions_app.models import FollowsAs, LogEntry, LogKind, Session, Status, Trigger
from sessions_app.receipts import told_to

SEVERAL = 3
"""Failed runs that have something in common."""
MOST_LESSONS = 10
MOST_DIFFERENCES = 3
LONGEST = 100
"""Characters of a quotation."""
SHORTEST = 4

VARIES = re.compile(r"\b[0-9a-f]{8}(?:-?[0-9a-f]{4,12}){0,4}\b|0x[0-9a-f]+|\d+(?:[.,:]\d+)*", re.IGNORECASE)
"""What differs between equal texts: numbers, times, identifiers."""
_UNPLAIN = re.compile(r"[^\w .,:;/_=+*%@()'-]+")
_PREFIX = re.compile(r"^(?:Error: )+(?:Exit code \d+\s*)?")
_PATHS = ("file_path", "path", "notebook_path")
_CUT_ARGUMENT = re.compile(r'"(command|file_path|path|notebook_path)": "((?:[^"\\]|\\.)*)')


@dataclass(frozen=True, slots=True)
class Step:
    """A tool call: the tool with its command or file, and the file when it has one."""

    name: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that completed or failed. `errors` are its calls that ended in an error, with what they said, compared as
    they are; `steps` all its calls, read for a retry and the run before it alone; `retries` is the run that it retried.
    """

    pk: int
    failed: bool
    errors: tuple[tuple[str, Step | None], ...] = ()
    steps: tuple[Step, ...] = ()
    retries: int | None = None


@dataclass(frozen=True, slots=True)
class Lesson:
    """A text for the project's memories, its category, and the runs that show it, the oldest first."""

    category: str
    text: str
    runs: tuple[int, ...]


def plain(text: str) -> str:
    """Return the first line of a text in plain characters, without what varies, at most LONGEST characters."""
    line = next((line for line in _PREFIX.sub("", text).splitlines() if line.strip()), "")
    return _cut(VARIES.sub("*", fold(line)))


def step_of(call: str) -> Step:
    """Read a call as the log has it: `Bash: {"command": "…"}`, which may be cut."""
    tool, _, argument = call.partition(": ")
    try:
        arguments = json.loads(argument)
    except (ValueError, RecursionError):
        arguments = dict(_CUT_ARGUMENT.findall(argument))
    if not isinstance(arguments, dict):
        arguments = {}
    file = next((arguments[name] for name in _PATHS if isinstance(arguments.get(name), str)), "")
    command = arguments.get("command")
    about = command if isinstance(command, str) else file
    return Step(_cut(f"{tool} {plain(about)}" if about else tool), _cut(fold(file)))


def lessons(runs: Sequence[Run]) -> list[Lesson]:
    """Return what the runs teach, with the most runs first: at most MOST_LESSONS. The same runs give the same texts."""
    shown_by: dict[tuple[str, str], set[int]] = defaultdict(set)
    for one in (*_in_common(runs), *_retries(runs)):
        shown_by[one.category, one.text].update(one.runs)
    all_lessons = [Lesson(category, text, tuple(sorted(pks))) for (category, text), pks in shown_by.items()]
    return sorted(all_lessons, key=lambda one: (-len(one.runs), one.text))[:MOST_LESSONS]


def _in_common(runs: Iterable[Run]) -> Iterable[Lesson]:
    failed: dict[tuple[str, str], set[int]] = defaultdict(set)
    completed: dict[tuple[str, str], set[int]] = defaultdict(set)
    for run in runs:
        for error, step in run.errors:
            features = {
                "failed with the error": error,
                "failed at the step": step.name if step else "",
                "failed while they worked on the file": step.file if step else "",
            }
            for rule, what in features.items():
                if len(what) >= SHORTEST:
                    (failed if run.failed else completed)[rule, what].add(run.pk)
    for (rule, what), pks in failed.items():
        if len(pks) >= SEVERAL and len(pks) > len(completed[rule, what]):
            yield Lesson("warning", f"Several runs of this project {rule} “{what}”.", tuple(sorted(pks)))


def _retries(runs: Sequence[Run]) -> Iterable[Lesson]:
    by_pk = {run.pk: run for run in runs}
    for run in runs:
        before = by_pk.get(run.retries or 0)
        if run.failed or before is None or not before.failed or not before.errors:
            continue
        names = {step.name for step in before.steps}
        new = dict.fromkeys(step.name for step in run.steps if step.name not in names and len(step.name) >= SHORTEST)
        if new:
            did = ", ".join(f"“{name}”" for name in list(new)[:MOST_DIFFERENCES])
            text = (
                f"A run failed with “{before.errors[-1][0]}”; its retry completed and did what the run had not: {did}."
            )
            yield Lesson("learning", text, (before.pk, run.pk))


def _cut(text: str) -> str:
    shown = " ".join(_UNPLAIN.sub(" ", text).split())
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1].rstrip() + "…"


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
    calls = _calls([(session, call) for session, errors in last.items() for call, _ in errors if call])
    return defaultdict(
        list,
        {
            session: [(plain(text), calls.get((session, call or 0))) for call, text in errors]
            for session, errors in last.items()
        },
    )


def _calls(pairs: list[tuple[int, int]]) -> dict[tuple[int, int], Step]:
    by_call: dict[tuple[int, int], Step] = {}
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        wanted = reduce(or_, (Q(session=one, seq=seq) for one, seq in pairs[start : start + PAIRS_AT_ONCE]))
        rows = LogEntry.objects.filter(wanted, kind=LogKind.TOOL_USE).order_by()
        for session, seq, text in rows.values_list("session", "seq", Substr("text", 1, WORDS)):
            by_call[session, seq] = step_of(text)
    return by_call


def _steps(sessions: Iterable[int]) -> dict[int, list[Step]]:
    """Return the first calls of each session: one query for each of a few."""
    by_session: dict[int, list[Step]] = defaultdict(list)
    for session in sorted(sessions):
        rows = LogEntry.objects.filter(session=session, kind=LogKind.TOOL_USE).order_by("seq")
        by_session[session] = [
            step_of(text) for text in rows.values_list(Substr("text", 1, WORDS), flat=True)[:STEPS_A_RUN]
        ]
    return by_session


ACTOR = "system"
CHANNEL = "rules"
WORST = (Exposure.OUTSIDE, Exposure.HOUSE, Exposure.NOTHING)


@dataclass(frozen=True, slots=True)
class Found:
    """A lesson and what became of it: new, confirmed, known, held, discarded, rejected; or proposed, in a dry run."""

    lesson: Lesson
    outcome: str
    memory_id: int | None = None


def learn(project: Project, *, dry_run: bool = False, at: datetime | None = None) -> list[Found]:
    """Learn from the runs of `project` until `at` (UTC, now when None). A second time changes nothing."""
    at = at or timezone.now()
    runs, sessions = runs_of(project, at=at)
    return [
        Found(one, "proposed") if dry_run else _store(project, one, [sessions[pk] for pk in one.runs], at)
        for one in lessons(runs)
    ]


def _store(project: Project, lesson: Lesson, sessions: list[Session], at: datetime) -> Found:
    latest = lesson.runs[-1]
    statement = store.Statement(lesson.category, lesson.text, None, PROJECT.slug)
    counted = MemoryChange.objects.filter(session__in=lesson.runs, candidate_key=statement.key)
    by_session = dict(counted.filter(memory__isnull=False).order_by("pk").values_list("session", "memory"))
    if by_session:
        return _confirm(lesson, next(iter(by_session.values())), latest in by_session, statement.key, at)
    if counted.exists():  # it was deleted: a person did not want it
        return Found(lesson, "rejected")
    earlier = Memory.objects.filter(pk__in=same_text(statement.observation), observation=statement.observation)
    twin = earlier.filter(project=project, taxonomy=PROJECT.slug, category=lesson.category).order_by("pk").first()
    if twin is not None:  # of runs that are too old to be read
        return _confirm(lesson, twin.pk, False, statement.key, at)
    exposure, sources = _exposure(sessions)
    provenance = store.Provenance(
        source=Source.LEARNING,
        actor=ACTOR,
        session_id=latest,
        project_id=project.pk,
        channel=CHANNEL,
        at=at,
        exposure=exposure,
        exposed_to=sources,
        runs=lesson.runs,
        told=told_to(latest),
    )
    # Texts of one form are alike: they are not compared with what people and runs have said.
    result = store.remember(statement, provenance, prepared=store.Prepared(seen=latest_change()))
    outcome = {"created": "new", "reinforced": "confirmed", "duplicate": "known"}.get(result.outcome, result.outcome)
    return Found(lesson, outcome, result.memory_id)


def _confirm(lesson: Lesson, memory_id: int, counted: bool, key: str, at: datetime) -> Found:
    memory = Memory.objects.get(pk=memory_id)
    if memory.verdict == Verdict.HOLD:
        return Found(lesson, "held", memory_id)
    if not memory.active and memory.inactive_reason == Inactive.OPERATOR:
        return Found(lesson, "rejected", memory_id)
    latest = lesson.runs[-1]
    if counted or MemoryChange.objects.filter(memory=memory_id, session__gte=latest, candidate_key=key).exists():
        return Found(lesson, "known", memory_id)
    try:
        verbs.reinforce(
            memory_id,
            by=ACTOR,
            at=at,
            reason=f"Session {latest} showed it again.",
            evidence={"channel": CHANNEL, "runs": list(lesson.runs)},
            session_id=latest,
            candidate_key=key,
            echo=memory_id in told_to(latest),
        )
    except IntegrityError:  # another worker counted this run at the same time
        return Found(lesson, "known", memory_id)
    return Found(lesson, "confirmed", memory_id)


def _exposure(sessions: Iterable[Session]) -> tuple[str, tuple[str, ...]]:
    """Return the worst of what the runs had read, and all outside sources."""
    rows = list(sessions)
    worst = next(one for one in WORST if one == Exposure.NOTHING or any(row.exposure == one for row in rows))
    return str(worst.value), tuple(dict.fromkeys(source for row in rows for source in row.exposed_to))
