"""The histogram above the list of sessions: how many ended in each hour, of those that the filters match.

It shows the shortest range that the filters of time reach back in; `ended` is the part that is brushed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from claudeops.lib import periods
from claudeops.lib.change_token import hash_of
from claudeops.lib.charts.bars import STEP, Bars, bars
from claudeops.lib.list_view.histogram import edges_of, parts_of, range_since
from claudeops.lib.list_view.view import query_of
from claudeops.lib.periods import Period, Range
from sessions_app.models import Session
from sessions_app.models.session import OPEN_STATUSES
from sessions_app.queries import outcomes
from sessions_app.queries.filters import GROUPS, UNFINISHED, SessionFilterSet

HEIGHT = 44.0
TIME = "ended"
COUNTED = {TIME, "status"}
"""The filters that the counts by hour answer; with another one the rows are counted."""
AS_LONG = {"week": "7d", "month": "30d"}
"""The range for a value of `age` or `spent`."""
SHAPE = {"sort", "size", "format", "range"}
"""Parameters that do not change which sessions match."""


@dataclass(frozen=True, slots=True)
class Hours:
    """`brush` is where the selection begins and how wide it is, in units of the plot; None without one."""

    range: Range
    chart: Bars
    brush: tuple[float, float] | None
    rest: str
    """The query of the address without the selection."""
    state: str


def hours_of(request: HttpRequest, filters: SessionFilterSet) -> Hours | None:
    """Count what the filters match, whatever is brushed. None where nothing can have ended: of open sessions."""
    if not filters.is_valid():
        return None
    given = filters.form.cleaned_data
    if given["status"] in (*OPEN_STATUSES, UNFINISHED):
        return None
    now = timezone.now()
    shortest = AS_LONG.get(given["age"] or given["spent"], periods.FIRST)
    one = range_since([given["since"], given[TIME] and given[TIME].since], shortest, now)
    edges = edges_of(one, now)
    rest = query_of(request.GET, TIME)
    found = _counted(filters, given, edges)
    parts = parts_of(one, edges, found, reverse("sessions"), rest, TIME)
    chart = bars(f"Sessions that ended, by {one.part}, {one.words}", parts, outcomes.OUTCOMES, height=HEIGHT, labels=7)
    state = hash_of([edges, [sorted(numbers.items()) for numbers in found], str(given[TIME]), rest])
    return Hours(one, chart, _brush(given[TIME], edges), rest, state)


def _counted(filters: SessionFilterSet, given: dict[str, Any], edges: tuple[datetime, ...]) -> Any:
    asked = {name for name, value in given.items() if value not in (None, "")} - SHAPE
    if asked <= COUNTED:
        status = given["status"]
        return outcomes.in_parts(edges, GROUPS.get(status, (status,)) if status else None)
    rows = Session.objects.all()
    for name in given.keys() - {TIME}:
        rows = filters.filters[name].filter(rows, given[name])
    return outcomes.of_rows_in_parts(rows, edges)


def _brush(period: Period | None, edges: tuple[datetime, ...]) -> tuple[float, float] | None:
    """Return the bars that lie in the period, as place and width; None when it has all of them, or none."""
    if period is None:
        return None
    within = [
        n
        for n, (since, until) in enumerate(pairwise(edges))
        if (period.since is None or since >= period.since) and (period.until is None or until <= period.until)
    ]
    if not within or len(within) == len(edges) - 1:
        return None
    return within[0] * STEP, len(within) * STEP


@require_safe
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def hours(request: HttpRequest) -> HttpResponse:
    """Answer the histogram's poll: 204 when the browser (`seen`) shows it as it is."""
    found = hours_of(request, SessionFilterSet(request.GET, queryset=Session.objects.all()))
    if found is None or found.state == request.GET.get("seen"):
        return HttpResponse(status=204)
    return render(request, "sessions/_hours.html", {"hours": found, "query": query_of(request.GET)})
