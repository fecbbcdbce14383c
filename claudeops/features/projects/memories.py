"""The list of a project's memories: what it declares, and its rows with their uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from django.http.response import StreamingHttpResponse
from django.urls import reverse
from django.utils import timezone

from claudeops.features.projects.figures import USED_WEEKS, WEEK, week_edges
from claudeops.lib.charts.sparkline import Sparkline, sparkline
from claudeops.lib.list_view.columns import Action, BuiltIn, Column
from memories.lifecycle.bulk import BULK_ACTIONS, EXTENDED_DAYS
from memories.models import Memory, Project
from memories.queries import list as listing
from memories.queries.filters import MemoryFilterSet
from memories.taxonomy import PROJECT
from memories.web.memories import CHANGE, MemoryList
from sessions_app.queries.of_projects import Uses, uses_of

ACTIONS = {"approve": "a", "renew": "", "extend": "", "deactivate": "d"}
"""The bulk actions of this list, and their keys."""


class ProjectMemoryFilterSet(MemoryFilterSet):
    """The filters of the memories list that say something within one project."""

    project = agent = session = tier = verdict = exposure = active = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a row says of a memory's uses; `line` is None when it was not used of late."""

    uses: Uses
    line: Sparkline | None

    @property
    def percent(self) -> int:
        """How often it helped of the times it was used."""
        return round(100 * self.uses.helped / self.uses.used)


def draw_uses(memories: Sequence[Memory], at: datetime) -> None:
    """Give each memory its uses (`drawn`), None when it was never used. Two queries for all."""
    edges = week_edges(at, USED_WEEKS)
    by_id = uses_of([memory.pk for memory in memories], edges)
    for memory in memories:
        uses = by_id.get(memory.pk)
        memory.drawn = uses and Drawn(uses, _line(uses, edges))  # type: ignore[attr-defined]


def _line(uses: Uses, edges: Sequence[datetime]) -> Sparkline | None:
    most = max(uses.parts, default=0)
    if not most:
        return None
    points = [(since, number / most) for since, number in zip(edges, uses.parts, strict=False)]
    summary = f"Uses by week, in {len(uses.parts)} weeks: {', '.join(map(str, uses.parts))}"
    return sparkline(points, edges[0], edges[-1] - WEEK, said=summary)


class ProjectMemories(MemoryList, has_address=False):
    """The list of one `project`; it has no poll, and nobody keeps columns or views of it.

    Its views count what an index of the project's memories counts.
    """

    project: Project | None = None
    name, template, row_template = "project-memories", "projects/_memories.html", "projects/_memory_row.html"
    filterset = ProjectMemoryFilterSet
    fields = ("category", "status", "fades", "source")
    example = "category:warning fades:<14d, or words"
    built_in = (
        BuiltIn("All", "", counted=False),
        BuiltIn("Active", "status=active", counted=False),
        BuiltIn("Expires within 14 days", "fades=%3C14d"),
        BuiltIn("Waiting", "status=waiting", counted=False),
        BuiltIn("Inactive", "status=inactive", counted=False),
    )
    columns = (
        Column("status", "Status", listing.status_of, fixed=True, bare=True),
        Column("text", "Text", lambda memory: memory.observation, fixed=True),
        Column("category", "Type", lambda memory: memory.category),
        Column("tags", "Tags", lambda memory: ", ".join(map(str, memory.tags))),
        Column("fades", "Expires", lambda memory: memory.expires_at, sort="fades", rising=True),
        Column("told", "Told", lambda memory: memory.told_count, number=True),
        Column("used", "Used, by week", lambda memory: None, number=True),
        Column("helped", "Helped", lambda memory: None, number=True),
    )
    sorts, first = {key: listing.SORTS[key] for key in ("fades", "-fades")}, "fades"
    actions = tuple(Action(name, BULK_ACTIONS[name].label, CHANGE, key=key) for name, key in ACTIONS.items())
    row_acts = (CHANGE,)
    is_kept = polled = False

    @property
    def address(self) -> str:
        assert self.project is not None  # noqa: S101
        return self.with_query(reverse("project", args=[self.project.slug]))

    def bulk_url(self) -> str:
        assert self.project is not None  # noqa: S101
        return reverse("project-bulk", args=[self.project.slug])

    def all_rows(self) -> QuerySet[Memory]:
        return Memory.objects.filter(project=self.project)

    def listed(self, rows: QuerySet[Memory]) -> QuerySet[Memory]:
        return rows.select_related("project").only(*listing.LISTED, "tags", "approved_at")

    @cached_property
    def few(self) -> list[int] | None:
        return listing.few_of(self.matches)

    def drawn(self, rows: Sequence[Memory]) -> Sequence[Memory]:
        draw_uses(rows, timezone.now())
        return rows

    def suggested(self) -> tuple[str, ...]:
        return (
            *("fades:<7d", "fades:<14d", "fades:<30d", "status:active", "status:waiting", "status:inactive"),
            *(f"category:{name}" for name in PROJECT.categories),
        )

    def extra(self) -> dict[str, Any]:
        return {"extended_days": EXTENDED_DAYS}

    def exported(self) -> StreamingHttpResponse:
        self.shown -= {"used", "helped"}
        return super().exported()
