"""Store what the rules found as memories of the project, through the gate, with the runs as evidence.

A lesson's natural key is its text: a run counts once for it, and a new run confirms it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError
from django.utils import timezone

from memories import store
from memories.candidates import latest_change, same_text
from memories.lifecycle import verbs
from memories.models import Exposure, Inactive, Memory, MemoryChange, Project, Source, Verdict
from memories.taxonomy import PROJECT
from sessions_app.learning.rules import Lesson, lessons
from sessions_app.learning.runs import runs_of
from sessions_app.models import Session
from sessions_app.receipts import told_to

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
    known = dict(counted.filter(memory__isnull=False).order_by("pk").values_list("session", "memory"))
    if known:
        return _confirm(lesson, next(iter(known.values())), latest in known, statement.key, at)
    if counted.exists():  # it was deleted: a person did not want it
        return Found(lesson, "rejected")
    earlier = Memory.objects.filter(pk__in=same_text(statement.observation), observation=statement.observation)
    said = earlier.filter(project=project, taxonomy=PROJECT.slug, category=lesson.category).order_by("pk").first()
    if said is not None:  # of runs that are too old to be read
        return _confirm(lesson, said.pk, False, statement.key, at)
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
    made = store.remember(statement, provenance, prepared=store.Prepared(seen=latest_change()))
    outcome = {"created": "new", "reinforced": "confirmed", "duplicate": "known"}.get(made.outcome, made.outcome)
    return Found(lesson, outcome, made.memory_id)


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
