"""Credit the end of a session to the memories it used, each once.

A session that completed raises the confidence of those whose taxonomy says so, one that failed at its work lowers it;
any other end does neither, an error of the API or the CLI among them. A worker may die between the close and this: the
reaper calls `settle_all()`.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError
from django.db.models import Count, Q
from django.utils import timezone

from memories.lifecycle.credit import Adjustment, Outcomes, adjust, base_rate, credit
from memories.lifecycle.lock import writing
from memories.models import Memory, Project
from memories.models.project import UsedMeans
from memories.taxonomy import PROJECT
from sessions_app.credit.notes import note
from sessions_app.models import OPEN_STATUSES, How, Injected, Session, Status, Trigger, UsedMemory

logger = logging.getLogger(__name__)

NOT_OF_THE_WORK = re.compile(
    r"Could not be started:|Not started:|Ended: |Given up after |The API or the CLI |The process |The transcript |"
    r"The session (?:reached its cost limit|was interrupted|gave no valid structured answer)"
)
"""How the reasons of sessions begin that failed by their API, model, CLI, host, account or budget."""
ENDED = {True: "completed", False: "failed"}
SETTLED_AT_ONCE = 100
"""Sessions of one call."""


def judged(status: str, reason: str) -> bool | None:
    """Return whether the work of a session that ended so succeeded; None where its end says nothing of the work.

    A session that used up its turns failed at its work. Nobody judged one that was stopped, lost, timed out or
    escalated, nor one that something beside its work ended.
    """
    if status == Status.COMPLETED:
        return True
    return False if status == Status.FAILED and not NOT_OF_THE_WORK.match(reason) else None


def note_injected(session: Session) -> int:
    """Keep as used all project memories in the prompt, when the session's project says that these are used.

    Runs in the transaction that closes the session, and returns how many are new.
    """
    project = session.project
    if project is None or project.used_means != UsedMeans.INJECTED or session.trigger == Trigger.IMPORT:
        return 0
    injected = Injected.objects.filter(session=session).values_list("memory_id", flat=True)
    ours = Memory.objects.filter(pk__in=list(injected), taxonomy=PROJECT.slug).visible_to(project)
    return note(session.pk, dict.fromkeys(ours.order_by("pk").values_list("pk", flat=True), How.INJECTED))


def settle(session_id: int, *, at: datetime | None = None) -> int:
    """Credit the end of a session and return how many memories changed. Nothing while it is open, or a second time."""
    at = at or timezone.now()
    with writing():
        session = Session.objects.only("status", "status_reason").filter(pk=session_id).first()
        if session is None or session.status in OPEN_STATUSES:
            return 0
        rows = UsedMemory.objects.filter(session=session_id, credited_at=None)
        ids = list(rows.select_for_update().order_by("memory_id").values_list("memory_id", flat=True))
        helped = judged(session.status, session.status_reason)
        rows.filter(memory_id__in=ids).update(credited_at=at, helped=helped)
        if helped is None or not ids:
            return 0
        reason = f"Session {session_id} used it and {ENDED[helped]}."
        return credit(ids, helped=helped, session_id=session_id, reason=reason, at=at)


def settle_safely(session_id: int, *, at: datetime | None = None) -> int:
    """As `settle()`; an error of the database is logged, and the reaper does it again."""
    try:
        return settle(session_id, at=at)
    except DatabaseError:
        logger.exception("session %s: its end could not be credited to the memories it used", session_id)
        return 0


def settle_all(*, at: datetime | None = None) -> int:
    """Credit the ends of closed sessions whose worker died before it did, and return how many sessions that were."""
    remaining = UsedMemory.objects.filter(credited_at=None).exclude(session__status__in=OPEN_STATUSES)
    ids = list(remaining.values_list("session", flat=True).distinct().order_by("session")[:SETTLED_AT_ONCE])
    for session_id in ids:
        settle_safely(session_id, at=at)
    return len(ids)


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned in one project. `base` is the share of decided uses that helped; 0.0: nothing to learn."""

    project: str
    base: float
    adjustments: list[Adjustment]


def adjust_relevance(
    project: Project | None = None, *, also_set: bool = False, dry_run: bool = False, at: datetime | None = None
) -> list[Learned]:
    """Learn in one project, or in all of them. See `memories.lifecycle.credit` for the formula."""
    results = []
    for one in [project] if project else Project.objects.order_by("slug"):
        outcomes = outcomes_in(one)
        base = base_rate(list(outcomes.values()))
        adjustments = adjust(outcomes, base, also_set=also_set, dry_run=dry_run, at=at) if base else []
        results.append(Learned(one.slug, base, adjustments))
    return results


def outcomes_in(project: Project) -> dict[int, Outcomes]:
    """Return the outcomes of a project's memories that were used by a session which completed or failed."""
    ours = Memory.objects.filter(project=project, taxonomy=PROJECT.slug).order_by().values("pk")
    rows = UsedMemory.objects.filter(helped__isnull=False, memory_id__in=ours).order_by()
    counted = rows.values_list("memory_id").annotate(helped_by=Count("pk", filter=Q(helped=True)), decided=Count("pk"))
    return {pk: Outcomes(helped, decided) for pk, helped, decided in counted}
