"""`/maintenance`: the last nightly run, all runs, one run with its undo, the memories of a step, and a dry run."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from claudeops.lib.answers import actor, in_words, moved
from memories.curate import maintenance as domain
from memories.curate.maintenance.steps import BY_NAME, changed_memories
from memories.errors import MemoriesError
from memories.models import MaintenanceRun
from memories.web.maintenance_page import context_of, name_of

SEES = ("memories.view_maintenancerun", "memories.view_memory")
CHANGES = (*SEES, "memories.change_maintenancerun")
PAGE = 50
COMPARED = 500
"""Memories that a dry run on the page compares: a person waits for it."""
SHOWN = 20
"""Memories of a step that a dry run shows."""


@require_safe
@never_cache
@permission_required(SEES, raise_exception=True)
def maintenance(request: HttpRequest) -> HttpResponse:
    latest = MaintenanceRun.objects.order_by("-at", "-pk").first()
    if latest is None:
        next_run = domain.Place.of_settings().next
        return render(request, "maintenance/run.html", {"next_run": next_run(timezone.now()), **_views("last")})
    return render(request, "maintenance/run.html", {**context_of(latest), **_views("last")})


@require_safe
@never_cache
@permission_required(SEES, raise_exception=True)
def run(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(MaintenanceRun, pk=pk)
    return render(request, "maintenance/run.html", {**context_of(found), **_views("run")})


@require_safe
@never_cache
@permission_required(SEES, raise_exception=True)
def runs(request: HttpRequest) -> HttpResponse:
    rows = MaintenanceRun.objects.order_by("-at", "-pk").prefetch_related("steps")
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    shown = [
        (row, name_of(row), sum(step.counts.get("did", 0) for step in row.steps.all() if _changes(step.name)))
        for row in page
    ]
    return render(request, "maintenance/runs.html", {"page": page, "rows": shown, **_views("all")})


@require_safe
@never_cache
@permission_required(SEES, raise_exception=True)
def step(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Show the memories that a step of a run changed."""
    found = get_object_or_404(MaintenanceRun, pk=pk)
    one = BY_NAME.get(name)
    if one is None or one.kind is None:
        raise Http404
    page = Paginator(changed_memories(found, one).select_related("memory"), PAGE).get_page(request.GET.get("page"))
    context = {"run": found, "name": name_of(found), "step": one, "page": page, **_views("run")}
    return render(request, "maintenance/step.html", context)


@require_safe
@never_cache
@permission_required(CHANGES, raise_exception=True)
def dry_run(request: HttpRequest) -> HttpResponse:
    """Show what a run would do now; for duplicates, what its first COMPARED memories give."""
    plans = domain.dry_run(most=COMPARED)
    context = {"plans": [(one, one.changes[:SHOWN]) for one in plans], "compared": COMPARED, **_views("dry")}
    return render(request, "maintenance/dry_run.html", context)


@require_POST
@permission_required(CHANGES, raise_exception=True)
def start(request: HttpRequest) -> HttpResponse:
    """Begin a run by hand, or leave the one that is open; the task of each minute does it."""
    begun = domain.begin_by_hand(by=actor(request))
    return moved(
        request, reverse("maintenance-run", args=[begun.pk]), "A worker begins within a minute.", level=messages.INFO
    )


@require_POST
@permission_required(CHANGES, raise_exception=True)
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Undo the `step` of a run, or all of it."""
    found = get_object_or_404(MaintenanceRun, pk=pk)
    address = reverse("maintenance-run", args=[pk])
    try:
        done = domain.undo(found, request.POST.get("step", ""), by=actor(request))
    except MemoriesError as error:
        return moved(request, address, in_words(error), level=messages.WARNING)
    return moved(request, address, done.message)


def _views(current: str) -> dict[str, Any]:
    return {"current": current}


def _changes(name: str) -> bool:
    return name in BY_NAME and BY_NAME[name].kind is not None
