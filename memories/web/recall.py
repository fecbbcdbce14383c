"""`/memories/recall`: search, see why each memory is a hit, judge it; and the query log."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.urls import reverse
from django.utils.text import Truncator

from claudeops.lib.answers import action, actor, by_htmx, fragment, in_words, moved, page
from claudeops.lib.domain_error import DomainError
from memories.recall import Hit, Recall, feedback
from memories.recall import log as query_log
from memories.recall.query import index_terms
from memories.recall.results import Parts
from memories.recall.service import NARRATIVES, ask, by_person
from memories.web.forms import AskedForm, MarkForm, RecallForm

WORD = re.compile(r"[\w.\-/]+|[^\w.\-/]+")


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of a text; `is_match`: it is a word that was searched for."""

    text: str
    is_match: bool


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a score: its name, its value, and where its bar begins and how long it is (0..100 of the axis)."""

    name: str
    value: float
    start: float
    width: float


def marked(text: str, searched: Collection[str]) -> list[Stretch]:
    """Split a text into stretches; joined they spell it. `searched` are terms of the index."""
    stretches: list[Stretch] = []
    wanted = set(searched)
    for piece in WORD.findall(text):
        is_match = not wanted.isdisjoint(index_terms(piece))
        if stretches and not is_match and not stretches[-1].is_match:
            stretches[-1] = Stretch(stretches[-1].text + piece, False)
        else:
            stretches.append(Stretch(piece, is_match))
    return stretches


def shares(parts: Parts, whole: float) -> list[Share]:
    """Split a score into words, meaning, age and the rest (confidence, use, neighbours), on an axis from 0 to `whole`.

    The cosine counts with its full weight (see fusion), and words are what else was fused. A stale memory's parts are
    lowered as its score is, so that they add up to it; a part that is negative is not drawn.
    """
    meaning = max(0.0, parts.cosine or 0.0)
    words = parts.fused - meaning
    age = parts.boosts.get("age", 0.0)
    rest = parts.context + sum(value for name, value in parts.boosts.items() if name != "age")
    named = [("words", words), ("meaning", meaning), ("age", age), ("confidence", rest)]
    total = sum(max(0.0, value) for _, value in named)
    scale = parts.final / total if total > 0 else 0.0
    segments, start = [], 0.0
    for name, value in named:
        width = 100 * max(0.0, value) * scale / whole if whole > 0 else 0.0
        segments.append(Share(name, max(0.0, value) * scale, start, width))
        start += width
    return segments


MARKS, SEES_NARRATIVES = "memories.change_memory", "memories.view_transcript"
LONGEST = 400
"""Most characters of a memory in the list of hits."""
LATELY = 5
"""Questions that are shown beside the hits."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A hit on the page; `shares` are on an axis that ends at 1, or at the best score."""

    place: int
    hit: Hit
    vote: str
    text: list[Stretch]
    shares: list[Share]


@page("memories.view_memory")
def recall(request: HttpRequest) -> HttpResponse:
    may_see = request.user.has_perm(SEES_NARRATIVES)
    if "query" not in request.GET:
        context = {"form": RecallForm(with_narratives=may_see), "narrowed": False, "lately": _lately(), "command": ""}
        return render(request, "memories/recall.html", context)
    form = RecallForm(request.GET, with_narratives=may_see)
    answer, status = None, 200
    if not form.is_valid():
        status = 422 if request.GET["query"].strip() else 200
    else:
        try:
            answer = ask(by_person(actor(request)), form.question(), "page")
        except DomainError as error:
            form.add_error(None, in_words(error))
            status = 422
    context = {
        "form": form,
        "narrowed": form.narrows(),
        "asked": urlencode(_given(request)),
        "lately": _lately(),
        **_shown(answer),
    }
    return render(request, "memories/recall.html", context, status=status)


def _shown(answer: Recall | None) -> dict[str, Any]:
    if answer is None:
        return {}
    marks = feedback.marks_of(answer.query)
    whole = max([1.0, *(hit.score for hit in answer.hits)])
    terms = answer.trace.searched or answer.trace.terms
    return {
        "found": answer,
        "hits": [
            Shown(
                place,
                hit,
                marks.get(hit.memory_id, ""),
                marked(Truncator(hit.observation).chars(LONGEST), terms),
                shares(hit.parts, whole),
            )
            for place, hit in enumerate(answer.hits, 1)
        ],
        "whole": whole,
        "dropped": {reason: count for reason, count in answer.trace.dropped.items() if count},
        "command": f"manage.py memory recall {shlex.quote(answer.query)} --profile {answer.trace.profile}"
        + ("" if answer.narratives is None else f" --include {NARRATIVES}"),
        "milliseconds": {name: 1000 * took for name, took in answer.trace.steps.items()},
    }


def _lately() -> list[query_log.Entry]:
    """Return the last questions of anybody."""
    return query_log.page().rows[:LATELY]


def _given(request: HttpRequest) -> list[tuple[str, str]]:
    return [(name, value) for name in request.GET for value in request.GET.getlist(name) if value]


@action(MARKS)
def mark(request: HttpRequest) -> HttpResponse:
    """Judge a hit as right or wrong; the query is in the URL."""
    question, word = RecallForm(request.GET), MarkForm(request.POST)
    if not question.is_valid() or not word.is_valid():
        return HttpResponseBadRequest(
            "A judgement needs the query, a memory, and right or wrong.", content_type="text/plain"
        )
    memory, vote = word.cleaned_data["memory"], word.cleaned_data["vote"]
    back = f"{reverse('recall')}?{urlencode(_given(request))}"
    try:
        feedback.mark(question.question(), memory, vote, by=_user(request))
    except DomainError as error:
        if by_htmx(request):
            return HttpResponse(in_words(error), status=409, content_type="text/plain")
        return moved(request, back, in_words(error), level=messages.ERROR)
    if by_htmx(request):
        context = {"memory_id": memory, "vote": vote, "asked": urlencode(_given(request))}
        return fragment(request, "memories/_recall_mark.html", context)
    message = (
        f"Memory {memory} is marked {vote} for this query." if vote else f"The judgement of memory {memory} is removed."
    )
    return moved(request, f"{back}#hit-{memory}", message)


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101
    return request.user


@page("memories.view_memory")
def asked(request: HttpRequest) -> HttpResponse:
    form = AskedForm(request.GET)
    if not form.is_valid():
        return render(request, "memories/asked.html", {"form": form}, status=422)
    cleaned = form.cleaned_data
    page = query_log.page(surface=cleaned["surface"], session=cleaned["session"], before=cleaned["before"])
    narrowed = {name: cleaned[name] for name in ("surface", "session") if cleaned[name]}
    return render(request, "memories/asked.html", {"form": form, "page": page, "query": urlencode(narrowed)})
