"""`/memories/{id}/changes/{change}`: compare an earlier version of a memory with the current one, and roll back."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from claudeops.lib.answers import actor, by_htmx, in_words, moved, page
from claudeops.lib.domain_error import DomainError
from memories.errors import Conflict, MemoryNotFound
from memories.history.timeline import compared, entry_of
from memories.lifecycle.undo import roll_back
from memories.models import Memory
from memories.queries import list as listing
from memories.web.forms import RollBackForm
from memories.web.memory import CHANGES, gone


@page("memories.view_memory", "POST")
def change(request: HttpRequest, pk: int, change: int) -> HttpResponse:
    if request.method == "POST":
        return _roll_back(request, pk, change)
    return _compared(request, get_object_or_404(Memory, pk=pk), change)


def _compared(
    request: HttpRequest, row: Memory, change: int, *, form: RollBackForm | None = None, status: int = 200, **more: Any
) -> HttpResponse:
    latest = listing.latest_change_of(row)  # before the rest: a change in between is then a conflict
    row.refresh_from_db()
    try:
        shown = compared(row, change)
    except MemoryNotFound as error:
        raise Http404(str(error)) from error
    form = form or RollBackForm(initial={"seen": latest})
    context = {"memory": row, "compared": shown, "form": form, "seen": latest, **more}
    inside = by_htmx(request) and request.method != "POST"
    return render(request, "memories/_compared.html" if inside else "memories/compared.html", context, status=status)


@permission_required(CHANGES, raise_exception=True)
def _roll_back(request: HttpRequest, pk: int, change: int) -> HttpResponse:
    memory = Memory.objects.filter(pk=pk).first()
    if memory is None:
        return gone(request, pk)
    form = RollBackForm(request.POST)
    if not form.is_valid():
        return _compared(request, memory, change, form=form, status=422)
    cleaned = form.cleaned_data
    try:
        new_change = roll_back(pk, change, by=actor(request), reason=cleaned["reason"], expected_change=cleaned["seen"])
    except Conflict as conflict:
        meanwhile = entry_of(conflict.change) if conflict.change else None
        return _compared(request, conflict.current, change, form=form, status=409, conflict=True, meanwhile=meanwhile)
    except MemoryNotFound as error:
        if Memory.objects.filter(pk=pk).exists():
            raise Http404(str(error)) from error
        return gone(request, pk)
    except DomainError as error:
        form.add_error(None, in_words(error))
        return _compared(request, memory, change, form=form, status=409)
    message = f"Memory {pk} is back to how it was." if new_change else f"Memory {pk} is in that state already."
    undo = reverse("memory-undo", args=[pk, new_change.pk]) if new_change else ""
    return moved(request, reverse("memory", args=[pk]), message, undo=undo)
