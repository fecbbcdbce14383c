"""Read the figures of the projects' pages: a row for each project, and the charts of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, Exists, F, IntegerField, OuterRef, QuerySet, Subquery
from django.urls import reverse
from django.utils import timezone

from claudeops.features.overview.agents import Usual, usual_of
from claudeops.lib import local_time
from claudeops.lib.capped import CappedCount
from claudeops.lib.charts.bars import Bars, Kind, Part, bars
from claudeops.lib.charts.ends import Ends, Owner, ends
from claudeops.lib.charts.strip import Strip
from memories.models import Memory, Project
from memories.queries.list import COLUMNS
from memories.queries.numbers import ends_in_parts, next_end_of, next_of
from sessions_app.models import Agent, Session, UsedMemory
from sessions_app.queries.of_projects import Best, Ended, cost_since, used_in_parts
from sessions_app.queries.usual import last_runs_of_projects
from sessions_app.web.strips import strip_of

SIZE = 50
"""Projects on a page."""
MOST = 1_000
"""Memories and sessions of a project are counted up to here; beyond, a page shows "1,000+"."""
WEEKS = 8
"""Of the chart of what ends, on the list."""
ENDS_WEEKS, USED_WEEKS = 12, 9
"""Of the charts of one project."""
DAY, WEEK = timedelta(days=1), timedelta(weeks=1)
COST = timedelta(days=30)
SOON = 2
"""Weeks whose ends are named in a number."""

ENDING = (
    Kind("now", "failed", "this week", "hatched"),
    Kind("soon", "stopped", "next week"),
    Kind("later", "skipped", "later"),
)
USING = (
    Kind("failed", "failed", "session failed", "hatched"),
    Kind("unknown", "skipped", "neither"),
    Kind("helped", "ok", "helped"),
)


def capped(number: int) -> str:
    return f"{MOST:,}+" if number > MOST else f"{number:,}"


@dataclass(frozen=True, slots=True)
class Row:
    """A project of the list; `next` is the memory that ends next, `cost` US dollars of the last 30 days."""

    project: Any
    strip: Strip
    usual: Usual
    memories: str
    sessions: str
    next: Memory | None
    cost: Decimal


@dataclass(frozen=True, slots=True)
class Projects:
    """The rows of a page, those first whose memories end next, and what ends in the coming weeks."""

    page: Page[Any]
    rows: tuple[Row, ...]
    ends: Ends
    labels: tuple[tuple[float, str], ...]
    cost: Decimal


def _counts(rows: QuerySet[Project]) -> QuerySet[Project]:
    active = Memory.objects.filter(project=OuterRef("pk"), active=True)
    agents = Agent.objects.filter(project=OuterRef("pk")).order_by().values("project").annotate(n=Count("pk"))
    return rows.annotate(
        memory_count=CappedCount(active, MOST),
        session_count=CappedCount(Session.objects.filter(project=OuterRef("pk")), MOST),
        agent_count=Subquery(agents.values("n"), output_field=IntegerField()),
    )


def counted(pk: int) -> Any:
    """Return a project with the numbers of its active memories, sessions and agents. One query."""
    return _counts(Project.objects.filter(pk=pk)).get()


def read(number: str | None, at: datetime) -> Projects:
    """Read a page of projects as of `at` (aware). Eight queries, however many projects there are."""
    own = OuterRef("pk")
    ordered = Project.objects.annotate(next_end=next_end_of(own)).order_by(F("next_end").asc(nulls_last=True), "slug")
    page = Paginator(ordered, SIZE).get_page(number)
    ids = [project.pk for project in page.object_list]
    by_id = _counts(Project.objects.filter(pk__in=ids)).annotate(next_memory=next_of(own)).in_bulk()
    ending = [one.next_memory for one in by_id.values() if one.next_memory]
    memories = Memory.objects.only(*COLUMNS).in_bulk(ending)
    runs, costs = last_runs_of_projects(ids), cost_since(ids, at - COST)
    today = start_of_day(at)
    days = ends_in_parts(ids, today, DAY, WEEKS * 7)
    rows = []
    for pk in ids:
        project: Any = by_id[pk]
        rows.append(
            Row(
                project,
                strip_of(runs.get(pk, [])),
                usual_of(runs.get(pk, [])),
                capped(project.memory_count),
                capped(project.session_count),
                memories.get(project.next_memory),
                costs.get(pk, Decimal(0)),
            )
        )
    owners = [
        Owner(one.project.slug, f"{reverse('project', args=[one.project.slug])}?fades=%3C{WEEKS * 7}d", days[pk])
        for pk, one in zip(ids, rows, strict=True)
        if pk in days
    ]
    return Projects(
        page,
        tuple(rows),
        ends(owners, WEEKS),
        tuple((100 * week / WEEKS, _week_label(today, week, at)) for week in range(0, WEEKS, 2)),
        sum((row.cost for row in rows), Decimal(0)),
    )


def start_of_day(at: datetime) -> datetime:
    """Return the last midnight of the active zone."""
    return timezone.localtime(at).replace(hour=0, minute=0, second=0, microsecond=0)


def week_edges(at: datetime, weeks: int) -> list[datetime]:
    """Return where the last `weeks` spans of seven days begin and end, the last one with today."""
    end = start_of_day(at) + DAY
    return [end - WEEK * (weeks - n) for n in range(weeks + 1)]


def _week_label(today: datetime, week: int, at: datetime) -> str:
    return local_time.day(today + WEEK * week, at) if week else "today"


@dataclass(frozen=True, slots=True)
class OfProject:
    """The charts of one project, and how its sessions ended; `never` counts the active memories that none used.

    `never` is None for more than MOST memories. `best` is the memory that helped most, with its numbers.
    """

    ends: Bars
    soon: int
    used: Bars
    told: Ended
    others: Ended
    never: int | None
    best: Best | None
    best_memory: Memory | None
    weeks: int = USED_WEEKS

    @property
    def groups(self) -> tuple[tuple[str, Ended], ...]:
        return ("Used one", self.told), ("Used none", self.others)


def of_project(project: Project, at: datetime, memories: int) -> OfProject:
    """Read the charts of a project with so many active `memories`, as of `at` (aware). Five queries."""
    today = start_of_day(at)
    ending = ends_in_parts([project.pk], today, WEEK, ENDS_WEEKS)[project.pk]
    edges = week_edges(at, USED_WEEKS)
    used = used_in_parts(project.pk, edges)
    address = reverse("project", args=[project.slug])
    return OfProject(
        ends=bars(
            "What expires next, by week", _ending(ending, today, address, at), ENDING, end=_until(today, at), labels=3
        ),
        soon=sum(ending[week] for week in range(SOON)),
        used=bars("Memories used, by week", _using(used.parts, edges, project, at), USING, end="now", labels=3),
        told=used.told,
        others=used.others,
        never=_never_used(project) if memories <= MOST else None,
        best=used.best,
        best_memory=Memory.objects.filter(pk=used.best.memory_id).first() if used.best else None,
    )


def _until(today: datetime, at: datetime) -> str:
    return local_time.day(today + WEEK * ENDS_WEEKS, at)


def _ending(ending: Counter[int], today: datetime, address: str, at: datetime) -> list[Part]:
    parts = []
    for week in range(ENDS_WEEKS):
        kind = ENDING[min(week, 2)].name
        since, until = today + WEEK * week, today + WEEK * (week + 1) - DAY
        words = f"{local_time.day(since, at)} to {local_time.day(until, at)}"
        bounds = f"{7 * week}d..{7 * (week + 1)}d" if week else "%3C7d"
        parts.append(Part(_week_label(today, week, at), words, f"{address}?fades={bounds}", {kind: ending[week]}))
    return parts


def _using(parts: Sequence[Counter[str]], edges: Sequence[datetime], project: Project, at: datetime) -> list[Part]:
    sessions = reverse("sessions")
    chart_parts = []
    for numbers, (since, until) in zip(parts, pairwise(edges), strict=True):
        words = f"{local_time.day(since, at)} to {local_time.day(until - DAY, at)}"
        span = f"{local_time.iso(since)}..{local_time.iso(until)}".replace("+", "%2B")
        url = f"{sessions}?project={project.slug}&ended={span}"
        chart_parts.append(Part(local_time.day(since, at), words, url, numbers))
    return chart_parts


def _never_used(project: Project) -> int:
    used = UsedMemory.objects.filter(memory_id=OuterRef("pk"))
    return Memory.objects.filter(~Exists(used), project=project, active=True).count()
