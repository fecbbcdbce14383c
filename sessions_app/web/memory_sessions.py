"""Which sessions received a memory, created, confirmed or contradicted it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from claudeops.lib.answers import page
from memories.models import Memory
from sessions_app import receipts
from sessions_app.web.forms import PlaceForm

MAY_SEE = ("memories.view_memory", "sessions_app.view_session")


def _inside(request: HttpRequest) -> bool:
    """Whether htmx asks for a part of the page; for the browser's history it asks for all of it."""
    htmx = getattr(request, "htmx", None)
    return bool(htmx) and not htmx.history_restore_request  # type: ignore[union-attr]


@page(MAY_SEE)
def told(request: HttpRequest, pk: int) -> HttpResponse:
    """Show every session that received the memory (`before` a session), also for a deleted memory."""
    form = PlaceForm(request.GET)
    before = form.cleaned_data.get("before") if form.is_valid() else None
    contributions, more = receipts.said(pk)
    context = {
        "pk": pk,
        "memory": Memory.objects.filter(pk=pk).only("pk", "observation").first(),
        "told": receipts.told(pk, before=before),
        "said": contributions,
        "said_more": more,
        "before": before,
    }
    template = "sessions/_injected_page.html" if _inside(request) else "sessions/of_memory.html"
    return render(request, template, context)
