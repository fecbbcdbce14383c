"""Read the figures of agents' files: a row for each file of a project, what was captured, when it was told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, IntegerField, Max, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from claudeops.features.agent_files.lines import Limit, size_of
from memories.capture.fields import agent_id
from memories.models import AgentCapture, AgentFile, AgentFileConflict, AgentFileEntry, CaptureOutcome, Project
from sessions_app.models import Agent, HookReceipt, Session

MOST = 200
"""Files of a project that its tab shows."""
WEEK, MONTH = timedelta(days=7), timedelta(days=30)
REASONS = 20
"""Most reasons of what was captured that a page names."""
SESSIONS = 2_000
"""Most sessions of an agent that are counted, the latest ones."""


@dataclass(frozen=True, slots=True)
class Row:
    """A file of the list. `file` has `items`, `open_conflicts`, `told_at` and `refused` (in 7 days) beside its own."""

    file: Any
    size: Limit


def files_of(project: Project, at: datetime) -> Sequence[Row]:
    """Read the files of a project, those with conflicts first, as of `at` (aware). One query."""
    mine = {"file": OuterRef("pk")}
    refused = AgentCapture.objects.filter(
        project=project, agent=OuterRef("agent"), at__gte=at - WEEK, outcome=CaptureOutcome.REFUSED
    )
    entries = AgentFileEntry.objects.filter(**mine, memory__last_told_at__isnull=False).order_by(
        "-memory__last_told_at"
    )
    rows = (
        AgentFile.objects.filter(project=project)
        .select_related("project")
        .defer("text")
        .annotate(
            items=_count(AgentFileEntry.objects.filter(**mine, left_because=""), "file"),
            open_conflicts=_count(AgentFileConflict.objects.filter(**mine, answered_at=None), "file"),
            refused=_count(refused, "agent"),
            told_at=Subquery(entries.values("memory__last_told_at")[:1]),
        )
        .order_by(F("open_conflicts").desc(), "agent")
    )
    return [Row(row, size_of(row)) for row in rows[:MOST]]


def _count(rows: QuerySet[Any], by: str) -> Coalesce:
    counted = rows.order_by().values(by).annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


@dataclass(frozen=True, slots=True)
class Captures:
    """What was captured for a file in 30 days: (outcome, reason, count), the latest taken and the latest refused."""

    reasons: Sequence[tuple[str, str, int]]
    taken: int
    refused: int
    last_taken: AgentCapture | None
    last_refused: AgentCapture | None


def captures_of(file: AgentFile, at: datetime) -> Captures:
    """Count what was captured as of `at` (aware). Three queries on one index."""
    rows = AgentCapture.objects.filter(project=file.project_id, agent=file.agent, at__lte=at)
    counted = (
        rows.filter(at__gte=at - MONTH)
        .order_by()
        .values("outcome", "reason")
        .annotate(number=Count("pk"))
        .order_by("-number", "outcome", "reason")
    )
    counts = [(row["outcome"], row["reason"], row["number"]) for row in counted[:SESSIONS]]
    successes = (CaptureOutcome.CAPTURED, CaptureOutcome.CONFIRMED)
    return Captures(
        [(str(CaptureOutcome(outcome).label), reason, number) for outcome, reason, number in counts[:REASONS]],
        sum(number for outcome, _, number in counts if outcome in successes),
        sum(number for outcome, _, number in counts if outcome == CaptureOutcome.REFUSED),
        rows.filter(outcome__in=successes).order_by("-at", "-pk").first(),
        rows.filter(outcome=CaptureOutcome.REFUSED).order_by("-at", "-pk").first(),
    )


@dataclass(frozen=True, slots=True)
class Injections:
    """When the file was last told and with how many tokens, and how often in 30 days: to sessions and by hooks."""

    at: datetime | None
    tokens: int
    session: int | None
    times: int


def agents_of(file: AgentFile) -> list[Agent]:
    """Return the agents whose file it is, those of its project first."""
    agents = [one for one in Agent.objects.only("slug", "project_id") if agent_id(one.slug) == file.agent]
    return sorted(agents, key=lambda one: (one.project_id != file.project_id, one.slug))


def injections_of(file: AgentFile, agents: Sequence[Agent], at: datetime) -> Injections:
    """Read when the file was told as of `at` (aware). Three queries."""
    rows = Session.objects.filter(
        project=file.project_id, agent__in=agents, queued_at__gte=at - MONTH, receipt__agent_file__file=file.pk
    ).order_by("-queued_at")
    receipts = list(rows.values_list("pk", "receipt__created_at", "receipt__agent_file__tokens")[:SESSIONS])
    receipts = [row for row in receipts if row[2]]
    hooks = HookReceipt.objects.filter(project=file.project_id, agent=file.agent, at__gte=at - MONTH)
    summed = hooks.aggregate(number=Count("pk"), last=Max("at"))
    by_hook = hooks.order_by("-at").first() if summed["number"] else None
    if by_hook is not None and (not receipts or by_hook.at > receipts[0][1]):
        return Injections(by_hook.at, by_hook.tokens, by_hook.session_id, len(receipts) + summed["number"])
    if receipts:
        return Injections(receipts[0][1], receipts[0][2], receipts[0][0], len(receipts) + summed["number"])
    return Injections(None, 0, None, 0)
