"""`/sessions/{id}`: one session, its poll while it is open, stopping it, running it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from claudeops.lib.answers import done, in_words
from claudeops.lib.change_token import ChangeToken, changed_parts, parts_of, read_token
from sessions_app import escalation, queue
from sessions_app.errors import SessionsError
from sessions_app.models import Session, Status
from sessions_app.queries.failures import equal_to
from sessions_app.queries.usual import usual_for
from sessions_app.queue import waiting
from sessions_app.queue.requests import may_not_continue, may_not_follow
from sessions_app.web import changes, session_page, session_tabs, timeline
from sessions_app.web.forms import NoteForm
from sessions_app.web.log import panel
from sessions_app.web.session_band import band_of
from sessions_app.web.session_steps import steps_for
from sessions_app.web.sessions import say_asked

PIECES = ("head", "tabs", "timeline", "rail")
"""The parts of the page that change while a session is open; each has a fragment and an element."""

HIGHEST = 2**63 - 1


def _session(pk: int) -> Session:
    if pk > HIGHEST:
        raise Http404
    rows = Session.objects.select_related("agent", "project", "parent__agent", "parent__parent__agent")
    return get_object_or_404(rows, pk=pk)


def _state(pk: int) -> str:
    """Read the state first, so that what changes while the rest is read is sent with the next poll."""
    state = changes.page_state(pk) if pk <= HIGHEST else None
    if state is None:
        raise Http404
    return state


def _context(request: HttpRequest, session: Session, state: str) -> dict[str, Any]:
    receipt = session_tabs.receipt_of(session)
    counts = session_tabs.counts_of(session, receipt)
    tabs = session_tabs.tabs_for(session, counts, request.GET.get("tab", ""))
    usual = usual_for(session)
    waits = waiting.reason_of(session) if session.status == Status.QUEUED else ""
    address = reverse("session", args=[session.pk])
    return {
        "session": session,
        "state": state,
        "address": address,
        "neighbours": session_page.neighbours_of(session),
        "band": band_of(
            session,
            usual,
            session_page.limits_of(session),
            counts,
            address=address,
            waits=waits,
            now_doing=session_page.last_said(session) if session.status == Status.RUNNING else "",
            now=timezone.now(),
        ),
        "advice": steps_for(session, request.user),
        "follow": _follow(request, session),
        "equal": equal_to(session),
        "usual": usual,
        "tabs": tabs,
        "receipt": receipt,
        **session_tabs.content_of(tabs.shown, session, receipt),
        "chain": session_page.chain_of(session),
        "runs": session_page.runs_of(session),
        "tier_words": session_page.TIERS.get(session.tier, session.tier),
        **session_page.counted(session),
    }


def _follow(request: HttpRequest, session: Session) -> dict[str, str]:
    """Return why the session cannot be continued (empty: it can); nothing when it cannot be followed at all."""
    if may_not_follow(session) or not request.user.has_perm("sessions_app.run_session"):
        return {}
    return {"not_continued": may_not_continue(session)}


def _pieces(request: HttpRequest, context: dict[str, Any]) -> dict[str, str]:
    return {name: render_to_string(f"sessions/_{name}.html", context, request) for name in PIECES}


@require_safe
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def session(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the page with one tab (`tab`); to htmx, which swaps the tabs alone, only these."""
    state = _state(pk)
    one = _session(pk)
    context = _context(request, one, state)
    htmx = getattr(request, "htmx", None)
    if htmx and htmx.target == "tabs" and not htmx.history_restore_request:
        return render(request, "sessions/_tabs.html", context)
    context |= timeline.context(one, request.GET, timezone.now())
    pieces = _pieces(request, context)
    context |= {"pieces": pieces, "seen": ChangeToken(state, parts_of(pieces))}
    context |= panel(one, context["log_counts"], request.GET)
    return render(request, "sessions/session.html", context)


@require_safe
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def session_live(request: HttpRequest, pk: int) -> HttpResponse:
    """Answer the poll of an open session: 204 when the page shows everything, else the pieces that changed."""
    state = _state(pk)
    seen = read_token(request.GET.get("seen", ""))
    if seen.state == state:
        return HttpResponse(status=204)
    one = _session(pk)
    context = _context(request, one, state) | timeline.context(one, request.GET, timezone.now())
    pieces = _pieces(request, context)
    context |= {"changed": changed_parts(seen.parts, pieces), "seen": ChangeToken(state, parts_of(pieces))}
    return render(request, "sessions/_live.html", context)


@require_POST
@permission_required(("sessions_app.view_session", "sessions_app.stop_session"), raise_exception=True)
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    one = _session(pk)
    level = messages.SUCCESS
    try:
        text = queue.request_stop(one.pk, by=request.user.get_username())
    except SessionsError as error:
        level, text = messages.WARNING, in_words(error)
    return done(request, text, back=_back(request) or reverse("session", args=[one.pk]), level=level)


def _back(request: HttpRequest) -> str:
    """Return the list (with its filters) or the overview where the button was pressed, by `next`; else nothing."""
    to = request.POST.get("next", "")
    if to in ("sessions", "overview"):
        return reverse(to)
    listed = to.partition("?")[0] == reverse("sessions") and url_has_allowed_host_and_scheme(to, allowed_hosts=None)
    return to if listed else ""


@require_POST
@permission_required(("sessions_app.view_session", "sessions_app.run_session"), raise_exception=True)
def hand_over(request: HttpRequest, pk: int) -> HttpResponse:
    one = _session(pk)
    try:
        made = escalation.hand_over(one, by=request.user.get_username())
    except SessionsError as error:
        messages.error(request, f"Session {one.pk} is not handed over: {in_words(error)}")
        return HttpResponseRedirect(reverse("session", args=[one.pk]))
    say_asked(request, made)
    return HttpResponseRedirect(reverse("session", args=[made.pk]))


@require_POST
@permission_required(("sessions_app.view_session", "sessions_app.run_session"), raise_exception=True)
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    return _followed(request, pk, queue.request_retry, "retried")


@require_POST
@permission_required(("sessions_app.view_session", "sessions_app.run_session"), raise_exception=True)
def continue_(request: HttpRequest, pk: int) -> HttpResponse:
    return _followed(request, pk, queue.request_continue, "continued")


def _followed(request: HttpRequest, pk: int, verb: Callable[..., Session], words: str) -> HttpResponse:
    one = _session(pk)
    form = NoteForm(request.POST)
    if not form.is_valid():
        messages.error(request, f"Session {one.pk} is not {words}: {form.errors['note'][0]}")
        return HttpResponseRedirect(reverse("session", args=[one.pk]))
    try:
        made = verb(one, by=request.user.get_username(), note=form.cleaned_data["note"])
    except SessionsError as error:
        messages.error(request, f"Session {one.pk} is not {words}: {in_words(error)}")
        return HttpResponseRedirect(reverse("session", args=[one.pk]))
    say_asked(request, made)
    return HttpResponseRedirect(reverse("session", args=[made.pk]))


@require_POST
@permission_required(("sessions_app.view_session", "sessions_app.run_session"), raise_exception=True)
def again(request: HttpRequest, pk: int) -> HttpResponse:
    one = _session(pk)
    try:
        made = queue.request_again(one, by=request.user.get_username())
    except SessionsError as error:
        messages.error(request, f"Session {one.pk} is not run again: {in_words(error)}")
        return HttpResponseRedirect(_back(request) or reverse("session", args=[one.pk]))
    say_asked(request, made)
    return HttpResponseRedirect(_back(request) or reverse("session", args=[made.pk]))
