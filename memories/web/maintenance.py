"""`/maintenance`: the last nightly run, all runs, one run with its undo, the memories of a step, and a dry run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from claudeops.lib import humanize, local_time
from claudeops.lib.answers import action, actor, in_words, moved, page
from claudeops.lib.charts.nights import MOST, Nights, nights
from claudeops.lib.detail_page import Band, Figure
from claudeops.lib.domain_error import DomainError
from memories.curate import maintenance as domain
from memories.curate.maintenance.steps import BY_NAME, STEPS, Step, changed_memories
from memories.curate.maintenance.undo import UNDOABLE
from memories.models import MaintenanceRun, MaintenanceStep, RunState

ICONS = {RunState.DONE: "ok", RunState.FAILED: "critical", RunState.RUNNING: "running"}


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step of a run: what it did, beside what it usually does. `url` is its list, "" without one."""

    step: Step
    row: MaintenanceStep | None
    did: int
    note: str
    nights: Nights
    url: str
    is_undoable: bool

    @property
    def icon(self) -> str:
        return ICONS[RunState(self.row.state)] if self.row else "queued"

    @property
    def state(self) -> str:
        return self.row.get_state_display() if self.row else "not yet"


@dataclass(frozen=True, slots=True)
class Share:
    """A category's part of its taxonomy, in percent."""

    taxonomy: str
    category: str
    count: int
    percent: int
    is_over: bool


def name_of(run: MaintenanceRun) -> str:
    at = run.night or timezone.localtime(run.at).date()
    return f"{at:%a} {at.day} {at:%b}" + ("" if run.night else f", by {run.by}")


def context_of(run: MaintenanceRun) -> dict[str, Any]:
    """Return the parts of a run's page; four queries, however many nights there are."""
    before = list(MaintenanceRun.objects.filter(at__lte=run.at).exclude(pk=run.pk).order_by("-at", "-pk")[: MOST - 1])
    recent_runs = [*reversed(before), run]
    by_run: dict[int, dict[str, MaintenanceStep]] = {one.pk: {} for one in recent_runs}
    for row in MaintenanceStep.objects.filter(run__in=recent_runs):
        by_run[row.run_id][row.name] = row
    can_undo = domain.can_undo(run)
    rows = [_row(run, step, [by_run[one.pk].get(step.name) for one in recent_runs], can_undo) for step in STEPS]
    categories = by_run[run.pk].get("categories")
    totals = [_changed(by_run[one.pk]) for one in recent_runs]
    return {
        "run": run,
        "name": name_of(run),
        "band": _band(run, by_run[run.pk], totals),
        "rows": rows,
        "shares": _shares(categories),
        "can_undo": can_undo and any(row.is_undoable for row in rows),
        "is_open": run.state == RunState.RUNNING,
    }


def _row(run: MaintenanceRun, step: Step, rows: Sequence[MaintenanceStep | None], can_undo: bool) -> StepRow:
    row = rows[-1]
    did = _did(row)
    url = reverse("maintenance-step", args=[run.pk, step.name]) if step.kind is not None else ""
    is_undoable = can_undo and step.name in UNDOABLE and row is not None and row.undone_at is None and did > 0
    values = [_did(one) for one in rows if one is not None]
    return StepRow(step, row, did, _note(step, row), nights(values), url, is_undoable)


def _did(row: MaintenanceStep | None) -> int:
    value = (row.counts if row else {}).get("did", 0)
    return value if isinstance(value, int) else 0


def _note(step: Step, row: MaintenanceStep | None) -> str:
    counts = row.counts if row else {}
    parts = [step.note]
    for key, words in (
        ("deactivated", "{:,} fell below their threshold"),
        ("looked", "{:,} memories compared"),
        ("asked", "{:,} became questions"),
        ("left", "{:,} left, since a person took it back"),
        ("wait", "{:,} wait"),
    ):
        if counts.get(key):
            parts.append(words.format(counts[key]))
    if row is not None and row.undone_at:
        parts.append(f"undone {local_time.exact(row.undone_at)}")
    return "; ".join(parts)


def _changed(rows: dict[str, MaintenanceStep]) -> int:
    return sum(_did(rows.get(name)) for name in UNDOABLE)


def _band(run: MaintenanceRun, rows: dict[str, MaintenanceStep], totals: Sequence[int]) -> Band:
    changed = totals[-1]
    memories = f"{changed:,} {'memory' if changed == 1 else 'memories'}"
    until = domain.undo_until(run)
    title = f"{name_of(run)}: changed {memories}"
    state, tone = str(run.get_state_display()), "ok"
    if run.state == RunState.RUNNING:
        title, tone = f"{name_of(run)}: {memories} changed so far", "info"
    elif run.state == RunState.FAILED:
        tone = "bad"
    elif run.undone_at:
        title, state, tone = f"{title}; {run.undone_by} undid it", "undone", "warn"
    elif domain.can_undo(run) and changed:
        title = f"{title}; it can be undone until {_clock(until)}"
    merged = rows.get("merged")
    judged = rows.get("judged")
    usual = nights(totals).usual
    return Band(
        title=title,
        state=state,
        icon=ICONS[RunState(run.state)],
        tone=tone,
        sentence=run.problem,
        figures=(
            Figure("Ran", _clock(run.at), humanize.span(took.total_seconds()) if (took := _took(run)) else ""),
            Figure("Compared", f"{(merged.counts if merged else {}).get('looked', 0):,}", "for duplicates"),
            Figure("Changed", f"{changed:,}", f"usually {usual:,}" if len(totals) > 1 else ""),
            Figure(
                "Asked", f"{(merged.counts if merged else {}).get('asked', 0):,}", "a person decides", reverse("inbox")
            ),
            Figure("Cost", humanize.dollars((judged.counts if judged else {}).get("cost_usd", 0)), "of the judge"),
            Figure("Next", _clock(domain.Place.of_settings().next(timezone.now()))),
        ),
    )


def _took(run: MaintenanceRun) -> timedelta | None:
    return run.finished_at - run.at if run.finished_at and run.finished_at > run.at else None


def _clock(at: datetime) -> str:
    return f"{local_time.weekday(at, timezone.now())}, {timezone.localtime(at):%H:%M}"


def _shares(row: MaintenanceStep | None) -> list[Share]:
    entries = (row.counts if row else {}).get("shares", [])
    return [
        Share(str(one[0]), str(one[1]), int(one[2]), round(100 * float(one[3])), bool(one[4])) for one in entries[:12]
    ]


SEES = ("memories.view_maintenancerun", "memories.view_memory")
CHANGES = (*SEES, "memories.change_maintenancerun")
PAGE = 50
COMPARED = 500
"""Memories that a dry run on the page compares: a person waits for it."""
SHOWN = 20
"""Memories of a step that a dry run shows."""


@page(SEES)
def maintenance(request: HttpRequest) -> HttpResponse:
    latest = MaintenanceRun.objects.order_by("-at", "-pk").first()
    if latest is None:
        next_run = domain.Place.of_settings().next
        return render(request, "maintenance/run.html", {"next_run": next_run(timezone.now()), **_views("last")})
    return render(request, "maintenance/run.html", {**context_of(latest), **_views("last")})


@page(SEES)
def run(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(MaintenanceRun, pk=pk)
    return render(request, "maintenance/run.html", {**context_of(row), **_views("run")})


@page(SEES)
def runs(request: HttpRequest) -> HttpResponse:
    rows = MaintenanceRun.objects.order_by("-at", "-pk").prefetch_related("steps")
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    shown = [
        (row, name_of(row), sum(step.counts.get("did", 0) for step in row.steps.all() if _changes(step.name)))
        for row in page
    ]
    return render(request, "maintenance/runs.html", {"page": page, "rows": shown, **_views("all")})


@page(SEES)
def step(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Show the memories that a step of a run changed."""
    row = get_object_or_404(MaintenanceRun, pk=pk)
    one = BY_NAME.get(name)
    if one is None or one.kind is None:
        raise Http404
    page = Paginator(changed_memories(row, one).select_related("memory"), PAGE).get_page(request.GET.get("page"))
    context = {"run": row, "name": name_of(row), "step": one, "page": page, **_views("run")}
    return render(request, "maintenance/step.html", context)


@page(CHANGES)
def dry_run(request: HttpRequest) -> HttpResponse:
    """Show what a run would do now; for duplicates, what its first COMPARED memories give."""
    plans = domain.dry_run(most=COMPARED)
    context = {"plans": [(one, one.changes[:SHOWN]) for one in plans], "compared": COMPARED, **_views("dry")}
    return render(request, "maintenance/dry_run.html", context)


@action(CHANGES)
def start(request: HttpRequest) -> HttpResponse:
    """Begin a run by hand, or leave the one that is open; the task of each minute does it."""
    begun = domain.begin_by_hand(by=actor(request))
    return moved(
        request, reverse("maintenance-run", args=[begun.pk]), "A worker begins within a minute.", level=messages.INFO
    )


@action(CHANGES)
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Undo the `step` of a run, or all of it."""
    row = get_object_or_404(MaintenanceRun, pk=pk)
    address = reverse("maintenance-run", args=[pk])
    try:
        result = domain.undo(row, request.POST.get("step", ""), by=actor(request))
    except DomainError as error:
        return moved(request, address, in_words(error), level=messages.WARNING)
    return moved(request, address, result.message)


def _views(current: str) -> dict[str, Any]:
    return {"current": current}


def _changes(name: str) -> bool:
    return name in BY_NAME and BY_NAME[name].kind is not None
