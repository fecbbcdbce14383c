"""`/forget` and `/forget/{id}`: choose what is to be forgotten, see what would go, confirm it, read the receipt."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Max, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django_q.tasks import async_task

from claudeops.features.purge import run
from claudeops.features.purge.choice import Choice, Chosen, PurgeError, choose
from claudeops.features.purge.describe import EXAMPLES, notes, places_of, texts_of
from claudeops.lib.answers import action, actor, moved, page
from claudeops.lib.detail_page import Band, Figure
from claudeops.lib.domain_error import DomainError
from claudeops.lib.list_view.selection import BIGGEST_ID, Selection
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


class ChoiceForm(forms.Form):
    """By what is chosen, beside a selection of memories. All that are given apply."""

    query = forms.CharField(
        required=False,
        max_length=1_000,
        label="Text",
        help_text="Memories that contain it, and the text wherever it stands; below 8 characters as a whole word.",
    )
    service = forms.CharField(required=False, max_length=64, help_text="general: memories without a service.")
    project = forms.CharField(required=False, max_length=64, help_text="Its slug.")
    agent = forms.CharField(required=False, max_length=64, help_text="Its slug.")
    session = forms.IntegerField(
        required=False, min_value=1, max_value=BIGGEST_ID, help_text="Its number: all that it wrote."
    )
    person = forms.CharField(required=False, max_length=150, help_text="The account's name: all that it wrote.")
    short = forms.BooleanField(
        required=False, label="Short texts, too", help_text="Texts of memories below 8 characters, as whole words."
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        for name, field in self.fields.items():
            if name != "short":
                field.widget.attrs["class"] = "field"

    def choice(self) -> Choice:
        fields = {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}
        return Choice(**fields)


class ConfirmForm(forms.Form):
    """The number of memories, typed by hand, and what else is to be done."""

    number = forms.IntegerField(min_value=0, max_value=BIGGEST_ID, label="Number of memories")
    backups = forms.BooleanField(required=False, label="Also remove these backups")
    force = forms.BooleanField(required=False, label="Although these sessions run")

    def __init__(self, purge: Purge, data: Any = None) -> None:
        super().__init__(data)
        self.expected = purge.receipt.get("plan", {}).get("memories", 0)

    def clean_number(self) -> int:
        number = int(self.cleaned_data["number"])
        if number != self.expected:
            raise forms.ValidationError(f"Type {self.expected}, the number of memories that would be removed.")
        return number


@page(PERMISSION, "POST")
def purges(request: HttpRequest) -> HttpResponse:
    """List the purges; POST plans one, for the filters of the form or a selection of memories."""
    is_asked = request.method == "POST"
    form, selection = ChoiceForm(request.POST if is_asked else None), Selection(request.POST)
    if is_asked and form.is_valid() and selection.is_valid():
        try:
            planned = run.ask(_chosen(request, form, selection), by=actor(request))
        except (PurgeError, DomainError) as error:
            form.add_error(None, f"{error} {error.fix}".strip())
        else:
            async_task("claudeops.tasks.count_purge", planned.pk, cluster=DEFAULT, timeout=TIMEOUT)
            return moved(request, reverse("purge", args=[planned.pk]), "Nothing is removed yet.", level=messages.INFO)
    rows = Purge.objects.defer("work").order_by("-created_at", "-id")
    rows_of_page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    return render(request, "purges/list.html", {"form": form, "page": rows_of_page}, status=422 if is_asked else 200)


def _chosen(request: HttpRequest, form: ChoiceForm, selection: Selection) -> Choice:
    if selection.cleaned_data["all_matching"]:
        ids = list(MemoryList.of(request).matches.order_by("pk").values_list("pk", flat=True)[: MOST + 1])
    else:
        ids = selection.chosen()
    if len(ids) > MOST:
        raise PurgeError("many", f"More than {MOST:,} memories match.", "Choose fewer, or use manage.py memory purge.")
    return Choice(ids=tuple(sorted(set(ids)))) if ids else form.choice()


@page(PERMISSION, "POST")
def purge(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what would be removed, or the receipt; POST with the number of memories carries it out."""
    instance = get_object_or_404(Purge.objects.defer("work"), pk=pk)
    is_asked = request.method == "POST"
    form = ConfirmForm(instance, request.POST if is_asked else None)
    if is_asked and form.is_valid():
        try:
            run.confirm(pk, by=actor(request), backups=form.cleaned_data["backups"], force=form.cleaned_data["force"])
        except PurgeError as error:
            form.add_error(None, f"{error} {error.fix}".strip())
        else:
            async_task("claudeops.tasks.purge", pk, cluster=DEFAULT, timeout=TIMEOUT)
            return moved(request, reverse("purge", args=[pk]), f"Purge {pk} is being carried out.")
    return render(request, "purges/purge.html", _context(instance, form), status=422 if is_asked else 200)


@page(PERMISSION)
def live(request: HttpRequest, pk: int) -> HttpResponse:
    """Answer the poll of a purge: 204 while it is as `seen`."""
    instance = get_object_or_404(Purge.objects.defer("work"), pk=pk)
    if request.GET.get("seen", "") == _state(instance):
        return HttpResponse(status=204)
    return render(request, "purges/_changed.html", _context(instance, ConfirmForm(instance)))


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


def _state(instance: Purge) -> str:
    text = f"{instance.state}|{instance.problem}|{list(instance.receipt.get('steps', {}))}|{'plan' in instance.receipt}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _context(instance: Purge, form: ConfirmForm) -> dict[str, Any]:
    plan = instance.receipt.get("plan")
    step_times = instance.receipt.get("steps", {})
    steps = [
        (words, step_times.get(name) and datetime.fromisoformat(step_times[name])) for name, words in run.STEPS.items()
    ]
    chosen = Chosen()
    with suppress(PurgeError, DomainError):  # it may be chosen no more
        chosen = choose(run.choice_of(instance)) if plan else chosen
    texts, more_texts = texts_of(chosen)
    return {
        "purge": instance,
        "address": reverse("purge", args=[instance.pk]),
        "band": _band(instance, plan),
        "plan": plan,
        "form": form,
        "places": places_of((plan or instance.receipt).get("places" if plan else "removed", {})),
        "texts": texts,
        "more_texts": more_texts,
        "examples": instance.work.get("examples") if plan else None,
        "examples_words": EXAMPLES,
        "notes": notes(plan or instance.receipt),
        "steps": steps if instance.state != PurgeState.PLANNED else [],
        "chosen": chosen_words(instance),
        "seen": _state(instance),
        "refused": ForgottenText.objects.filter(purge=instance.pk, allowed_at=None).aggregate(
            texts=Count("id"), times=Sum("refused"), last=Max("refused_at")
        ),
        "open": instance.state == PurgeState.RUNNING or (instance.state == PurgeState.PLANNED and not plan),
    }


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


def _band(instance: Purge, plan: dict[str, Any] | None) -> Band:
    figures = []
    if counted := plan or (instance.receipt if instance.state != PurgeState.PLANNED else None):
        removed = sum((plan or {}).get("places", instance.receipt.get("removed", {})).values())
        figures = [
            Figure("Memories", f"{counted.get('memories', 0):,}"),
            Figure("Texts", f"{counted.get('texts', 0):,}"),
            Figure("Found" if plan else "Removed", f"{removed:,}"),
        ]
    if instance.state == PurgeState.DONE:
        icon, tone, message, is_live = "ok", "ok", "It is forgotten; what is named below stays.", False
    elif instance.state == PurgeState.RUNNING:
        icon, tone = ("failed", "bad") if instance.problem else ("running", "info")
        message, is_live = instance.problem or "It goes on by itself after an interruption.", True
    else:
        counting = "Nothing is removed yet." if plan else "What would be removed is being counted."
        icon, tone, message, is_live = "queued", "warn", instance.problem or counting, not plan
    return Band(f"Purge {instance.pk}", instance.state, icon, tone, message, figures, is_live=is_live)
