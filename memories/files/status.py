"""How the agents' memory files stand: what they hold, what the last week brought, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q

from claudeops.lib.tracked_file.disk import Unusable
from memories.files import storage
from memories.files.document import Document, parse
from memories.files.limits import Limits, exceeded
from memories.files.sync import agents_of
from memories.models import AgentCapture, AgentFile, CaptureOutcome, Project

WEEK = timedelta(days=7)
NOT_TAKEN = (CaptureOutcome.REFUSED, CaptureOutcome.HELD)


@dataclass(slots=True)
class Status:
    """One agent's file. `captured` counts the last seven days by outcome, `refused` what was not taken by reason.

    `left_out` are memories that have no room in the file, `older` the files of older names beside it. The file of an
    agent that has none yet is not stored.
    """

    file: AgentFile
    limits: Limits
    document: Document
    left_out: int = 0
    conflicts: int = 0
    captured: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    older: tuple[str, ...] = ()
    told_at: datetime | None = None

    @property
    def items(self) -> int:
        return len(self.document.entries)

    @property
    def exceeded(self) -> list[str]:
        return exceeded(self.document, self.limits)

    def taken(self, *outcomes: CaptureOutcome) -> int:
        return sum(self.captured.get(outcome, 0) for outcome in outcomes)

    def as_data(self) -> dict[str, Any]:
        file = self.file
        return {
            "project": file.project.slug,
            "agent": file.agent,
            "path": file.path or storage.relative_path(file.project, file.agent),
            "enabled": file.enabled,
            "enabled_at": file.enabled_at if file.pk else None,
            "enabled_by": file.enabled_by,
            "enabled_reason": file.enabled_reason,
            "state": file.state,
            "problem": file.problem,
            "bytes": self.document.size,
            "limits": self.limits.as_dict(),
            "exceeded": self.exceeded,
            "sections": {section.name: len(section.entries) for section in self.document.sections if section.line >= 0},
            "items": self.items,
            "left_out": self.left_out,
            "conflicts": self.conflicts,
            "synced_at": file.synced_at,
            "written_at": file.written_at,
            "written_by": file.written_by,
            "told_at": self.told_at,
            "last_week": self.captured,
            "not_taken": self.refused,
            "older_files": list(self.older),
        }


def statuses(project: Project | None, at: datetime) -> list[Status]:
    """Return the files of a project, or of all, by project and agent; also of agents that have no file yet.

    As many queries for one file as for many of its project. `at` is aware UTC.
    """
    rows = AgentFile.objects.select_related("project").annotate(
        left_out=Count("entries", filter=~Q(entries__left_because=""), distinct=True),
        open_conflicts=Count("conflicts", filter=Q(conflicts__answered_at=None), distinct=True),
    )
    rows = rows.filter(project=project) if project is not None else rows
    by_agent = {(row.project_id, row.agent): _status(row) for row in rows.order_by("project__slug", "agent")}
    for one in [project] if project is not None else Project.objects.exclude(path=""):
        for agent in _without_file(one, by_agent):
            by_agent[one.pk, agent] = _status(AgentFile(project=one, agent=agent))
        for name, agent in _older(one):
            if (one.pk, agent) in by_agent:
                by_agent[one.pk, agent].older += (name,)
    _count_captures(by_agent, at)
    return sorted(by_agent.values(), key=lambda one: (one.file.project.slug, one.file.agent))


def _status(file: AgentFile) -> Status:
    return Status(
        file,
        Limits.of(file.limits, file.project.files_limits),
        parse(file.text.encode()),
        getattr(file, "left_out", 0),
        getattr(file, "open_conflicts", 0),
    )


def _without_file(project: Project, keys: Iterable[tuple[int, str]]) -> list[str]:
    has_file = {agent for pk, agent in keys if pk == project.pk}
    try:
        on_disk = storage.agents_on_disk(project) if project.path else []
    except Unusable:
        on_disk = []
    return sorted({*agents_of(project), *on_disk} - has_file)


def _older(project: Project) -> list[tuple[str, str]]:
    try:
        return storage.older_names(project) if project.path else []
    except Unusable:
        return []


def _count_captures(by_agent: dict[tuple[int, str], Status], at: datetime) -> None:
    projects = {pk for pk, _ in by_agent}
    rows = AgentCapture.objects.filter(project__in=projects, at__gt=at - WEEK).order_by()
    for pk, agent, outcome, reason, count in rows.values_list("project", "agent", "outcome", "reason").annotate(
        count=Count("pk")
    ):
        status = by_agent.get((pk, agent))
        if status is None:
            continue
        status.captured[outcome] = status.captured.get(outcome, 0) + count
        if outcome in NOT_TAKEN:
            why = reason or "no reason given"
            status.refused[why] = status.refused.get(why, 0) + count
