"""`/memories/inbox`: pairs that contradict each other or may be duplicates, and an operator's answers."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from memories.capture.statement import Provenance
from memories.errors import Conflict, MemoriesError, MemoryNotFound
from memories.lifecycle import disagreements
from memories.models import Answer, DisagreementKind
from memories.queries import inbox as questions
from memories.queries import numbers
from memories.web.answers import actor, in_words, moved
from memories.web.forms import AnswerForm, InboxForm

CHANGES = "memories.change_memory"


@require_safe
@never_cache
@permission_required("memories.view_memory", raise_exception=True)
def inbox(request: HttpRequest) -> HttpResponse:
    return _page(request)


@require_POST
@permission_required(CHANGES, raise_exception=True)
def answer(request: HttpRequest, pk: int) -> HttpResponse:
    """Answer one question; 409 with the current state when either memory changed or it was answered already."""
    form = AnswerForm(request.POST)
    if not form.is_valid():
        said = "The answer cannot be read: " + " ".join(str(text) for texts in form.errors.values() for text in texts)
        return _page(request, wrong=pk, said=said, status=422)
    given = form.cleaned_data
    try:
        row = disagreements.answer(
            pk,
            given["answer"],
            by=actor(request),
            observation=given["observation"] if given["answer"] == Answer.MERGED else None,
            seen=(given["seen_older"], given["seen_newer"]),
            provenance=Provenance.typed_by(actor(request)),
        )
    except (Conflict, MemoryNotFound) as error:
        return _page(request, wrong=pk, said=in_words(error), status=409)
    except MemoriesError as error:
        return _page(request, wrong=pk, said=in_words(error), status=422)
    said = f"Answered: {row.get_answer_display()}."
    return moved(request, _back(request), said, undo=reverse("memories-inbox-undo", args=[pk]))


@require_POST
@permission_required(CHANGES, raise_exception=True)
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    to = reverse("memories-inbox")
    try:
        disagreements.take_back(pk, by=actor(request))
    except MemoriesError as error:
        return moved(request, to, in_words(error), level=messages.ERROR)
    return moved(request, to, "The answer is undone; the question is open again.")


def _back(request: HttpRequest) -> str:
    to = request.POST.get("next", "")
    mine = reverse("memories-inbox")
    fits = to.startswith(mine) and url_has_allowed_host_and_scheme(to, allowed_hosts=None)
    return to if fits else mine


def _page(request: HttpRequest, *, wrong: int | None = None, said: str = "", status: int = 200) -> HttpResponse:
    form = InboxForm(request.GET)
    given = form.cleaned_data if form.is_valid() else {}
    kind, after = given.get("kind") or "", given.get("after")
    answered = bool(given.get("answered"))
    rows = questions.answered(kind) if answered else questions.open_questions(kind)
    page = questions.page_of(rows, after)
    first = questions.question(wrong) if wrong is not None else None
    context: dict[str, Any] = {
        "page": page,
        "kind": kind,
        "kinds": DisagreementKind.choices,
        "answered": answered,
        "after": after,
        "count": numbers.disagreements(kind),
        "waiting": numbers.waiting(),
        "first": first,
        "said": said,
        "shown": [one for one in page.questions if first is None or one.row.pk != first.row.pk],
    }
    return render(request, "memories/inbox.html", context, status=status)
