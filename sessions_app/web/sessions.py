"""`/sessions`: the list with its filters and pages, its poll, its histogram, and running a session.

It shows the shortest range that the filters of time reach back in; `ended` is the part that is brushed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.db.models import F, QuerySet, Value
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from claudeops.lib import capped, periods, times
from claudeops.lib.answers import in_words, page
from claudeops.lib.change_token import hash_of
from claudeops.lib.charts.bars import STEP, Bars, bars
from claudeops.lib.list_view.columns import Action, BuiltIn, Column
from claudeops.lib.list_view.histogram import edges_of, parts_of, range_since
from claudeops.lib.list_view.keyset import both, part_of, whole_to
from claudeops.lib.list_view.view import ListView, query_of
from claudeops.lib.masked import masked_note
from claudeops.lib.periods import Period, Range
from memories.models import Project
from sessions_app import queue
from sessions_app.errors import SessionsError
from sessions_app.models import Agent, Session, Status, Trigger
from sessions_app.models.session import OPEN_STATUSES
from sessions_app.queries import outcomes
from sessions_app.queries.filters import GROUPS, UNFINISHED, WENT_WRONG, SessionFilterSet
from sessions_app.web.forms import RunForm

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
    cleaned = filters.form.cleaned_data
    if cleaned["status"] in (*OPEN_STATUSES, UNFINISHED):
        return None
    now = timezone.now()
    shortest = AS_LONG.get(cleaned["age"] or cleaned["spent"], periods.FIRST)
    one = range_since([cleaned["since"], cleaned[TIME] and cleaned[TIME].since], shortest, now)
    edges = edges_of(one, now)
    rest = query_of(request.GET, TIME)
    counts = _counted(filters, cleaned, edges)
    parts = parts_of(one, edges, counts, reverse("sessions"), rest, TIME)
    chart = bars(f"Sessions that ended, by {one.part}, {one.words}", parts, outcomes.OUTCOMES, height=HEIGHT, labels=7)
    state = hash_of([edges, [sorted(numbers.items()) for numbers in counts], str(cleaned[TIME]), rest])
    return Hours(one, chart, _brush(cleaned[TIME], edges), rest, state)


def _counted(filters: SessionFilterSet, cleaned: dict[str, Any], edges: tuple[datetime, ...]) -> Any:
    names = {name for name, value in cleaned.items() if value not in (None, "")} - SHAPE
    if names <= COUNTED:
        status = cleaned["status"]
        return outcomes.in_parts(edges, GROUPS.get(status, (status,)) if status else None)
    rows = Session.objects.all()
    for name in cleaned.keys() - {TIME}:
        rows = filters.filters[name].filter(rows, cleaned[name])
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


@page("sessions_app.view_session")
def hours(request: HttpRequest) -> HttpResponse:
    """Answer the histogram's poll: 204 when the browser (`seen`) shows it as it is."""
    histogram = hours_of(request, SessionFilterSet(request.GET, queryset=Session.objects.all()))
    if histogram is None or histogram.state == request.GET.get("seen"):
        return HttpResponse(status=204)
    return render(request, "sessions/_hours.html", {"hours": histogram, "query": query_of(request.GET)})


HAND_OVER = "Give agents credentials in their environment (CLAUDEOPS_PASS_ENV) or in a file, not in the task."
SUGGESTED = ("status:running", "status:failed", "status:went_wrong", "age:day", "age:week", "cost:>0.5")
MOST_SUGGESTED = 50
CHOICES: dict[str, Any] = {"agent": Agent, "project": Project}
LAST = 200
"""Sessions among whose costs one is dear if it is in the highest tenth."""
COSTS, COSTS_SECONDS = "session-costs", 60
"""Cache key, and how long (seconds) the same costs are compared."""
FEW = 500
"""Up to this many matches are summed up; the costs of more are on the overview."""
EVENING = 18
"""The hour, in the person's zone, at which the last night began."""
SHOWN = (
    *("id", "status", "status_reason", "hold_reason", "summary", "cost_usd", "num_turns", "duration_ms", "dry_run"),
    *("stop_requested_by", "started_at", "ended_at", "tier", "trigger", "agent_id", "ingest_offset"),
)
"""The columns that a row of the list shows. The ingest offset stands for a running session's counters."""

COLUMNS = (
    *(*SHOWN, "queued_at", "stats", "agent", "agent__slug", "stop_requested_at"),
    *("status_reason", "model", "requested_by"),
)


def dollars_of(text: str) -> Decimal:
    """Parse the cost of a place. Raises ValueError."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None
    if not amount.is_finite() or not 0 <= amount < 10**12:
        raise ValueError(text)
    return amount


def outcome_of(session: Session) -> str:
    """Say in one line what came of a session, or why it waits."""
    if session.status == Status.QUEUED:
        return session.hold_reason or "waits for a worker"
    if session.status == Status.RUNNING:
        return f"stop requested by {session.stop_requested_by}" if session.stop_requested_at else "running"
    return session.ended_with or str(session.get_status_display())


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums of a narrowed list: `by_status` in the order of the statuses, `median_ms` of those that ended."""

    count: int
    by_status: tuple[tuple[str, int], ...]
    cost: Decimal
    median_ms: int | None


def totals_of(rows: QuerySet[Session]) -> Totals | None:
    """Sum up a narrowed list in one query; None when it has more than FEW rows."""
    values = list(rows.order_by().values_list("status", "cost_usd", "duration_ms")[: FEW + 1])
    if len(values) > FEW:
        return None
    counts = Counter(status for status, _, _ in values)
    lasted = [duration for status, _, duration in values if duration and status not in OPEN_STATUSES]
    return Totals(
        len(values),
        tuple((status.label, counts[status]) for status in Status if counts[status]),
        sum((cost for _, cost, _ in values), Decimal(0)),
        round(median(lasted)) if lasted else None,
    )


def last_night(now: datetime) -> BuiltIn:
    """Return the view of what went wrong since yesterday, 18:00 in the active zone. `now` is aware."""
    evening = timezone.localtime(now).replace(hour=EVENING, minute=0, second=0, microsecond=0) - timedelta(days=1)
    query = urlencode({"status": WENT_WRONG, "ended": f"{evening:%Y-%m-%dT%H:%M}.."})
    return BuiltIn("Failed last night", query, f"Failed, timed out or lost since {evening:%A %H:%M} ({evening:%Z})")


def own_views(user: Any) -> list[BuiltIn]:
    """Return the views whose filter depends on the time, on who asks and on what sessions cost of late."""
    views = [last_night(timezone.now()), BuiltIn("Running", f"status={UNFINISHED}")]
    last = Session.objects.order_by("-queued_at", "-id").values_list("cost_usd", flat=True)[:LAST]
    costs = cache.get_or_set(COSTS, lambda: sorted(cost for cost in last if cost), COSTS_SECONDS) or []
    if len(costs) >= 10:
        least = costs[-(len(costs) // 10)]
        query = urlencode({"cost": f">={least:.4f}", "sort": "-cost"})
        views.append(
            BuiltIn(f"Expensive, above ${least:.2f}", query, f"The tenth of the last {LAST} that cost most", False)
        )
    return [*views, BuiltIn("Mine", urlencode({"by": user.get_username()}), "", False)]


def offer(*forms: Any) -> list[str]:
    """Offer the agents and projects in the fields of these names, read by one query; return the agents' slugs."""
    kinds = [model.objects.order_by().values_list(Value(name), "slug") for name, model in CHOICES.items()]
    slugs = sorted(kinds[0].union(*kinds[1:], all=True))
    for form in forms:
        for name in CHOICES:
            field = form.fields[name]
            nobody = [(field.null_value, field.null_label)] if getattr(field, "null_label", None) else []
            own = [(slug, slug) for kind, slug in slugs if kind == name]
            field.widget.choices = [("", field.empty_label), *nobody, *own]
    return [slug for kind, slug in slugs if kind == "agent"]


def list_state(rows: QuerySet[Session], size: int) -> str:
    """Hash the columns that `size` rows of the list show, in one query. Call it before reading the rows."""
    return hash_of(list(rows.values_list(*SHOWN))[:size])


class SessionList(ListView):
    name, heading, one = "sessions", "Sessions", "session"
    template, row_template, count_template = "sessions/list.html", "sessions/_row.html", "sessions/_totals.html"
    permission_required = "sessions_app.view_session"
    model, filterset = Session, SessionFilterSet
    fields = ("status", "agent", "ended", "age", "trigger", "cost", "tier", "project", "by")
    example = "status:failed agent:homelab-watch cost:>0.5, or words"
    built_in = (BuiltIn("All", ""),)
    columns = (
        Column("status", "Status", lambda session: session.status, fixed=True, bare=True),
        Column("summary", "Summary", outcome_of, fixed=True),
        Column("number", "No.", lambda session: session.pk, number=True),
        Column("agent", "Agent", lambda session: session.agent.slug if session.agent else None),
        Column("trigger", "Trigger", lambda session: session.trigger),
        Column("started", "Started", lambda session: session.started_at, sort="queued"),
        Column("duration", "Duration", lambda session: session.lasted_ms, sort="duration", number=True),
        Column("turns", "Turns", lambda session: session.num_turns, number=True),
        Column("cost", "Cost", lambda session: session.cost_usd, sort="cost", number=True),
        Column("learned", "Learned", lambda session: session.learned, number=True),
        Column("tier", "Tier", lambda session: session.tier, shown=False, number=True),
        Column("model", "Model", lambda session: session.model, shown=False),
        Column("by", "Requested by", lambda session: session.requested_by, shown=False),
        Column("ended", "Ended", lambda session: session.ended_at, shown=False),
    )
    sorts = {
        **both("queued", "queued", F("queued_at"), "queued_at", times.parse),
        **both("duration", "duration", F("duration_ms"), "duration_ms", whole_to(2**63 - 1)),
        **both("cost", "cost", F("cost_usd"), "cost_usd", dollars_of),
    }
    first = "-queued"
    actions = (
        Action("stop", "Stop", "sessions_app.stop_session", key="s", asks=True, bad=True),
        Action("again", "Run again", "sessions_app.run_session", key="r", asks=True),
    )
    row_acts = ("sessions_app.view_session",)
    polled = True
    own_views = staticmethod(own_views)

    def listed(self, rows: QuerySet[Session]) -> QuerySet[Session]:
        return rows.select_related("agent").only(*COLUMNS)

    def drawn(self, rows: Sequence[Session]) -> Sequence[Session]:
        """Give each session its `outcome`, and its `share` in percent of the longest one on the page that has ended."""
        longest = max((session.duration_ms for session in rows if not session.is_open), default=0)
        for session in rows:
            lasted = session.lasted_ms or 0
            session.share = max(2, min(100, round(100 * lasted / (longest or lasted)))) if lasted else 0  # type: ignore[attr-defined]
            session.outcome = outcome_of(session)  # type: ignore[attr-defined]
        return rows

    @cached_property
    def state(self) -> str:
        """Hash what the page shows, in one query: a session has no column that says when it changed."""
        places = {"after": self.place("after"), "before": self.place("before")}
        return list_state(part_of(self.matches, self.sort, self.size, **places), self.size)

    def mark(self, row: Session) -> str:
        return hash_of([getattr(row, name) for name in SHOWN])

    def polls(self) -> bool:
        """The first page may get new rows; others change only while a session on them is open."""
        return not self.page.back or any(session.is_open for session in self.rows)

    @cached_property
    def totals(self) -> Totals | None:
        return totals_of(self.matches) if self.narrowed and self.rows else None

    @cached_property
    def count(self) -> capped.Count:
        return capped.Count(self.totals.count) if self.totals else super().count

    def rows_extra(self) -> dict[str, Any]:
        spent = self.is_readable and self.narrowed and self.filters.form.cleaned_data.get("spent")
        return {"totals": self.totals, "taken": self.filters.qs.cost_and_turns() if spent else None}

    def extra(self) -> dict[str, Any]:
        return {"hours": hours_of(self.request, self.filters)}

    def response(self, *, status: int = 200, form: RunForm | None = None, **more: Any) -> HttpResponse:
        form = form or RunForm(initial={"agent": self.request.GET.get("agent", "")})
        agents = offer(form, self.filters.form)
        suggested = (*SUGGESTED, *(f"agent:{slug}" for slug in agents[:MOST_SUGGESTED]))
        return super().response(status=status, form=form, suggested=suggested, **more)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Run a session."""
        if not request.user.has_perm("sessions_app.run_session"):
            raise PermissionDenied
        form = RunForm(request.POST)
        if not form.is_valid():
            return self.response(form=form, status=422)
        try:
            session = queue.request_session(trigger=Trigger.MANUAL, by=request.user.get_username(), **form.asked())
        except SessionsError as error:
            form.add_error(None, in_words(error))
            return self.response(form=form, status=422)
        say_asked(request, session)
        if note := masked_note(form.cleaned_data["prompt"]):
            messages.warning(request, f"{note.strip()} {HAND_OVER}")
        return HttpResponseRedirect(reverse("sessions"))


def said_of(made: Session) -> tuple[int, SafeString]:
    """Return the level of the message about a session that was requested, and its text."""
    link = format_html('<a href="{}">Session {}</a>', reverse("session", args=[made.pk]), made.pk)
    if made.hold_reason:
        return messages.WARNING, format_html("{} is held. {}", link, made.hold_reason)
    return messages.SUCCESS, format_html("{} is queued; it starts as soon as a worker is free.", link)


def say_asked(request: HttpRequest, made: Session) -> None:
    level, text = said_of(made)
    messages.add_message(request, level, text)
