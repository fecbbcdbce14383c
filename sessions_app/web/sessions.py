"""`/sessions`: the list with its filters and pages, its poll, and running a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from statistics import median
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.cache import cache
from django.db.models import F, QuerySet, Value
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from claudeops.lib.capped import CAP, Count
from claudeops.lib.change_token import read_token
from claudeops.lib.list_page import hold
from claudeops.lib.list_page.bar import View
from claudeops.lib.list_page.columns import SIZE, Chosen, Column, size_of
from claudeops.lib.list_page.export import FORMATS, MOST
from claudeops.lib.list_page.keyset import Page, Place, Sort, both, moment, ordered, page_of, part_of, whole_to
from claudeops.lib.list_page.page import Action, ListPage, declare
from claudeops.lib.masked import masked_note
from memories.models import Project
from sessions_app import queue
from sessions_app.errors import SessionsError
from sessions_app.models import Agent, Session, Status, Trigger
from sessions_app.models.session import OPEN_STATUSES
from sessions_app.queries.filters import UNFINISHED, WENT_WRONG, SessionFilterSet
from sessions_app.web import changes
from sessions_app.web.forms import RunForm
from sessions_app.web.hours import hours_of

HAND_OVER = "Give agents credentials in their environment (CLAUDEOPS_PASS_ENV) or in a file, not in the task."


def dollars_of(text: str) -> Decimal:
    """Parse the cost of a place. Raises ValueError."""
    try:
        found = Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None
    if not found.is_finite() or not 0 <= found < 10**12:
        raise ValueError(text)
    return found


SORTS = {
    sort.key: sort
    for sort in (
        *both("queued", "queued", F("queued_at"), "queued_at", moment),
        *both("duration", "duration", F("duration_ms"), "duration_ms", whole_to(2**63 - 1)),
        *both("cost", "cost", F("cost_usd"), "cost_usd", dollars_of),
    )
}
FIRST = "-queued"

PAGE = declare(
    ListPage(
        SessionFilterSet,
        Session.objects.all,
        views=(View("All", ""),),
        example="status:failed agent:homelab-watch cost:>0.5, or words",
        shown=("status", "agent", "ended", "age", "trigger", "cost", "tier", "project", "by"),
        name="sessions",
        permission="sessions_app.view_session",
        columns=(
            Column("status", "Status", lambda session: session.status, fixed=True, bare=True),
            Column("summary", "Summary", lambda session: outcome_of(session), fixed=True),
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
        ),
        sorts=SORTS,
        first=FIRST,
        own_views=lambda user: own_views(user),
        actions=(
            Action("stop", "Stop", "sessions_app.stop_session", key="s", asks=True, bad=True),
            Action("again", "Run again", "sessions_app.run_session", key="r", asks=True),
        ),
    )
)

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

COLUMNS = (
    *(*changes.SHOWN, "queued_at", "stats", "agent", "agent__slug", "stop_requested_at"),
    *("status_reason", "model", "requested_by"),
)


def in_words(error: SessionsError) -> str:
    return f"{error} {error.fix}".strip()


def outcome_of(session: Session) -> str:
    """Say in one line what came of a session, or why it waits."""
    if session.status == Status.QUEUED:
        return session.hold_reason or "waits for a worker"
    if session.status == Status.RUNNING:
        return f"stop requested by {session.stop_requested_by}" if session.stop_requested_at else "running"
    return session.ended_with or str(session.get_status_display())


@dataclass(frozen=True, slots=True)
class Found:
    """A page of the list that is not read yet."""

    filters: SessionFilterSet
    rows: QuerySet[Session]
    sort: Sort
    after: Place | None
    before: Place | None
    chosen: Chosen

    @property
    def state(self) -> str:
        """Hash what the page shows, in one query. Read it before the rows."""
        return changes.list_state(
            part_of(self.rows, self.sort, self.chosen.size, after=self.after, before=self.before), self.chosen.size
        )

    def read(self) -> Page[Session]:
        page = page_of(self.rows.only(*COLUMNS), self.sort, self.chosen.size, after=self.after, before=self.before)
        draw_rows(page.rows)
        return page


def draw_rows(sessions: Sequence[Session]) -> None:
    """Give each session its `outcome`, and its `share` of the longest one that has ended on the page, in percent."""
    longest = max((session.duration_ms for session in sessions if not session.is_open), default=0)
    for session in sessions:
        lasted = session.lasted_ms or 0
        session.share = max(2, min(100, round(100 * lasted / (longest or lasted)))) if lasted else 0  # type: ignore[attr-defined]
        session.outcome = outcome_of(session)  # type: ignore[attr-defined]


def polls(page: Page[Session]) -> bool:
    """Whether a page polls: the first may get new rows; others change only while a session on them is open."""
    return not page.back or any(session.is_open for session in page.rows)


def matching(request: HttpRequest) -> tuple[SessionFilterSet, QuerySet[Session]]:
    """Return the filters and all matches; none when the filters are invalid."""
    filters = SessionFilterSet(request.GET, queryset=Session.objects.all())
    readable = filters.is_valid() and not PAGE.errors(request)
    return filters, filters.qs if readable else Session.objects.none()


def _found(request: HttpRequest) -> Found:
    filters, rows = matching(request)
    sort, after, before = PAGE.place(request)
    return Found(filters, rows.select_related("agent"), sort, after, before, PAGE.chosen(request))


def _context(request: HttpRequest, found: Found, page: Page[Session], state: str) -> dict[str, Any]:
    valid = found.filters.is_valid()
    rows = found.rows.order_by() if valid else Session.objects.none()
    place = {name: request.GET[name] for name in ("before", "after") if page.back and name in request.GET}
    if found.chosen.size != SIZE and "size" not in request.GET:
        place["size"] = str(found.chosen.size)
    narrowed = bool(PAGE.filters_of(request))
    totals = totals_of(rows) if narrowed and page.rows else None
    count = (
        totals.count if totals else rows.order_by()[: CAP + 1].count() if page.further or page.back else len(page.rows)
    )
    spent = valid and found.filters.form.cleaned_data.get("spent")
    return {
        **PAGE.list_context(request, found.sort, found.chosen),
        "filters": found.filters,
        "page": page,
        "polls": polls(page) and valid,
        "count": Count(count).shown,
        "total": "" if count > CAP else count,
        "one": count == 1,
        "totals": totals,
        "taken": found.filters.qs.cost_and_turns() if spent else None,
        "place": urlencode(place),
        "seen": changes.list_token(state, page.rows),
        "bulk_url": reverse("sessions-bulk"),
    }


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums of a narrowed list: `by_status` in the order of the statuses, `median_ms` of those that ended."""

    count: int
    by_status: tuple[tuple[str, int], ...]
    cost: Decimal
    median_ms: int | None


def totals_of(rows: QuerySet[Session]) -> Totals | None:
    """Sum up a narrowed list in one query; None when it has more than FEW rows."""
    found = list(rows.order_by().values_list("status", "cost_usd", "duration_ms")[: FEW + 1])
    if len(found) > FEW:
        return None
    counts = Counter(status for status, _, _ in found)
    lasted = [duration for status, _, duration in found if duration and status not in OPEN_STATUSES]
    return Totals(
        len(found),
        tuple((status.label, counts[status]) for status in Status if counts[status]),
        sum((cost for _, cost, _ in found), Decimal(0)),
        round(median(lasted)) if lasted else None,
    )


def last_night(now: datetime) -> View:
    """Return the view of what went wrong since yesterday, 18:00 in the active zone. `now` is aware."""
    evening = timezone.localtime(now).replace(hour=EVENING, minute=0, second=0, microsecond=0) - timedelta(days=1)
    query = urlencode({"status": WENT_WRONG, "ended": f"{evening:%Y-%m-%dT%H:%M}.."})
    return View("Failed last night", query, f"Failed, timed out or lost since {evening:%A %H:%M} ({evening:%Z})")


def own_views(user: Any) -> list[View]:
    """Return the views whose filter depends on the time, on who asks and on what sessions cost of late."""
    views = [last_night(timezone.now()), View("Running", f"status={UNFINISHED}")]
    last = Session.objects.order_by("-queued_at", "-id").values_list("cost_usd", flat=True)[:LAST]
    costs = cache.get_or_set(COSTS, lambda: sorted(cost for cost in last if cost), COSTS_SECONDS) or []
    if len(costs) >= 10:
        least = costs[-(len(costs) // 10)]
        query = urlencode({"cost": f">={least:.4f}", "sort": "-cost"})
        views.append(View(f"Dear, from ${least:.2f}", query, f"The tenth of the last {LAST} that cost most", False))
    return [*views, View("Mine", urlencode({"by": user.get_username()}), "", False)]


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


def _list(request: HttpRequest, form: RunForm, *, status: int = 200) -> HttpResponse:
    found = _found(request)
    state = found.state
    context = {**_context(request, found, found.read(), state), "form": form, "export_most": f"{MOST:,}"}
    context["hours"] = hours_of(request, found.filters)
    agents = offer(form, found.filters.form)
    suggested = (*SUGGESTED, *(f"agent:{slug}" for slug in agents[:MOST_SUGGESTED]))
    context |= PAGE.context(request, found.filters, suggested, own_views(request.user), chosen=found.chosen)
    return render(request, "sessions/list.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def sessions(request: HttpRequest) -> HttpResponseBase:
    if request.method == "POST":
        return _run(request)
    if request.GET.get("format") in FORMATS:
        sort, _, _ = PAGE.place(request)
        rows = ordered(matching(request)[1].select_related("agent").only(*COLUMNS), sort)
        return PAGE.export(request.GET["format"], PAGE.chosen(request).shown, rows)
    return PAGE.redirect(request) or _list(request, RunForm(initial={"agent": request.GET.get("agent", "")}))


@permission_required("sessions_app.run_session", raise_exception=True)
def _run(request: HttpRequest) -> HttpResponse:
    form = RunForm(request.POST)
    if not form.is_valid():
        return _list(request, form, status=422)
    try:
        made = queue.request_session(trigger=Trigger.MANUAL, by=request.user.get_username(), **form.asked())
    except SessionsError as error:
        form.add_error(None, in_words(error))
        return _list(request, form, status=422)
    say_asked(request, made)
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


@require_safe
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def rows(request: HttpRequest) -> HttpResponse:
    """Answer the list's poll: 204 when the browser (`seen`) shows everything, else what changed."""
    seen = read_token(request.GET.get("seen", ""))
    if set(request.GET) <= {"seen", "size", "hold"}:  # without filters the rows are known without building the form
        size = size_of(request.GET.get("size", "")) or SIZE
        if seen.state == changes.list_state(part_of(Session.objects.all(), SORTS[FIRST], size), size):
            return HttpResponse(status=204)
    found = _found(request)
    if not found.filters.is_valid():
        return HttpResponse("The filter cannot be read.", status=400, content_type="text/plain")
    state = found.state
    if seen.state == state:
        return HttpResponse(status=204)
    page = found.read()
    context = _context(request, found, page, state)
    if not seen.rows or not page.rows:  # an empty list has no row to insert beside
        response = render(request, "sessions/_list.html", context)
        response["HX-Retarget"], response["HX-Reswap"] = "#sessions", "outerHTML"
        return response
    news = changes.list_changes(seen, page.rows)
    if hold.holds(request, news):
        kept = hold.pushed_off(found.rows.only(*COLUMNS), news)
        draw_rows(kept)
        news = changes.list_changes(seen, page.rows, kept)
        context |= hold.held(request, seen, state, news, changes.key_of, changes.mark_of)
        return render(request, "sessions/_rows.html", context)
    return render(request, "sessions/_rows.html", {**context, "news": news})
