"""`/sessions/{id}`: one session, its poll while it is open, stopping it, running it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models.functions import Substr
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from claudeops.lib.answers import action, answer, in_words, page
from claudeops.lib.change_token import ChangeToken, changed_parts, hash_of, parts_of, read_token
from claudeops.lib.charts.strip import MOST, Strip
from claudeops.lib.list_view.keyset import neighbours_of
from sessions_app import escalation, queue
from sessions_app.errors import SessionsError
from sessions_app.escalation import may_hand_over
from sessions_app.log.entries import counts_of
from sessions_app.log.timeline import latest_calls, timeline_of
from sessions_app.models import LogEntry, LogKind, Session, Status
from sessions_app.queries.advice import Kind, Step, advice_for
from sessions_app.queries.failures import equal_to
from sessions_app.queries.usual import usual_for
from sessions_app.queue import waiting
from sessions_app.queue.dispatch import budget_of
from sessions_app.queue.requests import may_not_continue, may_not_follow
from sessions_app.runner.run import timeout_of
from sessions_app.web import session_tabs
from sessions_app.web.forms import NoteForm, TimelineForm
from sessions_app.web.log import panel
from sessions_app.web.session_band import Limits, band_of
from sessions_app.web.sessions import SessionList, say_asked
from sessions_app.web.strips import strip_of

DEEPEST = 5
"""Most generations that are followed: there are three tiers; the limit guards against a cycle."""

SAID_READ = 400
"""Characters that are read of what a running session said last."""

BROADEST = 20
"""Most children that are shown of one generation."""

TOKENS = {
    "input_tokens": "Input",
    "cache_creation_input_tokens": "Into cache",
    "cache_read_input_tokens": "From cache",
    "output_tokens": "Output",
}
TIERS = {0: "0, the operator", 1: "1, observes", 2: "2, investigates", 3: "3, remediates"}


def ancestors_of(session: Session) -> list[Session]:
    ancestors: list[Session] = []
    parent = session.parent
    while parent is not None and len(ancestors) < DEEPEST and parent.pk not in {row.pk for row in ancestors}:
        ancestors.append(parent)
        parent = parent.parent
    return ancestors[::-1]


@dataclass(frozen=True, slots=True)
class Link:
    """One session of a chain; `depth` counts the generations from the first one, 0."""

    session: Session
    depth: int
    own: bool


def chain_of(session: Session) -> list[Link]:
    """Return all sessions that escalated to and from `session`, parents first; empty without any."""
    above = ancestors_of(session)
    chain = [Link(one, depth, False) for depth, one in enumerate(above)]
    chain.append(Link(session, len(above), True))
    below = _descendants(session, depth=len(above) + 1)
    return chain + below if above or below else []


def _descendants(session: Session, depth: int) -> list[Link]:
    ids, generation = {session.pk}, [session.pk]
    children: dict[int, list[Session]] = {}
    for _ in range(DEEPEST):
        rows = Session.objects.filter(parent__in=generation).exclude(pk__in=ids).select_related("agent")
        listed = list(rows.only(*CHAINED, "agent__slug").order_by("pk")[:BROADEST])
        for row in listed:
            children.setdefault(row.parent_id or 0, []).append(row)
        generation = [row.pk for row in listed]
        ids.update(generation)
        if not generation:
            break
    return list(_in_order(session.pk, children, depth))


def _in_order(pk: int, children: dict[int, list[Session]], depth: int) -> list[Link]:
    links: list[Link] = []
    for child in children.get(pk, []):
        links += [Link(child, depth, False), *_in_order(child.pk, children, depth + 1)]
    return links


CHAINED = ("id", "agent", "tier", "status", "parent", "follows_as")


def limits_of(session: Session) -> Limits:
    """Return the limits of the session; its dollars are those that its claim reserved, if it did."""
    turns = session.agent.max_turns if session.agent else None
    return Limits(
        timeout_of(session), turns or settings.CLAUDEOPS_MAX_TURNS, session.reserved_usd or budget_of(session.agent)
    )


def last_said(session: Session) -> str:
    """Return the last text of a session's own, its first line without a marker; empty before it."""
    rows = LogEntry.objects.filter(session=session, kind=LogKind.TEXT).order_by("-seq")
    text = rows.annotate(head=Substr("text", 1, SAID_READ)).values_list("head", flat=True).first() or ""
    return next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("[")), "")


def runs_of(session: Session) -> Strip | None:
    """Return the strip of the last runs of the session's agent; None without an agent."""
    if session.agent_id is None:
        return None
    rows = Session.objects.filter(agent=session.agent_id).exclude(status=Status.QUEUED)
    listed = rows.only("status", "status_reason", "summary", "queued_at", "started_at").order_by("-queued_at", "-id")
    return strip_of(reversed(listed[:MOST]))


def counted(session: Session) -> dict[str, list[tuple[str, Any]]]:
    """Return the tokens by name for people, and what was counted else: of the usage and by the ingest."""
    usage = {name: value for name, value in session.usage.items() if isinstance(value, int | float)}
    rest = {name: value for name, value in usage.items() if name not in TOKENS}
    return {
        "tokens": [(label, usage[name]) for name, label in TOKENS.items() if name in usage],
        "stats": [*sorted(rest.items()), *sorted(session.stats.items())],
    }


DOCS = "docs/operating.md"


@dataclass(frozen=True, slots=True)
class Do:
    """One step: a link (`url`), a button that posts to `post`, or words alone."""

    label: str
    url: str = ""
    post: str = ""


@dataclass(frozen=True, slots=True)
class Steps:
    sentence: str
    steps: tuple[Do, ...]


def steps_for(session: Session, user: Any) -> Steps | None:
    """Return the advice for an ended session with the steps that `user` may take; None when nothing is to be done."""
    if session.is_open:
        return None
    advice = advice_for(session.status, session.status_reason)
    if advice is None:
        return None
    steps = (_step(step, session, user) for step in advice.steps)
    return Steps(advice.sentence, tuple(step for step in steps if step is not None))


def _step(step: Step, session: Session, user: Any) -> Do | None:
    if step.kind is Kind.AGENT:
        if session.agent_id is None or not user.has_perm("sessions_app.change_agent"):
            return None
        return Do(
            step.label, reverse("admin:sessions_app_agent_change", args=[session.agent_id]) + f"#id_{step.target}"
        )
    if step.kind is Kind.HAND_OVER:
        if not user.has_perm("sessions_app.run_session") or may_hand_over(session):
            return None
        return Do(f"Hand over to tier {session.tier + 1}", post=reverse("session-hand-over", args=[session.pk]))
    if step.kind is Kind.TAB:
        if step.target == "answer" and not (session.error or session.response or session.structured):
            return None
        return Do(step.label, reverse("session", args=[session.pk]) + f"?tab={step.target}#tabs")
    return Do(f"{DOCS}, “{step.label}”")


def timeline_context(session: Session, query: QueryDict, now: datetime) -> dict[str, Any]:
    """Return the timeline, or with `timeline=errors` its errors, or with `start` the turns from that line on.

    The last calls are those of an open session. A query that cannot be read shows the whole timeline.
    `now` (UTC) is where the bars of what still runs end.
    """
    form = TimelineForm(query)
    cleaned = form.cleaned_data if form.is_valid() else {}
    only_errors, start = cleaned.get("timeline") == "errors", cleaned.get("start") or 1
    counts = counts_of(session)
    timeline = timeline_of(session, counts, only_errors=only_errors, start=start, now=now)
    return {
        "timeline": timeline,
        "log_counts": counts,
        "latest_calls": latest_calls(session, now=now),
        "only_errors": only_errors,
        "start": start,
    }


PIECES = ("head", "tabs", "timeline", "rail")
"""The parts of the page that change while a session is open; each has a fragment and an element."""

OPEN_PAGE = (
    *("status", "status_reason", "hold_reason", "ingest_offset", "cost_usd"),
    *("started_at", "ended_at", "stop_requested_by", "attempts", "coalesced"),
)
"""The columns of a session that change with whatever its ingest or its end writes."""

HIGHEST = 2**63 - 1
RUNS = ("sessions_app.view_session", "sessions_app.run_session")


def _session(pk: int) -> Session:
    if pk > HIGHEST:
        raise Http404
    rows = Session.objects.select_related("agent", "project", "parent__agent", "parent__parent__agent")
    return get_object_or_404(rows, pk=pk)


def _state(pk: int) -> str:
    """Hash what the page shows besides its log. Read first: what changes meanwhile is sent with the next poll."""
    columns = Session.objects.filter(pk=pk).values_list(*OPEN_PAGE).first() if pk <= HIGHEST else None
    if columns is None:
        raise Http404
    below = Session.objects.filter(parent=pk).order_by().values_list("pk", "status")
    return hash_of((columns, sorted(below)))


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
        "neighbours": neighbours_of(
            Session.objects.all(), SessionList.sorts["queued"], session, "session", order="by the time they were queued"
        ),
        "band": band_of(
            session,
            usual,
            limits_of(session),
            counts,
            address=address,
            waits=waits,
            now_doing=last_said(session) if session.status == Status.RUNNING else "",
            now=timezone.now(),
        ),
        "advice": steps_for(session, request.user),
        "follow": _follow(request, session),
        "equal": equal_to(session),
        "usual": usual,
        "tabs": tabs,
        "receipt": receipt,
        **session_tabs.content_of(tabs.shown, session, receipt),
        "chain": chain_of(session),
        "runs": runs_of(session),
        "tier_words": TIERS.get(session.tier, session.tier),
        **counted(session),
    }


def _follow(request: HttpRequest, session: Session) -> dict[str, str]:
    """Return why the session cannot be continued (empty: it can); nothing when it cannot be followed at all."""
    if may_not_follow(session) or not request.user.has_perm("sessions_app.run_session"):
        return {}
    return {"not_continued": may_not_continue(session)}


def _pieces(request: HttpRequest, context: dict[str, Any]) -> dict[str, str]:
    return {name: render_to_string(f"sessions/_{name}.html", context, request) for name in PIECES}


@page("sessions_app.view_session")
def session(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the page with one tab (`tab`); to htmx, which swaps the tabs alone, only these."""
    state = _state(pk)
    one = _session(pk)
    context = _context(request, one, state)
    htmx = getattr(request, "htmx", None)
    if htmx and htmx.target == "tabs" and not htmx.history_restore_request:
        return render(request, "sessions/_tabs.html", context)
    context |= timeline_context(one, request.GET, timezone.now())
    pieces = _pieces(request, context)
    context |= {"pieces": pieces, "seen": ChangeToken(state, parts_of(pieces))}
    context |= panel(one, context["log_counts"], request.GET)
    return render(request, "sessions/session.html", context)


@page("sessions_app.view_session")
def session_live(request: HttpRequest, pk: int) -> HttpResponse:
    """Answer the poll of an open session: 204 when the page shows everything, else the pieces that changed."""
    state = _state(pk)
    token = read_token(request.GET.get("seen", ""))
    if token.state == state:
        return HttpResponse(status=204)
    one = _session(pk)
    context = _context(request, one, state) | timeline_context(one, request.GET, timezone.now())
    pieces = _pieces(request, context)
    context |= {"changed": changed_parts(token.parts, pieces), "seen": ChangeToken(state, parts_of(pieces))}
    return render(request, "sessions/_live.html", context)


@action(("sessions_app.view_session", "sessions_app.stop_session"))
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    one = _session(pk)
    level = messages.SUCCESS
    try:
        text = queue.request_stop(one.pk, by=request.user.get_username())
    except SessionsError as error:
        level, text = messages.WARNING, in_words(error)
    return answer(request, text, back=_back(request) or reverse("session", args=[one.pk]), level=level)


def _back(request: HttpRequest) -> str:
    """Return the list (with its filters) or the overview where the button was pressed, by `next`; else nothing."""
    to = request.POST.get("next", "")
    if to in ("sessions", "overview"):
        return reverse(to)
    listed = to.partition("?")[0] == reverse("sessions") and url_has_allowed_host_and_scheme(to, allowed_hosts=None)
    return to if listed else ""


@action(RUNS)
def hand_over(request: HttpRequest, pk: int) -> HttpResponse:
    return _asked(request, pk, escalation.hand_over, "handed over")


@action(RUNS)
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    return _followed(request, pk, queue.request_retry, "retried")


@action(RUNS)
def continue_(request: HttpRequest, pk: int) -> HttpResponse:
    return _followed(request, pk, queue.request_continue, "continued")


@action(RUNS)
def again(request: HttpRequest, pk: int) -> HttpResponse:
    return _asked(request, pk, queue.request_again, "run again", back=_back(request))


def _followed(request: HttpRequest, pk: int, verb: Callable[..., Session], words: str) -> HttpResponse:
    form = NoteForm(request.POST)
    if form.is_valid():
        return _asked(request, pk, verb, words, note=form.cleaned_data["note"])
    messages.error(request, f"Session {pk} is not {words}: {form.errors['note'][0]}")
    return HttpResponseRedirect(reverse("session", args=[_session(pk).pk]))


def _asked(
    request: HttpRequest, pk: int, verb: Callable[..., Session], words: str, *, back: str = "", **given: str
) -> HttpResponse:
    """Ask for another session by `verb` and lead to it, or `back`; say why there is none."""
    one = _session(pk)
    try:
        successor = verb(one, by=request.user.get_username(), **given)
    except SessionsError as error:
        messages.error(request, f"Session {pk} is not {words}: {in_words(error)}")
        return HttpResponseRedirect(back or reverse("session", args=[pk]))
    say_asked(request, successor)
    return HttpResponseRedirect(back or reverse("session", args=[successor.pk]))
