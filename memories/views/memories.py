"""`/memories`: the list with its filters, its order and its pages, what is new in it, and adding to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import permission_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from memories import listing, store, tokens
from memories.adminkit import distinct_values
from memories.bulk import BULK_ACTIONS
from memories.errors import MemoriesError
from memories.filters import MemoryFilterSet
from memories.forms import AddForm, PlaceForm
from memories.models import Memory, Source
from memories.taxonomy import GENERAL
from memories.views.answers import actor, moved

SHOWN_FILTERS = ("text", "service", "category", "status", "confidence_min", "confidence_max", "taxonomy", "source")
"""The other filters are folded away until one of them is used."""

NOT_FILTERS = ("after", "before", "seen", "rows")
NOT_CHOSEN = {"", "unknown"}
"""What a form sends for a field in which nothing was chosen."""

MOST_KEPT = 200


@dataclass(frozen=True, slots=True)
class Found:
    """What an address asks for; `rows` are all that match, as many as `count` (see `listing.matching_of`)."""

    filters: MemoryFilterSet
    rows: QuerySet[Memory]
    count: int
    sort: listing.Sort
    page: listing.Page


def query_of(request: HttpRequest, *without: str) -> str:
    """The filters and the order of the address, without the place in the list."""
    given = request.GET.copy()
    for name in (*NOT_FILTERS, *without):
        given.pop(name, None)
    for name in [name for name in given if not set(given.getlist(name)) - NOT_CHOSEN]:
        del given[name]
    return given.urlencode()


def matching(request: HttpRequest) -> tuple[MemoryFilterSet, QuerySet[Memory]]:
    """The filters of the address and all that match; none when they cannot be read."""
    filters = MemoryFilterSet(request.GET, queryset=Memory.objects.all())
    return filters, filters.qs.order_by() if filters.is_valid() else Memory.objects.none()


def found_by(request: HttpRequest) -> Found:
    sort, after, before = PlaceForm(request.GET).found()
    filters, rows = matching(request)
    found = listing.matching_of(rows, narrowed=bool(query_of(request, "sort")))
    page = listing.page_of(found.rows, sort, after=after, before=before)
    return Found(filters, found.rows, found.count, sort, page)


def _sorts(request: HttpRequest, current: listing.Sort) -> dict[str, dict[str, str]]:
    """For each column that sorts: where a click on its head leads, and how it is sorted now."""
    rest = query_of(request, "sort")
    heads = {}
    for sort in listing.SORTS.values():
        name = sort.key.removeprefix("-")
        if name in heads:
            continue
        here = current.key.removeprefix("-") == name
        other = ("" if current.descending else "-") + name if here else sort.key
        order = ("descending" if current.descending else "ascending") if here else "none"
        heads[name] = {"query": f"{rest}&sort={other}" if rest else f"sort={other}", "order": order}
    return heads


def context_of(request: HttpRequest, found: Found, shown: list[Memory], seen: int) -> dict[str, Any]:
    """What the list and its fragments show; `shown` are the rows in the browser, `seen` the last change they know."""
    count = found.count
    filtered = query_of(request, "sort")
    place = {name: request.GET[name] for name in ("after", "before") if request.GET.get(name)}
    polling = {**place, "seen": seen, "rows": tokens.token(shown)}
    return {
        "page": found.page,
        "count": f"{listing.CAP:,}+" if count > listing.CAP else f"{count:,}",
        "total": "" if count > listing.CAP else count,
        "one": count == 1,
        "filtered": filtered,
        "query": query_of(request),
        "polling": urlencode(polling),
        "sorts": _sorts(request, found.sort),
        "actions": list(BULK_ACTIONS.values()),
        "filters": found.filters,
    }


def _filter_fields(filters: MemoryFilterSet) -> dict[str, Any]:
    fields = {name: filters.form[name] for name in filters.form.fields}
    more = [field for name, field in fields.items() if name not in SHOWN_FILTERS]
    return {
        "filter_fields": [fields[name] for name in SHOWN_FILTERS],
        "more_filters": more,
        "more_used": any(str(field.value() or "") not in NOT_CHOSEN or field.errors for field in more),
    }


def _list(request: HttpRequest, form: AddForm, *, status: int = 200) -> HttpResponse:
    seen = listing.latest_change()  # before the rows: what comes in between is told again, not missed
    found = found_by(request)
    context = context_of(request, found, found.page.rows, seen) | _filter_fields(found.filters)
    services = [*distinct_values(Memory, "service"), GENERAL]
    return render(request, "memories/list.html", {**context, "form": form, "services": services}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@permission_required("memories.view_memory", raise_exception=True)
def memories(request: HttpRequest) -> HttpResponse:
    """`/memories`: the list; a POST adds a memory."""
    if request.method == "POST":
        return _add(request)
    return _list(request, AddForm())


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
    )
    said = store.Provenance(source=Source.HUMAN, actor=actor(request), channel="human")
    try:
        made = store.remember(statement, said)
    except MemoriesError as error:
        form.add_error("observation", str(error))
        return _list(request, form, status=422)
    return moved(request, reverse("memories"), f"Memory {made.memory_id} is added.")


@require_safe
@never_cache
@permission_required("memories.view_memory", raise_exception=True)
def rows(request: HttpRequest) -> HttpResponse:
    """What the list asks for every few seconds: 204 when nothing happened (`seen`), else what changed on the page."""
    latest = listing.latest_change()
    seen = request.GET.get("seen", "")
    if seen == str(latest):
        return HttpResponse(status=204)
    found = found_by(request)
    if not found.filters.is_valid():
        return HttpResponse("The filter cannot be read.", status=400, content_type="text/plain")
    known = tokens.read(request.GET.get("rows", "")[: tokens.LONGEST])
    if not known or not found.page.rows:  # from an empty list, or to one: there is no place to keep
        context = context_of(request, found, found.page.rows, latest)
        response = render(request, "memories/_list.html", context)
        response["HX-Retarget"], response["HX-Reswap"] = "#memories", "outerHTML"
        return response
    here = {row.pk for row in found.page.rows}
    elsewhere = [pk for pk in known if pk not in here][:MOST_KEPT]
    pushed_off = list(listing.ordered(found.rows.filter(pk__in=elsewhere), found.sort)) if elsewhere else []
    context = context_of(request, found, [*found.page.rows, *pushed_off], latest)
    touched = listing.touched_since(int(seen), known) if seen.isdecimal() and len(seen) < 19 else set()
    news = tokens.news(known, found.page.rows, pushed_off, touched)
    return render(request, "memories/_rows.html", {**context, "news": news})
