"""The histogram above the list of sessions: how many ended in each hour, of those that the filters match.

It shows the shortest range that the filters of time reach back in; `ended` is the part that is brushed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from claudeops.lib import local_time, periods
from claudeops.lib.change_token import hash_of
from claudeops.lib.charts.bars import STEP, Bars, Part, bars
from claudeops.lib.periods import Period, Range
from sessions_app.models import Session
from sessions_app.models.session import OPEN_STATUSES
from sessions_app.queries import outcomes
from sessions_app.queries.filters import GROUPS, UNFINISHED, SessionFilterSet
from sessions_app.web.paging import query_of

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
    one = _range(given, now)
    edges = periods.edges_of(one, now, timezone.get_current_timezone())
    rest = _without_selection(request)
    address = f"{request.path.removesuffix('/hours')}?{rest}{'&' if rest else ''}"
    spans = [periods.write(since, until) for since, until in pairwise(edges)]
    found = _counted(filters, given, edges)
    parts = [
        Part(
            local_time.label_of_part(one, since),
            local_time.words_of_part(one, since, until),
            address + urlencode({TIME: span}, safe=":"),
            numbers,
            span,
        )
        for (since, until), span, numbers in zip(pairwise(edges), spans, found, strict=True)
    ]
    chart = bars(f"Sessions that ended, by {one.part}, {one.words}", parts, outcomes.OUTCOMES, height=HEIGHT, labels=7)
    state = hash_of([edges, [sorted(numbers.items()) for numbers in found], str(given[TIME]), rest])
    return Hours(one, chart, _brush(given[TIME], edges), rest, state)


def _range(given: dict[str, Any], now: datetime) -> Range:
    """Return the shortest range in which the filters of time begin."""
    zone = timezone.get_current_timezone()
    starts = [start for start in (given["since"], given[TIME] and given[TIME].since) if start]
    named = (AS_LONG.get(given["age"] or given["spent"]), periods.FIRST)
    shortest = periods.RANGES[next(filter(None, named))]
    longer = (one for one in periods.RANGES.values() if one.length >= shortest.length)
    fits = (one for one in longer if all(periods.edges_of(one, now, zone)[0] <= start for start in starts))
    return next(fits, periods.RANGES["90d"])


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


def _without_selection(request: HttpRequest) -> str:
    given = request.GET.copy()
    given.pop(TIME, None)
    request_without: Any = HttpRequest()
    request_without.GET = given
    return query_of(request_without)


@require_safe
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def hours(request: HttpRequest) -> HttpResponse:
    """Answer the histogram's poll: 204 when the browser (`seen`) shows it as it is."""
    found = hours_of(request, SessionFilterSet(request.GET, queryset=Session.objects.all()))
    if found is None or found.state == request.GET.get("seen"):
        return HttpResponse(status=204)
    return render(request, "sessions/_hours.html", {"hours": found, "query": query_of(request)})
