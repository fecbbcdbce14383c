"""One memory: its page, its row in the list, editing, deleting and undoing."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from claudeops.lib import humanize
from claudeops.lib.answers import action, actor, answer, by_htmx, fragment, in_words, moved, page
from claudeops.lib.detail_page import Band, Figure, Neighbours, headline
from claudeops.lib.distinct import distinct_values
from claudeops.lib.domain_error import DomainError
from claudeops.lib.list_view import keyset
from claudeops.lib.list_view.keyset import ordered
from claudeops.lib.masked import masked_note
from memories.capture.statement import Provenance
from memories.errors import Conflict, MemoryNotFound
from memories.history.confidence import ConfidenceHistory, chart_of, confidence_history_of
from memories.history.timeline import Kinds, entry_of, kinds_of, page_of
from memories.injection.windows import windowed
from memories.lifecycle import verbs
from memories.lifecycle.undo import restore
from memories.models import Memory, MemoryChange, Verdict
from memories.queries import list as listing
from memories.queries.filters import MemoryFilterSet
from memories.queries.similar import similar_to
from memories.queries.transcripts import facts_of_memory
from memories.taxonomy import GENERAL, TAXONOMIES
from memories.web.forms import EditForm
from memories.web.memories import row_context

TITLE = 300
"""Most characters of the title; the page shows a longer text below."""
LONGEST_QUERY = 2_000
"""Most characters of the list's query that an address hands on."""


def whole_text(memory: Memory) -> str:
    """Return the text when the title does not hold all of it."""
    return memory.observation if len(memory.observation) > TITLE else ""


def band_of(memory: Memory, course: ConfidenceHistory, kinds: Kinds) -> Band:
    state, icon, tone = _state(memory)
    return Band(
        title=headline(memory.observation, TITLE)[0] if whole_text(memory) else memory.observation,
        state=state,
        icon=icon,
        tone=tone,
        sentence=_sentence(memory, course),
        figures=(
            Figure("Confidence", f"{memory.confidence:.2f}", _threshold(memory), url="#course"),
            _counted(memory, kinds, "confirmed", course.now),
            _counted(memory, kinds, "contradicted", course.now),
            Figure("Service", memory.scope_label, url=_listed(service=memory.service or GENERAL)),
            Figure("Category", memory.category, memory.taxonomy, url=_listed(category=memory.category)),
        ),
    )


def _state(memory: Memory) -> tuple[str, str, str]:
    """Return the state in a word, its icon, and its tone."""
    if memory.verdict == Verdict.HOLD:
        return ("held", "held", "warn") if memory.awaits_review else ("rejected", "inactive", "")
    if not memory.active:
        return "inactive", "inactive", ""
    return ("unconfirmed", "held", "warn") if memory.unconfirmed else ("active", "ok", "ok")


def _sentence(memory: Memory, course: ConfidenceHistory) -> str:
    waits = "No session is told of it until it is confirmed. " if memory.unconfirmed else ""
    return waits + course.words


def _threshold(memory: Memory) -> str:
    below = TAXONOMIES[memory.taxonomy].inactive_below
    return "" if below is None else f"inactive below {below:.2f}"


def _counted(memory: Memory, kinds: Kinds, shape: str, now: datetime) -> Figure:
    count = kinds.counts.get(shape, 0)
    value = {0: "never", 1: "once"}.get(count, f"{count:,} times")
    last = humanize.ago(kinds.last[shape], now) if count else ""
    address = f"{reverse('memory', args=[memory.pk])}?only={shape}#timeline" if count else ""
    return Figure(shape.capitalize(), value, f"last {last}" if count > 1 else last, url=address)


def _listed(**filters: str) -> str:
    return f"{reverse('memories')}?{urlencode(filters)}"


def handed_on(request: HttpRequest) -> str:
    """Return the query of the list that the person came from; empty for none and for a long one."""
    query = request.GET.get("from", "")
    return query if len(query) <= LONGEST_QUERY else ""


def neighbours_of(memory: Memory, query: str) -> Neighbours:
    """Return the memories before and after `memory` in a list: that of `query`, or all in the usual order.

    Three queries, each for one row of the order's index, and one to find out whether the query matches few rows. A
    query that cannot be read is that of all memories.
    """
    params = QueryDict(query)
    filters = MemoryFilterSet(params, queryset=Memory.objects.all())
    readable = bool(query) and filters.is_valid()
    rows = Memory.objects.all()
    if readable:
        # Few ones by their ids, so that a search that no index serves reads the table once.
        few = listing.few_of(filters.qs)
        rows = filters.qs.order_by() if few is None else Memory.objects.filter(pk__in=few)
    sort = listing.SORTS.get(params.get("sort", "") if readable else "", listing.SORTS[listing.FIRST])
    order = f"in the list by “{sort.label}”" if query and readable else f"by “{sort.label}”"
    here = ordered(Memory.objects.filter(pk=memory.pk), sort).first()
    if here is None:
        return Neighbours(None, None, order)
    more = f"?{urlencode({'from': query})}" if query and readable else ""
    return keyset.neighbours_of(rows, sort, here, "memory", order=order, more=more)


CHANGES = "memories.change_memory"
CONTEXT = 5
"""Most facts whose segments are shown as the context of a memory."""


@page("memories.view_memory", "PUT", "DELETE")
def memory(request: HttpRequest, pk: int) -> HttpResponse:
    if request.method == "PUT":
        return _edit(request, pk)
    if request.method == "DELETE":
        return _delete(request, pk)
    return _page(request, get_object_or_404(Memory.objects.select_related("project", "approved_by"), pk=pk))


def _page(request: HttpRequest, row: Memory, *, status: int = 200, **further: Any) -> HttpResponse:
    course = confidence_history_of(row, at=timezone.now())
    latest = listing.latest_change_of(row)
    editing = status != HTTPStatus.OK or "edit" in request.GET
    context = {
        "form": EditForm(row, seen=latest),
        "seen": latest,
        "services": distinct_values(Memory, "service") if editing else (),
        "course": course,
        "picture": chart_of(course, timezone.get_current_timezone()),
        "editing": editing,
        "deleting": "delete" in request.GET,
        "whole_text": whole_text(row),
        "window": windowed(row, course.now) if row.surface else None,
        "from_agent": _from_agent(row),
        "context": facts_of_memory(row.pk, CONTEXT),
        "neighbours": neighbours_of(row, handed_on(request)),
        **_timeline(request, row, latest),
        **further,
    }
    context["band"] = band_of(row, course, context["kinds"])
    return render(request, "memories/memory.html", context, status=status)


def _from_agent(row: Memory) -> str | None:
    """Return the slug of the agent of the session that made it."""
    if row.session_id is None:
        return None
    return Memory.objects.filter(pk=row.pk).values_list("session__agent__slug", flat=True).first()


@page("memories.view_memory")
def similar(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the similar memories for the rail, which loads them after the page."""
    instance = get_object_or_404(Memory, pk=pk)
    return render(request, "memories/_similar.html", {"similar": similar_to(instance)})


@page("memories.view_memory")
def history(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a page of the timeline (`before` a place in it): in place for htmx, else on the memory's page."""
    instance = get_object_or_404(Memory, pk=pk)
    if not by_htmx(request):
        return _page(request, instance)
    context = _timeline(request, instance, listing.latest_change_of(instance))
    return render(request, "memories/_timeline.html", context)


def _timeline(request: HttpRequest, row: Memory, latest: int) -> dict[str, Any]:
    """Return the variables of a page of the timeline; `only` a shape of its changes (`history.chart.LEGEND`)."""
    kinds = kinds_of(row)
    only = request.GET.get("only", "")
    only = only if only in kinds.counts else ""
    page = page_of(row, request.GET.get("before", ""), only)
    return {"memory": row, "page": page, "kinds": kinds, "only": only, "latest": latest}


@page("memories.view_memory")
def row(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the row of the list, or with `edit` or `delete` its form; empty when the memory is deleted."""
    instance = Memory.objects.filter(pk=pk).first()
    if instance is None:
        return HttpResponse("")
    if "edit" in request.GET and request.user.has_perm(CHANGES):
        form = EditForm(instance, seen=listing.latest_change_of(instance))
        return render(request, "memories/_edit_row.html", {"memory": instance, "form": form})
    if "delete" in request.GET and request.user.has_perm("memories.delete_memory"):
        return render(request, "memories/_delete_row.html", {"memory": instance})
    return render(request, "memories/_row.html", row_context(request, instance))


@permission_required(CHANGES, raise_exception=True)
def _edit(request: HttpRequest, pk: int) -> HttpResponse:
    instance = Memory.objects.filter(pk=pk).first()
    if instance is None:
        return gone(request, pk)
    form = EditForm(instance, request.POST)
    if not form.is_valid():
        return _again(request, instance, form, 422)
    try:
        change = verbs.edit(
            pk,
            by=actor(request),
            expected_change=form.cleaned_data["seen"],
            provenance=Provenance.typed_by(actor(request)),
            **form.changes(),
        )
    except Conflict as conflict:
        return _conflict(request, form, conflict)
    except MemoryNotFound:
        return gone(request, pk)
    except DomainError as error:
        form.add_error(None, in_words(error))
        return _again(request, instance, form, 422)
    instance.refresh_from_db()
    message = f"Memory {pk} is {change.get_kind_display()}." if change else "Nothing was changed."
    message += masked_note(request.POST.get("observation", ""))
    back = reverse("memory-undo", args=[pk, change.pk]) if change else ""
    if by_htmx(request):
        kind = "edited" if change else ""
        context = row_context(request, instance)
        return fragment(request, "memories/_row.html", context, said=message, undo=back, kind=kind)
    return moved(request, reverse("memory", args=[pk]), message, undo=back)


def _again(request: HttpRequest, instance: Memory, form: EditForm, status: int, **further: Any) -> HttpResponse:
    context = {"memory": instance, "form": form, **further}
    if by_htmx(request):
        return fragment(request, "memories/_edit_row.html", context, status=status)
    return _page(request, status=status, row=instance, **{name: context[name] for name in context if name != "memory"})


def _conflict(request: HttpRequest, form: EditForm, conflict: Conflict) -> HttpResponse:
    """Show both versions: the input stays in the form, the current text above it."""
    current, change = conflict.current, conflict.change
    form = form.on_current(current, change.pk if change else 0)
    meanwhile = entry_of(change) if change else None
    return _again(request, current, form, 409, conflict=conflict, meanwhile=meanwhile)


def gone(request: HttpRequest, pk: int) -> HttpResponse:
    """Say that the memory was deleted, and show the input."""
    text = f"Memory {pk} was deleted in the meantime. Nothing was changed."
    context = {"pk": pk, "text": text, "typed": request.POST.get("observation", "")}
    template = "memories/_gone_row.html" if by_htmx(request) else "memories/gone.html"
    return render(request, template, context, status=409)


@permission_required("memories.delete_memory", raise_exception=True)
def _delete(request: HttpRequest, pk: int) -> HttpResponse:
    try:
        verbs.delete(pk, by=actor(request))
    except MemoryNotFound:
        message = f"Memory {pk} was deleted already."
    else:
        message = f"Memory {pk} is deleted. Its history stays."
    if by_htmx(request):  # the next poll removes the row
        return fragment(request, "memories/_deleted_row.html", {"pk": pk}, said=message, kind="deleted")
    return moved(request, reverse("memories"), message)


@action(CHANGES)
def undo(request: HttpRequest, pk: int, change: int) -> HttpResponse:
    """Undo a change; refused when a later one exists. Triggers the list's poll."""
    to = reverse("memory", args=[pk])
    try:
        new_change = restore(pk, get_object_or_404(MemoryChange, pk=change), by=actor(request), only_latest=True)
    except Conflict:
        message = f"Memory {pk} was changed again since. See its page."
        return answer(request, message, back=to, level=messages.ERROR, status=409)
    except DomainError as error:
        return answer(request, in_words(error), back=reverse("memories"), level=messages.ERROR, status=409)
    message = f"Memory {pk} is restored." if new_change else f"Memory {pk} was undone already."
    if by_htmx(request) and (request.htmx.current_url_abs_path or "").partition("?")[0] == to:  # type: ignore[attr-defined]
        messages.success(request, message)
        return HttpResponse(headers={"HX-Refresh": "true"})
    return answer(request, message, back=to, kind="restored")
