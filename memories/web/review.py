"""Decide on one memory: approve or reject one that waits for a person; confirm, deactivate or activate another."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from claudeops.lib.answers import action, actor, by_htmx, fragment, in_words, moved, toast
from claudeops.lib.domain_error import DomainError
from memories.errors import Conflict
from memories.lifecycle import verbs
from memories.lifecycle.bulk import REJECTED
from memories.models import Memory, MemoryChange
from memories.web.memories import row_context
from memories.web.memory import CHANGES, gone


@action(("memories.view_memory", CHANGES))
def approve(request: HttpRequest, pk: int) -> HttpResponse:
    """Approve and confirm it for injection. `text` is the text that was read; another text is refused."""
    memory = Memory.objects.filter(pk=pk).first()
    if memory is None:
        return gone(request, pk)
    if not memory.waits:
        return _refused(request, memory, f"Memory {pk} does not wait for review any more.")
    try:
        change = verbs.approve(pk, by=actor(request), expected_text=request.POST.get("text"))
    except Conflict:
        return _refused(request, memory, f"Memory {pk} was changed in the meantime. Nothing was approved.")
    except DomainError as error:
        return _refused(request, memory, in_words(error))
    memory.refresh_from_db()
    effect = "it is injected from now on" if memory.active else "it is inactive, so it is not injected yet"
    return _done(request, memory, change, f"Memory {pk} is approved: {effect}.", "approved")


@action(("memories.view_memory", CHANGES))
def reject(request: HttpRequest, pk: int) -> HttpResponse:
    """Reject it: it is kept, inactive, and a session that repeats it does not reopen the review."""
    memory = Memory.objects.filter(pk=pk).first()
    if memory is None:
        return gone(request, pk)
    if not memory.waits:
        return _refused(request, memory, f"Memory {pk} does not wait for review any more.")
    reason = request.POST.get("reason", "").strip()[:400]
    try:
        change = verbs.deactivate(pk, by=actor(request), reason=f"{REJECTED} {reason}".strip())
    except DomainError as error:
        return _refused(request, memory, in_words(error))
    memory.refresh_from_db()
    return _done(request, memory, change, f"Memory {pk} is rejected. It is kept, inactive.", "rejected")


@action(("memories.view_memory", CHANGES))
def deactivate(request: HttpRequest, pk: int) -> HttpResponse:
    """Deactivate it for good: sessions that state it again do not reactivate it."""
    memory = Memory.objects.filter(pk=pk).first()
    if memory is None:
        return gone(request, pk)
    try:
        change = verbs.deactivate(pk, by=actor(request))
    except DomainError as error:
        return _refused(request, memory, in_words(error))
    memory.refresh_from_db()
    message = f"Memory {pk} is deactivated." if change else f"Memory {pk} was inactive already."
    return _done(request, memory, change, message, "deactivated" if change else "")


@action(("memories.view_memory", CHANGES))
def confirm(request: HttpRequest, pk: int) -> HttpResponse:
    """Confirm it now. `seen` is the latest change that the page showed; a memory changed since is refused."""
    memory = Memory.objects.filter(pk=pk).first()
    if memory is None:
        return gone(request, pk)
    latest = request.POST.get("seen", "")
    if not latest.isascii() or not latest.isdecimal() or len(latest) > 18:
        return _refused(request, memory, "The form is incomplete. Nothing was changed.")
    try:
        change = verbs.confirm(pk, by=actor(request), expected_change=int(latest))
    except Conflict:
        return _refused(request, memory, f"Memory {pk} was changed in the meantime. Read it, then confirm it.")
    except DomainError as error:
        return _refused(request, memory, in_words(error))
    memory.refresh_from_db()
    return _done(
        request, memory, change, f"Memory {pk} is confirmed, with a confidence of {memory.confidence:.2f}.", "confirmed"
    )


@action(("memories.view_memory", CHANGES))
def activate(request: HttpRequest, pk: int) -> HttpResponse:
    """Activate it again, with at least the threshold of its taxonomy as confidence."""
    memory = Memory.objects.filter(pk=pk).first()
    if memory is None:
        return gone(request, pk)
    try:
        change = verbs.reactivate(pk, by=actor(request))
    except DomainError as error:
        return _refused(request, memory, in_words(error))
    memory.refresh_from_db()
    message = f"Memory {pk} is active again." if change else f"Memory {pk} was active already."
    return _done(request, memory, change, message, "activated" if change else "")


def _back(request: HttpRequest, pk: int) -> str:
    back = request.POST.get("next", "")
    ours = back.startswith(reverse("memories")) and url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return back if ours else reverse("memory", args=[pk])


def _done(request: HttpRequest, row: Memory, change: MemoryChange | None, message: str, kind: str) -> HttpResponse:
    undo = reverse("memory-undo", args=[row.pk, change.pk]) if change else ""
    if by_htmx(request):
        context = row_context(request, row)
        return fragment(request, "memories/_row.html", context, said=message, undo=undo, kind=kind)
    return moved(request, _back(request, row.pk), message, undo=undo)


def _refused(request: HttpRequest, row: Memory, text: str) -> HttpResponse:
    if not by_htmx(request):
        return moved(request, _back(request, row.pk), text, level=messages.ERROR)
    row.refresh_from_db()
    response = fragment(request, "memories/_row.html", row_context(request, row), status=409)
    response.write(toast(request, text, level="error"))
    return response
