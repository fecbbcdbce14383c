"""`/sessions/{id}`: one session, what is new on its page while it is open, stopping it, running it again."""

from __future__ import annotations

import zlib
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from sessions_app import page, queue, tokens
from sessions_app.errors import SessionsError
from sessions_app.log import entries
from sessions_app.models import Session
from sessions_app.views.log import raw_log
from sessions_app.views.sessions import in_words, say_asked

PIECES = ("head", "facts", "told", "results", "answer")
"""The parts of the page that change while a session is open, each with a fragment and an element of its own."""

HIGHEST = 2**63 - 1


def _session(pk: int) -> Session:
    if pk > HIGHEST:
        raise Http404
    rows = Session.objects.select_related("agent", "project", "parent__agent", "parent__parent__agent")
    return get_object_or_404(rows.defer("ingest_state"), pk=pk)


def _state(pk: int) -> str:
    """Read first: what changes while the rest is read is then sent the next time."""
    state = tokens.state(pk) if pk <= HIGHEST else None
    if state is None:
        raise Http404
    return state


def _context(session: Session, state: str) -> dict[str, Any]:
    return {
        "session": session,
        "state": state,
        "chain": page.chain_of(session),
        "receipt": page.receipt_of(session),
        **page.results_of(session),
        **page.counted(session),
        "raw": raw_log(session) is not None,
    }


def _pieces(request: HttpRequest, context: dict[str, Any]) -> dict[str, str]:
    """Each piece, rendered."""
    return {name: render_to_string(f"sessions/_{name}.html", context, request) for name in PIECES}


def _seen(state: str, pieces: dict[str, str]) -> str:
    """What a browser that shows these pieces tells back: the state they show, then a mark for each."""
    return "-".join([state, *(f"{zlib.crc32(text.encode()):08x}" for text in pieces.values())])


@require_safe
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def session(request: HttpRequest, pk: int) -> HttpResponse:
    """`/sessions/{id}`."""
    state = _state(pk)
    context = _context(_session(pk), state)
    pieces = _pieces(request, context)
    context |= {"pieces": pieces, "seen": _seen(context["state"], pieces), "log": entries.newest(pk)}
    return render(request, "sessions/session.html", context)


@require_safe
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def session_live(request: HttpRequest, pk: int) -> HttpResponse:
    """What the page of an open session asks for: 204 when it shows it all, else the pieces that changed.

    The last answer, when the session has ended, asks for nothing any more.
    """
    state = _state(pk)
    seen = request.GET.get("seen", "")[:200].split("-")
    if seen[0] == state:
        return HttpResponse(status=204)
    context = _context(_session(pk), state)
    pieces = _pieces(request, context)
    told = _seen(context["state"], pieces)
    marks = told.split("-")[1:]
    known = seen[1:] if len(seen) == len(marks) + 1 else [""] * len(marks)
    changed = {name: pieces[name] for name, mark, before in zip(PIECES, marks, known, strict=True) if mark != before}
    return render(request, "sessions/_live.html", {**context, "changed": changed, "seen": told})


@require_POST
@permission_required(("sessions_app.view_session", "sessions_app.stop_session"), raise_exception=True)
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """End a queued or running session."""
    one = _session(pk)
    try:
        messages.success(request, queue.request_stop(one.pk, by=request.user.get_username()))
    except SessionsError as error:
        messages.warning(request, in_words(error))
    return HttpResponseRedirect(reverse("session", args=[one.pk]))


@require_POST
@permission_required(("sessions_app.view_session", "sessions_app.run_session"), raise_exception=True)
def again(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for another session like this one; leads to it."""
    one = _session(pk)
    try:
        made = queue.request_again(one, by=request.user.get_username())
    except SessionsError as error:
        messages.error(request, f"Session {one.pk} is not run again: {in_words(error)}")
        return HttpResponseRedirect(reverse("session", args=[one.pk]))
    say_asked(request, made)
    return HttpResponseRedirect(reverse("session", args=[made.pk]))
