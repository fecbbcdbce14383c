"""The list of a project's memories: what it declares, its rows with their uses, and which match its filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from claudeops.lib.charts.sparkline import Sparkline, sparkline
from claudeops.lib.list_page import keyset
from claudeops.lib.list_page.bar import View
from claudeops.lib.list_page.columns import Column
from claudeops.lib.list_page.export import MOST
from claudeops.lib.list_page.keyset import Page, Sort
from claudeops.lib.list_page.page import Action, ListPage
from claudeops.projects.figures import USED_WEEKS, WEEK, week_edges
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.models import Memory, Project
from memories.queries import list as listing
from memories.queries.filters import MemoryFilterSet
from memories.taxonomy import PROJECT
from sessions_app.queries.of_projects import Uses, uses_of

CHANGE = "memories.change_memory"
ACTIONS = {"approve": "a", "renew": "", "extend": "", "deactivate": "d"}
"""The bulk actions of this list, and their keys."""
SHOWN = (*listing.LISTED, "tags", "approved_at")


class ProjectMemoryFilterSet(MemoryFilterSet):
    """The filters of the memories list that say something within one project."""

    project = agent = session = tier = verdict = exposure = active = None  # type: ignore[assignment]


def page_for(project: Project) -> ListPage:
    """Declare the list of one project. Its views count what an index of the project's memories counts."""
    return ListPage(
        ProjectMemoryFilterSet,
        lambda: Memory.objects.filter(project=project),
        views=(
            View("All", "", counted=False),
            View("Active", "status=active", counted=False),
            View("Expires within 14 days", "fades=%3C14d"),
            View("Waiting", "status=waiting", counted=False),
            View("Inactive", "status=inactive", counted=False),
        ),
        example="category:warning fades:<14d, or words",
        shown=("category", "status", "fades", "source"),
        name="project",
        permission="memories.view_memory",
        columns=(
            Column("status", "Status", listing.status_of, fixed=True, bare=True),
            Column("text", "Text", lambda memory: memory.observation, fixed=True),
            Column("category", "Type", lambda memory: memory.category),
            Column("tags", "Tags", lambda memory: ", ".join(map(str, memory.tags))),
            Column("fades", "Expires", lambda memory: memory.expires_at, sort="fades", rising=True),
            Column("told", "Told", lambda memory: memory.told_count, number=True),
            Column("used", "Used, by week", lambda memory: None, number=True),
            Column("helped", "Helped", lambda memory: None, number=True),
        ),
        sorts={key: listing.SORTS[key] for key in ("fades", "-fades")},
        first="fades",
        actions=tuple(Action(name, BULK_ACTIONS[name].label, CHANGE, key=key) for name, key in ACTIONS.items()),
    )


SUGGESTED = (
    *("fades:<7d", "fades:<14d", "fades:<30d", "status:active", "status:waiting", "status:inactive"),
    *(f"category:{name}" for name in PROJECT.categories),
)


def matching(request: HttpRequest, page: ListPage) -> tuple[MemoryFilterSet, QuerySet[Memory]]:
    """Return the filters and all matches; none when the filters are invalid."""
    filters = ProjectMemoryFilterSet(request.GET, queryset=page.rows())
    readable = filters.is_valid() and not page.errors(request)
    return filters, filters.qs.order_by() if readable else Memory.objects.none()


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
    found = uses_of([memory.pk for memory in memories], edges)
    for memory in memories:
        uses = found.get(memory.pk)
        memory.drawn = uses and Drawn(uses, _line(uses, edges))  # type: ignore[attr-defined]


def _line(uses: Uses, edges: Sequence[datetime]) -> Sparkline | None:
    most = max(uses.parts, default=0)
    if not most:
        return None
    points = [(since, number / most) for since, number in zip(edges, uses.parts, strict=False)]
    said = f"Uses by week, in {len(uses.parts)} weeks: {', '.join(map(str, uses.parts))}"
    return sparkline(points, edges[0], edges[-1] - WEEK, said=said)


def _rows(rows: QuerySet[Memory], sort: Sort, size: int, **places: Any) -> Page[Memory]:
    return keyset.page_of(rows.select_related("project").only(*SHOWN), sort, size, **places)


def list_context(request: HttpRequest, project: Project, page: ListPage) -> dict[str, Any]:
    """Return the variables of `projects/_memories.html`."""
    sort, after, before = page.place(request)
    chosen = page.chosen(request)
    filters, rows = matching(request, page)
    found = listing.matching_of(rows, narrowed=True)
    shown = _rows(found.rows, sort, chosen.size, after=after, before=before)
    draw_uses(shown.rows, timezone.now())
    drawn = page.context(request, filters, SUGGESTED, chosen=chosen)
    count = found.count
    return {
        **drawn,
        **page.list_context(request, sort, chosen),
        "may_save": False,
        "column_choices": (),
        "saved_views": (),
        "export_most": f"{MOST:,}",
        "filters": filters,
        "page": shown,
        "count": f"{listing.CAP:,}+" if count > listing.CAP else f"{count:,}",
        "total": "" if count > listing.CAP else count,
        "one": count == 1,
        "on_page": len(shown.rows),
        "bulk_url": reverse("project-bulk", args=[project.slug]),
    }


def exported(request: HttpRequest, page: ListPage) -> Any:
    """Return the file of all that match, in the list's order, with its columns."""
    sort, _, _ = page.place(request)
    _, rows = matching(request, page)
    shown = page.chosen(request).shown - {"helped", "used"}
    return page.export(request.GET["format"], shown, keyset.ordered(rows.select_related("project").only(*SHOWN), sort))
