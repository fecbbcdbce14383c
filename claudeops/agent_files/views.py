"""`/projects/{slug}/agents/{agent}`: the memory file of one agent, its conflicts, and what is done there."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from claudeops.agent_files.clashes import open_clashes
from claudeops.agent_files.lines import limits_of, parts_of
from claudeops.lib.detail_page import Tab, tabs_of
from memories.capture.agent_id import agent_id
from memories.errors import MemoriesError
from memories.files import conflicts
from memories.files.sync import Synced, sync_file
from memories.files.told import told
from memories.models import AgentFile, AgentFileConflict, MemoryChange
from memories.web.answers import actor, by_htmx, in_words, moved
from sessions_app.models import Agent

SEES = ("memories.view_project", "memories.view_memory")
CHANGE = "memories.change_memory"
RECENT = 50
"""Rows of the tab Changes."""
ANSWERED = {
    "file": "The file’s text is kept.",
    "other": "The other text is taken.",
    "both": "Both texts are kept.",
}


def _file(slug: str, agent: str) -> AgentFile:
    return get_object_or_404(AgentFile.objects.select_related("project"), project__slug=slug, agent=agent)


def _address(file: AgentFile) -> str:
    return reverse("agent_file", args=[file.project.slug, file.agent])


@require_safe
@never_cache
@permission_required(SEES, raise_exception=True)
def agent_file(request: HttpRequest, slug: str, agent: str) -> HttpResponse:
    """Show a file as it was at its last sync. Nothing is read from the disk."""
    file, at = _file(slug, agent), timezone.now()
    rows = list(file.entries.select_related("memory").order_by("position", "pk"))
    tabs = tabs_of(
        [Tab("read", "Read"), Tab("text", "Text"), Tab("changes", "Changes")], request.GET.get("tab", ""), "read"
    )
    is_told = told(file)
    context: dict[str, Any] = {
        "file": file,
        "tabs": tabs,
        "told": is_told,
        "clashes": open_clashes(file),
        "limits": limits_of(file),
        "left": [row for row in rows if row.left_because],
        "its_agent": _agent_of(file),
    }
    if tabs.shown == "read":
        context["parts"] = parts_of(file, rows, is_told, at)
    elif tabs.shown == "changes":
        memories = [row.memory_id for row in rows if row.memory_id]
        changes = MemoryChange.objects.filter(memory__in=memories).select_related("memory").order_by("-pk")
        context["changes"] = changes[:RECENT]
    return render(request, "agent_files/file.html", context)


def _agent_of(file: AgentFile) -> Agent | None:
    """Return the agent whose file it is; several may have one id, then that of the project comes first."""
    agents = Agent.objects.only("slug", "project_id").order_by("slug")
    found = [one for one in agents if agent_id(one.slug) == file.agent]
    return min(found, key=lambda one: one.project_id != file.project_id, default=None)


@require_POST
@permission_required((*SEES, CHANGE), raise_exception=True)
def answer(request: HttpRequest, slug: str, agent: str, pk: int) -> HttpResponse:
    """Answer a conflict, then bring the file in step."""
    file = _file(slug, agent)
    row = get_object_or_404(AgentFileConflict, pk=pk, file=file)
    choice = request.POST.get("answer", "")
    try:
        done = conflicts.answer(row, choice, by=actor(request))
    except MemoriesError as error:
        return _back(request, file, in_words(error), level=messages.ERROR)
    undo = reverse("agent-file-undo", args=[slug, agent, pk]) if conflicts.can_be_undone(done) else ""
    return _synced(request, file, ANSWERED[choice], undo=undo)


@require_POST
@permission_required((*SEES, CHANGE), raise_exception=True)
def undo(request: HttpRequest, slug: str, agent: str, pk: int) -> HttpResponse:
    """Take back the answer to a conflict, so that it is open again."""
    file = _file(slug, agent)
    row = get_object_or_404(AgentFileConflict, pk=pk, file=file)
    try:
        conflicts.take_back(row, by=actor(request))
    except MemoriesError as error:
        return _back(request, file, in_words(error), level=messages.ERROR)
    return _synced(request, file, "The conflict is open again.")


def _synced(request: HttpRequest, file: AgentFile, said: str, *, undo: str = "") -> HttpResponse:
    """Sync the file after a change and say how it went."""
    done = sync_file(file.project, file.agent, by=actor(request))
    problem = _problem(file, done)
    level = messages.WARNING if problem else messages.SUCCESS
    return _back(request, file, f"{said} {problem}".strip(), level=level, undo=undo)


def _back(
    request: HttpRequest, file: AgentFile, said: str, *, level: int = messages.SUCCESS, undo: str = ""
) -> HttpResponse:
    response = moved(request, _address(file), said, level=level, undo=undo)
    if by_htmx(request):  # an undo of a message: the whole page is another one
        return HttpResponse(headers={"HX-Redirect": _address(file)})
    return response


def _problem(file: AgentFile, done: Synced) -> str:
    if not file.enabled:
        return "The file is off: it is not written until it is on again."
    return done.problem
