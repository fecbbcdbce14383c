"""Read the figures of agents' files: a row for each file of a project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from claudeops.agent_files.lines import Limit, size_of
from memories.models import AgentCapture, AgentFile, AgentFileConflict, AgentFileEntry, CaptureOutcome, Project

MOST = 200
"""Files of a project that its tab shows."""
WEEK = timedelta(days=7)


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
    told = AgentFileEntry.objects.filter(**mine, memory__last_told_at__isnull=False).order_by("-memory__last_told_at")
    rows = (
        AgentFile.objects.filter(project=project)
        .select_related("project")
        .defer("text")
        .annotate(
            items=_count(AgentFileEntry.objects.filter(**mine, left_because=""), "file"),
            open_conflicts=_count(AgentFileConflict.objects.filter(**mine, answered_at=None), "file"),
            refused=_count(refused, "agent"),
            told_at=Subquery(told.values("memory__last_told_at")[:1]),
        )
        .order_by(F("open_conflicts").desc(), "agent")
    )
    return [Row(row, size_of(row)) for row in rows[:MOST]]


def _count(rows: QuerySet[Any], by: str) -> Coalesce:
    counted = rows.order_by().values(by).annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)
