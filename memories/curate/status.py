"""How each stage of the way from observation to MEMORY.md stands: its last run, what waits since when, its problem."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min
from django.utils import timezone

from memories.curate.reflection.choose import due, news
from memories.llm.roles import chosen
from memories.models import (
    MaintenanceRun,
    MemoryFile,
    Proposal,
    ProposalDecision,
    ProposalState,
    Reflection,
    ReflectionState,
    Tier,
)

OPEN = (ReflectionState.ASKED, ReflectionState.ANSWERED)
MOST = 20
"""Projects that are named, those with the most new observations."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """`count` of something waits, the oldest `since` (UTC; None when nothing waits)."""

    count: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class StageStatus:
    """One stage. `last` (UTC) is when it last ended something, `did` what that was; `what` is what waits, in words.

    `problem` says why it does not go on, "" when it does; `next` what comes, where that is known.
    """

    name: str
    what: str
    waiting: Waiting
    last: datetime | None
    did: str
    problem: str
    next: str = ""


def stages(*, looks_ahead: bool = True) -> list[StageStatus]:
    """Return the stages in the order of the way, by a number of queries that does not grow; with `next` or without."""
    return [_reflect(looks_ahead=looks_ahead), *_triage(), _promote(), _maintain()]


def _reflect(*, looks_ahead: bool) -> StageStatus:
    waiting = Reflection.objects.filter(state__in=OPEN).aggregate(count=Count("pk"), since=Min("created_at"))
    last = Reflection.objects.filter(state=ReflectionState.DONE).order_by("-done_at").first()
    latest = Reflection.objects.first()
    did = f"{last} made {last.counts.get('made', 0)} proposals" if last else ""
    problem = chosen("reflector").off or (latest.problem if latest and latest.state != ReflectionState.DONE else "")
    last_done = last.done_at if last else None
    return StageStatus(
        "reflect", "reflections", Waiting(**waiting), last_done, did, problem, _new() if looks_ahead else ""
    )


def _new() -> str:
    """Say what is new for the global file and when it is due, and how much for each project."""
    new = Counter({slug: number for slug, number in news().items() if slug})
    parts = [f"global: {due(None, MemoryFile.objects.filter(project=None).first(), timezone.now()).why}"]
    parts += [f"{slug}: {number:,} are new" for slug, number in new.most_common(MOST)]
    return "; ".join([*parts, *([f"{len(new) - MOST:,} more projects have something new"] if len(new) > MOST else [])])


def _triage() -> list[StageStatus]:
    rows = Proposal.objects.filter(state=ProposalState.WAITING).order_by().values("tier")
    waiting = {
        row["tier"]: Waiting(row["count"], row["since"])
        for row in rows.annotate(count=Count("pk"), since=Min("created_at"))
    }
    statuses = []
    for tier in Tier:
        last = ProposalDecision.objects.filter(tier=tier).order_by("-at", "-pk").first()
        did = f"{last.verdict} of proposal {last.proposal_id}" if last else ""
        problem = chosen("triage").off if tier == Tier.MODEL else ""
        statuses.append(
            StageStatus(
                f"triage: {tier.label}",
                "proposals",
                waiting.get(tier.value, Waiting(0, None)),
                last.at if last else None,
                did,
                problem,
            )
        )
    return statuses


def _promote() -> StageStatus:
    waiting = Proposal.objects.filter(state=ProposalState.APPROVED).aggregate(
        count=Count("pk"), since=Min("decided_at")
    )
    last = Proposal.objects.filter(state=ProposalState.PROMOTED).order_by("-decided_at", "-pk").first()
    did = f"proposal {last.pk} is commit {last.commit[:7]}" if last else ""
    problems = [f"{file}: {file.problem}" for file in MemoryFile.objects.exclude(problem="").select_related("project")]
    return StageStatus(
        "promote", "approved proposals", Waiting(**waiting), last.decided_at if last else None, did, "; ".join(problems)
    )


def _maintain() -> StageStatus:
    last = MaintenanceRun.objects.first()
    open_ = last if last is not None and last.finished_at is None else None
    waiting = Waiting(1, open_.at) if open_ else Waiting(0, None)
    did = f"{last}: {last.get_state_display()}" if last else ""
    return StageStatus(
        "maintain", "runs", waiting, last.finished_at if last else None, did, last.problem if last else ""
    )
