"""`/purges` and `/purges/{id}`: choose what is to be forgotten, see what would go, confirm it, read the receipt."""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Max, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django_q.tasks import async_task

from claudeops.lib.answers import action, actor, moved, page
from claudeops.lib.detail_page import Band, Figure
from claudeops.lib.list_view.selection import Selection
from claudeops.purge import run
from claudeops.purge.choice import Choice, Chosen, choose
from claudeops.purge.describe import EXAMPLES, notes, places_of, plan_notes, texts_of
from claudeops.purge.errors import PurgeError
from claudeops.purge.forms import ChoiceForm, ConfirmForm
from memories.errors import MemoriesError
from memories.lifecycle import forgotten
from memories.models import ForgottenText
from memories.web.memories import MemoryList
from sessions_app.models import Purge, PurgeState
from sessions_app.queue.tasks import DEFAULT

PERMISSION = "sessions_app.purge_memory"
PAGE = 50
TIMEOUT = 3600
"""Seconds after which the queue ends a purge; the schedule goes on with it."""
MOST = 20_000
"""Memories that are chosen on a page at most."""


@page(PERMISSION, "POST")
def purges(request: HttpRequest) -> HttpResponse:
    """List the purges; POST plans one, for the filters of the form or a selection of memories."""
    if request.method != "POST":
        return _list(request, ChoiceForm())
    form, selection = ChoiceForm(request.POST), Selection(request.POST)
    if not (form.is_valid() and selection.is_valid()):
        return _list(request, form, status=422)
    try:
        planned = run.ask(_chosen(request, form, selection), by=actor(request))
    except (PurgeError, MemoriesError) as error:
        form.add_error(None, f"{error} {error.fix}".strip())
        return _list(request, form, status=422)
    async_task("claudeops.tasks.count_purge", planned.pk, cluster=DEFAULT, timeout=TIMEOUT)
    return moved(request, reverse("purge", args=[planned.pk]), "Nothing is removed yet.", level=messages.INFO)


def _chosen(request: HttpRequest, form: ChoiceForm, selection: Selection) -> Choice:
    if selection.cleaned_data["all_matching"]:
        ids = list(MemoryList.of(request).matches.order_by("pk").values_list("pk", flat=True)[: MOST + 1])
    else:
        ids = selection.chosen()
    if len(ids) > MOST:
        raise PurgeError("many", f"More than {MOST:,} memories match.", "Choose fewer, or use manage.py memory purge.")
    return Choice(ids=tuple(sorted(set(ids)))) if ids else form.choice()


def _list(request: HttpRequest, form: ChoiceForm, *, status: int = 200) -> HttpResponse:
    rows = Purge.objects.defer("work").order_by("-created_at", "-id")
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    return render(request, "purges/list.html", {"form": form, "page": page}, status=status)


@page(PERMISSION, "POST")
def purge(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what would be removed, or the receipt; POST with the number of memories carries it out."""
    found = get_object_or_404(Purge.objects.defer("work"), pk=pk)
    form = ConfirmForm(_expected(found), request.POST if request.method == "POST" else None)
    if request.method != "POST":
        return render(request, "purges/purge.html", _context(found, form))
    if form.is_valid():
        asked = {name: form.cleaned_data[name] for name in ("backups", "force")}
        try:
            run.confirm(pk, by=actor(request), **asked)
        except PurgeError as error:
            form.add_error(None, f"{error} {error.fix}".strip())
        else:
            async_task("claudeops.tasks.purge", pk, cluster=DEFAULT, timeout=TIMEOUT)
            return moved(request, reverse("purge", args=[pk]), f"Purge {pk} is being carried out.")
    return render(request, "purges/purge.html", _context(found, form), status=422)


@page(PERMISSION)
def live(request: HttpRequest, pk: int) -> HttpResponse:
    """Answer the poll of a purge: 204 while it is as `seen`."""
    found = get_object_or_404(Purge.objects.defer("work"), pk=pk)
    if request.GET.get("seen", "") == _state(found):
        return HttpResponse(status=204)
    return render(request, "purges/_changed.html", _context(found, ConfirmForm(_expected(found))))


@action(PERMISSION)
def drop(request: HttpRequest, pk: int) -> HttpResponse:
    """Forget a plan that nobody confirmed."""
    if run.drop(pk):
        return moved(request, reverse("purges"), "The plan is dropped. Nothing was removed.")
    return moved(request, reverse("purge", args=[pk]), f"Purge {pk} is planned no more.", level=messages.WARNING)


@action(PERMISSION)
def allow(request: HttpRequest, pk: int) -> HttpResponse:
    """Let a text of a purge be stored again; without one all of them."""
    text = request.POST.get("text", "").strip()
    count = forgotten.allow(by=actor(request), text=text, purge_id=pk)
    if count:
        return moved(request, reverse("purge", args=[pk]), "What was purged may be stored again.")
    return moved(request, reverse("purge", args=[pk]), "This text is not refused.", level=messages.WARNING)


def _expected(found: Purge) -> int:
    return int(found.receipt.get("plan", {}).get("memories", 0))


def _state(found: Purge) -> str:
    steps = list(found.steps.filter(done_at=None).values_list("name", flat=True)[:1])
    told = f"{found.state}|{found.problem}|{bool(found.claimed_by)}|{steps}|{'plan' in found.receipt}"
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _context(found: Purge, form: ConfirmForm) -> dict[str, Any]:
    plan = found.receipt.get("plan")
    steps = [(run.WORDS.get(step.name, step.name), step.done_at) for step in found.steps.all()]
    texts, more_texts = texts_of(_chosen_now(found)) if plan else ([], 0)
    return {
        "purge": found,
        "address": reverse("purge", args=[found.pk]),
        "band": _band(found, plan),
        "plan": plan,
        "form": form,
        "places": places_of((plan or found.receipt).get("places" if plan else "removed", {})),
        "texts": texts,
        "more_texts": more_texts,
        "examples": found.work.get("examples") if plan else None,
        "examples_words": EXAMPLES,
        "notes": plan_notes(run.Plan(**plan)) if plan else notes(found),
        "steps": steps,
        "chosen": chosen_words(found),
        "seen": _state(found),
        "refused": ForgottenText.objects.filter(purge=found.pk, allowed_at=None).aggregate(
            texts=Count("id"), times=Sum("refused"), last=Max("refused_at")
        ),
        "open": found.state == PurgeState.RUNNING or (found.state == PurgeState.PLANNED and not plan),
    }


def _chosen_now(found: Purge) -> Chosen:
    """Return what a planned purge is about now; nothing when it can be chosen no more."""
    try:
        return choose(run.choice_of(found))
    except (PurgeError, MemoriesError):
        return Chosen()


def chosen_words(found: Purge) -> list[tuple[str, str]]:
    """Return by what a purge was chosen, for people. A text that is removed is kept nowhere."""
    words = []
    for name, value in found.chosen.items():
        if name == "query":
            text = found.work.get("query")
            words.append(("Text", f"“{text}”" if text else "removed, and not kept"))
        elif name == "short":
            words.append(("Short texts", "looked for, too"))
        elif name == "ids":
            shown = ", ".join(map(str, value[:20])) + (f" and {len(value) - 20:,} more" if len(value) > 20 else "")
            words.append(("Memories", shown))
        else:
            words.append((name.capitalize(), str(value)))
    return words


def _band(found: Purge, plan: dict[str, Any] | None) -> Band:
    figures = []
    counted = plan or (found.receipt if found.state != PurgeState.PLANNED else None)
    if counted:
        removed = sum((plan or {}).get("places", found.receipt.get("removed", {})).values())
        figures = [
            Figure("Memories", f"{counted.get('memories', 0):,}"),
            Figure("Texts", f"{counted.get('texts', 0):,}"),
            Figure("Found" if plan else "Removed", f"{removed:,}"),
        ]
    if found.state == PurgeState.DONE:
        return Band(f"Purge {found.pk}", "done", "ok", "ok", "It is forgotten; what is named below stays.", figures)
    if found.state == PurgeState.RUNNING:
        said = found.problem or "It goes on by itself after an interruption."
        return Band(
            f"Purge {found.pk}",
            "running",
            "failed" if found.problem else "running",
            "bad" if found.problem else "info",
            said,
            figures,
            is_live=True,
        )
    said = found.problem or ("Nothing is removed yet." if plan else "What would be removed is being counted.")
    return Band(f"Purge {found.pk}", "planned", "queued", "warn", said, figures, is_live=not plan)
