"""`/projects` and `/projects/{slug}`: the list, one project with its tabs, its settings, and what is done there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from claudeops.features.agent_files.figures import files_of
from claudeops.features.projects import figures
from claudeops.features.projects.file_review import approve, authors_who_wait
from claudeops.features.projects.forms import AddForm, EndForm, NewForm, SettingsForm
from claudeops.features.projects.memories import ACTIONS, ProjectMemories, draw_uses
from claudeops.lib.answers import action, actor, by_htmx, fragment, in_words, moved, page
from claudeops.lib.detail_page import Tab, Tabs, tabs_of
from claudeops.lib.domain_error import DomainError
from claudeops.lib.list_view.selection import UnreadableSelection
from claudeops.lib.masked import masked_note
from memories import store
from memories.capture.statement import Provenance
from memories.errors import InvalidProject
from memories.files.tidy import shared_of
from memories.library import journal
from memories.lifecycle import verbs
from memories.lifecycle.bulk import BULK_ACTIONS, EXTENDED_DAYS
from memories.lifecycle.projects import add_project, set_project
from memories.models import AgentFile, Decision, Memory, MemoryChange, Project, Source
from memories.taxonomy import PROJECT
from memories.web.bulk import run_on_list
from memories.web.decision_records import drawing_of, level_of
from memories.web.forms import SelectionForm
from memories.web.memories import CHANGE
from sessions_app.models import Agent, Event, Session
from sessions_app.queries.usual import last_runs
from sessions_app.web.strips import strip_of

SEES = ("memories.view_project", "memories.view_memory")
RECENT = 50
"""Rows of the tabs Sessions and Events."""
EVENTS_OF = 100
"""The tab Events has those of so many of the project's last sessions."""


@page(SEES, "POST")
def projects(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _add_project(request)
    return _projects(request, NewForm())


def _projects(request: HttpRequest, form: NewForm, *, status: int = 200) -> HttpResponse:
    listing = figures.read(request.GET.get("page"), timezone.now())
    context = {"projects": listing, "form": form, "weeks": figures.WEEKS}
    return render(request, "projects/list.html", context, status=status)


@permission_required("memories.add_project", raise_exception=True)
def _add_project(request: HttpRequest) -> HttpResponse:
    form = NewForm(request.POST)
    if form.is_valid():
        try:
            instance = add_project(**form.settings())
        except InvalidProject as error:
            form.refuse(error)
        else:
            return moved(request, reverse("project", args=[instance.slug]), f"Project {instance.slug} is added.")
    return _projects(request, form, status=422)


@page(SEES)
def project(request: HttpRequest, slug: str) -> HttpResponseBase:
    instance = get_object_or_404(Project, slug=slug)
    page = ProjectMemories.of(request, project=instance)
    if page.is_export:
        return page.exported()
    return page.redirected() or _project(request, instance, AddForm())


def _project(request: HttpRequest, instance: Project, form: AddForm, *, status: int = 200) -> HttpResponse:
    shown = figures.counted(instance.pk)
    tabs = _tabs(request, shown)
    context: dict[str, Any] = {"project": shown, "tabs": tabs, "form": form}
    if tabs.shown == "memories":
        context |= ProjectMemories.of(request, project=instance).context()
        context["charts"] = figures.of_project(instance, timezone.now(), shown.memory_count)
    else:
        context |= TABS[tabs.shown](instance)
        if tabs.shown == "files" and request.GET.get("shared"):
            context["shared"] = shared_of(instance)[:RECENT]
    return render(request, "projects/project.html", context, status=status)


def _tabs(request: HttpRequest, shown: Any) -> Tabs:
    tabs = [Tab("memories", "Memories", figures.capped(shown.memory_count))]
    if request.user.has_perm("sessions_app.view_session"):
        tabs.append(Tab("sessions", "Sessions", figures.capped(shown.session_count)))
    if request.user.has_perm("sessions_app.view_agent"):
        tabs.append(Tab("agents", "Agents", str(shown.agent_count or 0)))
    tabs.append(Tab("files", "Agent files", f"{AgentFile.objects.filter(project=shown.pk).count():,}"))
    if request.user.has_perm("memories.view_decision"):
        tabs.append(Tab("decisions", "Decisions", f"{Decision.objects.filter(project=shown.pk).count():,}"))
    if request.user.has_perm("sessions_app.view_event"):
        tabs.append(Tab("events", "Events", f"{_events(shown).count():,}"))
    return tabs_of(tabs, request.GET.get("tab", ""), "memories")


def _sessions_of(instance: Project) -> dict[str, Any]:
    rows = Session.objects.filter(project=instance).select_related("agent").order_by("-queued_at", "-id")
    shown = rows.only(
        "agent__slug", "status", "summary", "status_reason", "hold_reason", "cost_usd", "queued_at", "duration_ms"
    )
    return {"sessions": shown[:RECENT]}


def _agents_of(instance: Project) -> dict[str, Any]:
    agents = list(Agent.objects.filter(project=instance).defer("prompt_template").order_by("slug")[:RECENT])
    runs = last_runs([agent.pk for agent in agents])
    return {
        "agents": [
            (agent, strip_of(runs.get(agent.pk, [])), figures.usual_of(runs.get(agent.pk, []))) for agent in agents
        ]
    }


def _files_of(instance: Project) -> dict[str, Any]:
    return {"files": files_of(instance, timezone.now())}


def _decisions_of(instance: Project) -> dict[str, Any]:
    rows = Decision.objects.filter(project=instance).select_related("project").defer("text").order_by("-number", "name")
    return {
        "decisions": [(row, level_of(row)) for row in rows[:RECENT]],
        "drawing": drawing_of(rows.order_by("number")),
    }


def _events_of(instance: Project) -> dict[str, Any]:
    rows = _events(instance).select_related("session__agent").order_by("-created_at", "-id")
    return {"events": rows.only("level", "service", "message", "created_at", "session__agent__slug")[:RECENT]}


def _events(instance: Project) -> Any:
    """Return the events of the project's last sessions: a search through all events for one project has no index."""
    last = Session.objects.filter(project=instance).order_by("-queued_at", "-id").values_list("pk", flat=True)
    return Event.objects.filter(session__in=list(last[:EVENTS_OF]))


TABS: Mapping[str, Callable[[Project], dict[str, Any]]] = {
    "sessions": _sessions_of,
    "agents": _agents_of,
    "files": _files_of,
    "decisions": _decisions_of,
    "events": _events_of,
}


@page((*SEES, "memories.change_project"), "POST")
def settings(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the settings of a project, or store them."""
    instance = get_object_or_404(Project, slug=slug)
    form = SettingsForm(request.POST if request.method == "POST" else None, instance=instance)
    if form.is_valid():
        try:
            changed = set_project(get_object_or_404(Project, slug=slug), **form.settings())
        except InvalidProject as error:
            form.refuse(error)
        else:
            if changed:
                journal.note("change", "project", f"{slug}: {', '.join(changed)}", by=actor(request), project=slug)
            message = f"The settings of {slug} are saved." if changed else "Nothing was changed."
            return moved(request, reverse("project", args=[slug]), message)
    status = 422 if form.errors else 200
    return render(request, "projects/settings.html", {"slug": slug, "form": form}, status=status)


@page((*SEES, "memories.view_memoryfile"), "POST")
def review(request: HttpRequest, slug: str = "") -> HttpResponse:
    """Show what waits in the files of a project ("": in the global MEMORY.md) by its authors, or approve some of it."""
    instance = get_object_or_404(Project, slug=slug) if slug else None
    here = reverse("project-review", args=[slug]) if slug else reverse("memory-review")
    if request.method != "POST":
        context = {"project": instance, "authors": authors_who_wait(instance), "here": here}
        return render(request, "projects/review.html", context)
    if not request.user.has_perms(("memories.change_memory", "memories.change_project")):
        raise PermissionDenied
    seen = dict(zip(request.POST.getlist("author"), request.POST.getlist("seen"), strict=False))
    trusted = request.POST.get("trust", "")
    try:
        count = approve(instance, seen, trusted=trusted, by=actor(request), at=timezone.now())
    except DomainError as error:
        return moved(request, here, in_words(error), level=messages.ERROR)
    said = f"{count} line{'' if count == 1 else 's'} approved." + (f" {trusted} is trusted." if trusted else "")
    return moved(request, here, said)


@action((*SEES, "memories.add_memory"))
def add(request: HttpRequest, slug: str) -> HttpResponse:
    """Add a memory to the project."""
    instance = get_object_or_404(Project, slug=slug)
    form = AddForm(request.POST)
    if not form.is_valid():
        return _project(request, instance, form, status=422)
    cleaned = form.cleaned_data
    statement = store.Statement(
        cleaned["category"], cleaned["observation"], None, PROJECT.slug, tags=tuple(cleaned["tags"])
    )
    provenance = store.Provenance(Source.HUMAN, actor(request), project_id=instance.pk, channel="human")
    further = {name: cleaned[name] for name in ("relevance_score", "expires_at") if cleaned[name] is not None}
    try:
        with transaction.atomic():
            result = store.remember(statement, provenance)
            if further and result.memory_id is not None:
                verbs.edit(
                    result.memory_id, by=actor(request), provenance=Provenance.typed_by(actor(request)), **further
                )
    except DomainError as error:
        form.add_error("observation", in_words(error))
        return _project(request, instance, form, status=422)
    note = masked_note(request.POST.get("observation", ""))
    return moved(request, reverse("project", args=[slug]), f"Memory {result.memory_id} is added.{note}")


VERBS: Mapping[str, tuple[Callable[..., MemoryChange | None], str]] = {
    "renew": (partial(verbs.renew, days=EXTENDED_DAYS), f"expires {EXTENDED_DAYS} days later"),
    "approve": (verbs.approve, "is approved"),
    "deactivate": (verbs.deactivate, "is deactivated"),
    "activate": (verbs.reactivate, "is active again"),
}
"""What a row does, and what is said of it then."""


@action((*SEES, CHANGE))
def act(request: HttpRequest, slug: str, pk: int, verb: str) -> HttpResponse:
    """Do one of VERBS to a memory of the project.

    `end` is the end of the memory that the form showed: sent twice, a form renews once.
    """
    instance = get_object_or_404(Project, slug=slug)
    memory = get_object_or_404(Memory, pk=pk, project=instance)
    if verb not in VERBS:
        return HttpResponse(status=HTTPStatus.NOT_FOUND)
    run, effect = VERBS[verb]
    if verb == "renew":
        form = EndForm(request.POST)
        if not form.is_valid():
            message = "The end of the memory could not be read. Nothing was changed."
            return moved(request, reverse("project", args=[slug]), message, level=messages.ERROR)
        run = partial(run, end=form.cleaned_data["end"])
    try:
        change = run(pk, by=actor(request))
    except DomainError as error:
        return moved(request, reverse("project", args=[slug]), in_words(error), level=messages.ERROR)
    message = f"Memory {pk} {effect}." if change else f"Memory {pk} has nothing to change."
    undo = reverse("memory-undo", args=[pk, change.pk]) if change else ""
    if not by_htmx(request):
        return moved(request, _back(request, slug), message, undo=undo)
    memory.refresh_from_db()
    draw_uses([memory], timezone.now())
    page = ProjectMemories.of(request, project=instance)
    context = {"row": memory, "project": instance, "row_drawn_at": timezone.now(), **page.extra()}
    context["shown"] = dict.fromkeys(page.shown, True)
    return fragment(request, "projects/_memory_row.html", context, said=message, undo=undo)


def _back(request: HttpRequest, slug: str) -> str:
    """Return the list that the form stood on; any other address is that of the project."""
    page = reverse("project", args=[slug])
    back = request.POST.get("next", "")
    return back if back.partition("?")[0] == page else page


@action((*SEES, CHANGE))
def bulk(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Run an action on the selected memories of the project, or on all that match the list's filters."""
    page = ProjectMemories.of(request, project=get_object_or_404(Project, slug=slug))
    form = SelectionForm(request.POST)
    try:
        rows, ids = page.selected(form)
    except UnreadableSelection as error:
        return moved(request, page.address, str(error), level=messages.ERROR)
    name = form.cleaned_data["action"]
    if name not in ACTIONS:
        raise PermissionDenied("This list has no such action.")
    return run_on_list(request, page, form, BULK_ACTIONS[name], rows, ids)
