"""`/memories`: the list with its filters, order and pages, its poll, and adding a memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import permission_required
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from claudeops.lib.change_token import read_token
from claudeops.lib.charts.sparkline import sparkline
from claudeops.lib.distinct import distinct_values
from claudeops.lib.list_page import hold
from claudeops.lib.list_page.bar import View
from claudeops.lib.list_page.columns import Chosen, Column
from claudeops.lib.list_page.export import FORMATS, MOST
from claudeops.lib.list_page.keyset import Page, Sort
from claudeops.lib.list_page.page import Action, ListPage, declare
from claudeops.lib.masked import masked_note
from memories import store
from memories.errors import MemoriesError
from memories.history.confidence import confidence_since
from memories.history.forecast import forecast
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.models import Memory, Source, Trust
from memories.queries import list as listing
from memories.queries.filters import CATEGORIES, STATUSES, MemoryFilterSet
from memories.taxonomy import GENERAL
from memories.templatetags.claudeops import memory_link
from memories.web import changes
from memories.web.answers import actor, moved
from memories.web.forms import AddForm

CHANGE, DELETE = "memories.change_memory", "memories.delete_memory"
KEYS = {"approve": "a", "reject": "r", "confirm": "c", "deactivate": "d"}
IN_REACH = (*KEYS, "reassign")
"""Bulk actions with a button of their own; the others stand behind "…"."""

PAGE = declare(
    ListPage(
        MemoryFilterSet,
        Memory.objects.all,
        views=(
            View("All", ""),
            View("Fades next", "fades=%3C14d&sort=fades"),
            View("Held", "status=held"),
            View("Never told", "status=active&told=0"),
            View("Contradicted", "status=contradicted"),
            View("Inactive", "status=inactive"),
        ),
        example="service:jellyfin fades:<14d told:>5, or words",
        shown=("service", "status", "fades", "category", "told", "confidence_min", "confidence_max", "source"),
        name="memories",
        permission="memories.view_memory",
        columns=(
            Column("status", "Status", listing.status_of, fixed=True, bare=True),
            Column("text", "Text", lambda memory: memory.observation, fixed=True),
            Column("service", "Service", lambda memory: memory.service, sort="service", rising=True),
            Column("category", "Category", lambda memory: memory.category),
            Column("confidence", "Confidence, 30 d", lambda memory: memory.confidence, sort="confidence", number=True),
            Column("fades", "Fades", lambda memory: fades_at(memory), sort="fades", rising=True),
            Column("told", "Told", lambda memory: memory.told_count, sort="told", number=True),
            Column("confirmed", "Confirmed", lambda memory: memory.updated_at, sort="updated"),
            Column("source", "From", lambda memory: memory.session_id or memory.get_source_display()),
            Column("why", "Why", listing.why_of, shown=False),
            Column("exposure", "Read before", lambda memory: memory.get_exposure_display(), shown=False),
            Column("trust", "Trusted as", lambda memory: memory.get_trust_display(), shown=False),
            Column("project", "Project", lambda memory: memory.project and memory.project.slug, shown=False),
            Column("taxonomy", "Taxonomy", lambda memory: memory.taxonomy, shown=False),
            Column("tier", "Tier", lambda memory: memory.tier, shown=False, number=True),
        ),
        sorts=listing.SORTS,
        first=listing.FIRST,
        actions=(
            *(
                Action(
                    action.name,
                    action.label,
                    DELETE if action.name == "delete" else CHANGE,
                    key=KEYS.get(action.name, ""),
                    asks=bool(action.confirm or action.params),
                    bad=action.name == "delete",
                    folded=action.name not in IN_REACH,
                )
                for action in BULK_ACTIONS.values()
            ),
            Action("export", "Export as JSON lines", "memories.view_memory", folded=True),
            Action(
                "purge",
                "Forget everywhere",
                "sessions_app.purge_memory",
                asks=True,
                bad=True,
                folded=True,
                url="purges",
            ),
        ),
    )
)

SUGGESTED = (
    *("fades:<7d", "fades:<14d", "fades:<30d", "told:0", "told:>5"),
    *(f"status:{name}" for name, _ in STATUSES),
    *(f"trust:{name}" for name in Trust.values),
)

MOST_KNOWN = 250
"""Rows that a poll names: those of the page, and those pushed off it that the browser still shows."""
FACETS = 6
LINE = timedelta(days=30)
"""How far back the small line of a memory's confidence goes."""


@dataclass(frozen=True, slots=True)
class Found:
    filters: MemoryFilterSet
    rows: QuerySet[Memory]
    count: int
    sort: Sort
    page: Page[Memory]
    chosen: Chosen


query_of = PAGE.query_of


def fades_at(memory: Memory) -> datetime | None:
    return forecast(memory, timezone.now()).inactive_at


def matching(request: HttpRequest) -> tuple[MemoryFilterSet, QuerySet[Memory]]:
    """Return the filters and all matches; none when the filters are invalid."""
    filters = MemoryFilterSet(request.GET, queryset=Memory.objects.all())
    readable = filters.is_valid() and not PAGE.errors(request)
    return filters, filters.qs.order_by() if readable else Memory.objects.none()


def _facets(request: HttpRequest, found: Found) -> list[dict[str, Any]]:
    """Return the services with most of the matches, to narrow the list to; none for a long or a narrowed list."""
    if request.GET.get("service") or not found.page.rows or found.count > listing.FEW:
        return []
    rows = found.rows.order_by().values("service").annotate(count=Count("pk")).order_by("-count", "service")
    rest = query_of(request)
    named = [(row["service"] or GENERAL, row["count"]) for row in rows[:FACETS]]
    return [
        {"label": name, "count": count, "query": f"{rest}&{query}" if rest else query}
        for name, count in named
        for query in [urlencode({"service": name})]
    ]


def draw_lines(memories: Sequence[Memory], chosen: Chosen) -> None:
    """Give each memory the line of its confidence (`spark`) where the column is shown. One query for all."""
    if "confidence" not in chosen.shown or not memories:
        return
    now = timezone.now()
    start = now - LINE
    for memory, past in zip(memories, confidence_since(memories, start).values(), strict=True):
        points = [(point.at, point.confidence) for point in past]
        began = next((value for at, value in reversed(points) if at <= start), points[0][1])
        said = f"{memory.confidence:.2f}; {LINE.days} days ago or at first {began:.2f}"
        memory.spark = sparkline(points, start, now, said=said)  # type: ignore[attr-defined]


def found_by(request: HttpRequest) -> Found:
    sort, after, before = PAGE.place(request)
    chosen = PAGE.chosen(request)
    filters, rows = matching(request)
    found = listing.matching_of(rows, narrowed=bool(PAGE.filters_of(request)))
    page = listing.page_of(found.rows, sort, size=chosen.size, after=after, before=before)
    draw_lines(page.rows, chosen)
    return Found(filters, found.rows, found.count, sort, page, chosen)


def place_of(request: HttpRequest) -> dict[str, str]:
    return {name: request.GET[name] for name in ("after", "before") if request.GET.get(name)}


def context_of(request: HttpRequest, found: Found, shown: list[Memory], seen: int) -> dict[str, Any]:
    """Return the context of the list; `shown` are the rows in the browser, `seen` the latest change known."""
    count = found.count
    polling = {**place_of(request), "seen": changes.token_of(seen, shown)}
    return {
        **PAGE.list_context(request, found.sort, found.chosen),
        "page": found.page,
        "count": f"{listing.CAP:,}+" if count > listing.CAP else f"{count:,}",
        "total": "" if count > listing.CAP else count,
        "one": count == 1,
        "on_page": len(shown),
        "polling": urlencode(polling),
        "bulk_url": reverse("memories-bulk"),
        "handed_on": f"?{urlencode({'from': query})}" if (query := query_of(request)) else "",
        "filters": found.filters,
    }


def row_context(request: HttpRequest, memory: Memory) -> dict[str, Any]:
    """Return the context of one row, with the columns that the person has chosen."""
    chosen = PAGE.chosen(request)
    draw_lines([memory], chosen)
    return {"memory": memory, "shown": dict.fromkeys(chosen.shown, True)}


def _list(request: HttpRequest, form: AddForm, *, status: int = 200) -> HttpResponse:
    seen = listing.latest_change()  # before the rows: changes in between are reported again, not missed
    found = found_by(request)
    services = [*distinct_values(Memory, "service"), GENERAL]
    named = (*(f"category:{name}" for name in CATEGORIES), *(f"service:{name}" for name in services))
    context = context_of(request, found, found.page.rows, seen)
    context |= PAGE.context(request, found.filters, (*SUGGESTED, *named), chosen=found.chosen)
    context["facets"] = _facets(request, found)
    context["export_most"] = f"{MOST:,}"
    return render(request, "memories/list.html", {**context, "form": form, "services": services}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@permission_required("memories.view_memory", raise_exception=True)
def memories(request: HttpRequest) -> HttpResponseBase:
    if request.method == "POST":
        return _add(request)
    if request.GET.get("format") in FORMATS:
        return _export(request)
    return PAGE.redirect(request) or _list(request, AddForm())


def _export(request: HttpRequest) -> StreamingHttpResponse:
    """Return what the list shows, all of it, in its order."""
    sort, _, _ = PAGE.place(request)
    shown = PAGE.chosen(request).shown
    _, rows = matching(request)
    found = listing.ordered(rows, sort)
    return PAGE.export(request.GET["format"], shown, found)


@permission_required("memories.add_memory", raise_exception=True)
def _add(request: HttpRequest) -> HttpResponse:
    form = AddForm(request.POST)
    if not form.is_valid():
        return _list(request, form, status=422)
    given = form.cleaned_data
    statement = store.Statement(
        category=given["category"],
        text=given["observation"],
        service=given["service"],
        taxonomy=given["taxonomy"] or "ops",
        confidence=given["confidence"],
        surface=given["surface"],
    )
    said = store.Provenance(source=Source.HUMAN, actor=actor(request), channel="human")
    try:
        made = store.remember(statement, said)
    except MemoriesError as error:
        form.add_error("observation", str(error))
        return _list(request, form, status=422)
    note = masked_note(request.POST.get("observation", ""))
    return moved(request, reverse("memories"), format_html("{} is added.{}", memory_link(made.memory_id), note))


@require_safe
@never_cache
@permission_required("memories.view_memory", raise_exception=True)
def rows(request: HttpRequest) -> HttpResponse:
    """Poll the list: 204 when nothing happened since the change `seen`, else what changed on the page."""
    latest = listing.latest_change()
    seen = read_token(request.GET.get("seen", ""))
    if seen.state == str(latest):
        return HttpResponse(status=204)
    found = found_by(request)
    if not found.filters.is_valid():
        return HttpResponse("The filter cannot be read.", status=400, content_type="text/plain")
    known = hold.known_ids(seen)
    if not known or not found.page.rows:  # from or to an empty list there is no row to insert beside
        context = context_of(request, found, found.page.rows, latest)
        response = render(request, "memories/_list.html", context)
        response["HX-Retarget"], response["HX-Reswap"] = "#memories", "outerHTML"
        return response
    here = {row.pk for row in found.page.rows}
    elsewhere = [pk for pk in known if pk not in here][: max(0, MOST_KNOWN - len(here))]
    pushed_off = list(listing.ordered(found.rows.filter(pk__in=elsewhere), found.sort)) if elsewhere else []
    draw_lines(pushed_off, found.chosen)
    context = context_of(request, found, [*found.page.rows, *pushed_off], latest)
    since = seen.state
    touched = listing.touched_since(int(since), known) if since.isdecimal() and len(since) < 19 else set()
    news = changes.changes(seen, found.page.rows, pushed_off, touched)
    if hold.holds(request, news):
        context |= hold.held(request, seen, str(latest), news, changes.key_of, changes.mark_of)
        context["polling"] = urlencode({**place_of(request), "seen": context["seen"]})
        context["on_page"] -= context["held"]
        return render(request, "memories/_rows.html", context)
    return render(request, "memories/_rows.html", {**context, "news": news})
