"""Sessions and memories: which sessions received a memory, and the prompt preview."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from claudeops.lib.answers import page
from memories.models import Memory, Project
from sessions_app import receipts
from sessions_app.models import Agent, Session
from sessions_app.runner.prompt import selected_for
from sessions_app.web import preview as preview_of
from sessions_app.web.forms import PlaceForm, PreviewForm

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


@page(MAY_SEE)
def preview(request: HttpRequest) -> HttpResponse:
    """Show what the next session would be told, and how that differs from the last one (or from `session`).

    What is not given is taken from the agent, then from the last session. An agent that was chosen in the form of
    another one (`of`) sets its own project and tier.
    """
    params = request.GET.copy()
    if params.get("of", params.get("agent")) != params.get("agent"):
        params["project"] = params["tier"] = ""
    form = PreviewForm(params)
    if not form.is_valid():
        return _preview(request, form, None, status=422)
    cleaned = form.cleaned_data
    agent: Agent | None = cleaned["agent"]
    project: Project | None = cleaned["project"] or (agent.project if agent else None)
    tier: int | None = cleaned["tier"] or (agent.tier if agent else None)
    beside: Session | None
    if cleaned["session"]:
        rows = Session.objects.select_related("agent", "project").defer("ingest_state")
        beside = rows.filter(pk=cleaned["session"], receipt__isnull=False).first()
        if beside is None:
            form.add_error("session", f"Session {cleaned['session']} is not there, or has no receipt.")
            return _preview(request, form, None, status=422)
    else:
        beside = preview_of.last_injected(
            tier=tier,
            project_id=project.pk if project else None,
            any_project="project" not in params,
            agent=agent.slug if agent else None,
        )
    if beside and "agent" not in request.GET:
        agent = beside.agent
    if beside and cleaned["agent"] is None and "project" not in params:
        project = beside.project
    task = beside.task if beside and "task" not in request.GET else cleaned["task"]
    at = timezone.now()
    session = Session(
        agent=agent,
        project=project,
        tier=max(1, tier or (beside.tier if beside else 1)),
        task=task,
        brief={"write_scope": cleaned["write_scope"]},
    )
    selected = selected_for(session, at=at, budget=cleaned["budget"])
    result = preview_of.preview_of(selected, session, beside=beside, at=at)
    shown = {
        "agent": agent.slug if agent else "",
        "task": task,
        "project": project.slug if project else "",
        "tier": str(result.tier),
        "budget": cleaned["budget"] if cleaned["budget"] is not None else "",
        "session": cleaned["session"] or "",
        "write_scope": " ".join(cleaned["write_scope"]),
    }
    return _preview(request, PreviewForm(shown), result, preview_of.composed_of(selected, session, at=at))


def _preview(
    request: HttpRequest,
    form: PreviewForm,
    result: preview_of.Preview | None,
    composed: preview_of.ComposedPreview | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    of = form.data.get("of", form.data.get("agent", ""))
    context = {"form": form, "of": of, "preview": result, "composed": composed, "query": form.query()}
    template = "sessions/_preview.html" if _inside(request) else "sessions/preview.html"
    return render(request, template, context, status=status)
