"""Sessions and memories: which sessions received a memory, and the prompt preview."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from memories.models import Memory
from sessions_app import receipts
from sessions_app.models import Session
from sessions_app.web import preview as preview_of
from sessions_app.web.forms import PlaceForm, PreviewForm

MAY_SEE = ("memories.view_memory", "sessions_app.view_session")


def _inside(request: HttpRequest) -> bool:
    """Whether htmx asks for a part of the page; for the browser's history it asks for all of it."""
    htmx = getattr(request, "htmx", None)
    return bool(htmx) and not htmx.history_restore_request  # type: ignore[union-attr]


@require_safe
@never_cache
@permission_required(MAY_SEE, raise_exception=True)
def told(request: HttpRequest, pk: int) -> HttpResponse:
    """Show every session that received the memory (`before` a session), also for a deleted memory."""
    form = PlaceForm(request.GET)
    before = form.cleaned_data.get("before") if form.is_valid() else None
    said, more = receipts.said(pk)
    context = {
        "pk": pk,
        "memory": Memory.objects.filter(pk=pk).only("pk", "observation").first(),
        "told": receipts.told(pk, before=before),
        "said": said,
        "said_more": more,
        "before": before,
    }
    template = "sessions/_told_page.html" if _inside(request) else "sessions/of_memory.html"
    return render(request, template, context)


@require_safe
@never_cache
@permission_required(MAY_SEE, raise_exception=True)
def preview(request: HttpRequest) -> HttpResponse:
    """Show what would be injected now, compared with the last session (or `session`)."""
    form = PreviewForm(request.GET)
    given = form.cleaned_data if form.is_valid() else {}
    if not form.is_valid():
        return _preview(request, form, None, status=422)
    beside: Session | None
    if given["session"]:
        rows = Session.objects.select_related("agent", "project").defer("ingest_state")
        beside = rows.filter(pk=given["session"], receipt__isnull=False).first()
        if beside is None:
            form.add_error("session", f"Session {given['session']} is not there, or has no receipt.")
            return _preview(request, form, None, status=422)
    else:
        asked = given["project"].pk if given["project"] else None
        beside = preview_of.last_told(tier=given["tier"], project_id=asked, any_project="project" not in request.GET)
    tier = given["tier"] or (beside.tier if beside else 1)
    if "project" in request.GET:
        project_id = given["project"].pk if given["project"] else None
    else:
        project_id = beside.project_id if beside else None
    slug = given["agent"].slug if given["agent"] else None
    if "agent" not in request.GET and beside and beside.agent:
        slug = beside.agent.slug
    task = beside.task if "task" not in request.GET and beside else given["task"]
    found = preview_of.preview_of(
        tier=max(1, tier),
        project_id=project_id,
        budget=given["budget"],
        beside=beside,
        at=timezone.now(),
        task=task,
        agent=slug,
    )
    form = PreviewForm(
        {
            "tier": str(found.tier),
            "project": beside.project.slug
            if "project" not in request.GET and beside and beside.project
            else request.GET.get("project", ""),
            "agent": slug or "",
            "task": task,
            "budget": given["budget"] if given["budget"] is not None else "",
            "session": given["session"] or "",
        }
    )
    return _preview(request, form, found)


def _preview(
    request: HttpRequest, form: PreviewForm, found: preview_of.Preview | None, *, status: int = 200
) -> HttpResponse:
    template = "sessions/_preview.html" if _inside(request) else "sessions/preview.html"
    return render(request, template, {"form": form, "preview": found}, status=status)
