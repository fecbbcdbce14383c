"""The band of a session's page: its outcome in words, and its figures beside what is usual for its agent. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

from django.utils.text import Truncator

from claudeops.lib.detail_page import Band, Figure, headline, percent
from claudeops.lib.humanize import ago, dollars, span
from sessions_app.models import Session, Status, Trigger
from sessions_app.queries.usual import Usual

T = TypeVar("T")

TONES = {
    Status.COMPLETED: "ok",
    Status.FAILED: "bad",
    Status.TIMED_OUT: "bad",
    Status.LOST: "bad",
    Status.STOPPED: "warn",
    Status.ESCALATED: "info",
    Status.RUNNING: "info",
}
LONGEST = 700
"""Characters of the sentence below the title."""

STARTED_BY = {
    Trigger.SCHEDULED: "its schedule",
    Trigger.ALERT: "an alert",
    Trigger.ESCALATION: "an escalation",
    Trigger.IMPORT: "an import",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What the session may use: seconds, turns, US dollars."""

    seconds: int
    turns: int
    dollars: Decimal


@dataclass(frozen=True, slots=True)
class Counts:
    """Results of the session; `gravest` names the gravest level of its events, if it is a warning or worse.

    `observed` counts the facts of its transcript; empty while it was not observed.
    """

    learned: str
    injected: str
    events: str
    gravest: str = ""
    observed: str = ""


def title_of(session: Session, now_doing: str = "") -> tuple[str, str]:
    """Return the outcome in words, and what of its text the title left out.

    A completed session is its summary, one that went wrong its reason, an open one its agent with its task, or what it
    is doing now, as it said itself.
    """
    who = session.agent.slug if session.agent else "A session without an agent"
    if session.status in (Status.COMPLETED, Status.ESCALATED):
        text = session.summary or _first_line(session.response)
        title, rest = headline(text) if text else (f"{who} {session.get_status_display()}", "")
        return title, " ".join(filter(None, [rest, session.status_reason]))
    if session.is_open:
        doing = "is running" if session.status == Status.RUNNING else "is queued"
        task = headline(session.task or now_doing)[0]
        return f"{who}: {task}" if task else f"{who} {doing}", now_doing if session.task else ""
    if not session.status_reason:
        return f"{who} {session.get_status_display()}", headline(session.summary)[0]
    title, rest = headline(session.status_reason)
    return title, " ".join(filter(None, [rest, session.summary and f"It said: {session.summary}"]))


def _first_line(text: str) -> str:
    return next((line.strip("#*> ") for line in text.splitlines() if line.strip("#*>- ")), "")


def sentence_of(session: Session, rest: str, usual: Usual, waits: str, now: datetime) -> str:
    """Return the sentence below the title: of an open session what it waits for or does, else `rest`."""
    if session.status == Status.QUEUED:
        return f"Held: {session.hold_reason}" if session.hold_reason else f"Waiting for a worker. {waits}".strip()
    if session.status != Status.RUNNING:
        return Truncator(rest).chars(LONGEST)
    if session.stop_requested_at:
        return f"Stop requested by {session.stop_requested_by} {ago(session.stop_requested_at, now)}."
    by = STARTED_BY.get(Trigger(session.trigger), session.requested_by or "hand")
    lasted = session.lasted_ms
    parts = [f"Started by {by}."]
    if rest:
        parts.insert(0, f"It says “{headline(rest)[0]}”.")
    if lasted is not None:
        usually = f"; usually it ends after {span(usual.duration_ms / 1000)}" if usual.duration_ms else ""
        parts.append(f"Runs for {span(lasted / 1000)}{usually}.")
    return " ".join(parts)


def figures_of(session: Session, usual: Usual, limits: Limits, counts: Counts, address: str) -> list[Figure]:
    """Return the figures, each with its neighbour: what is usual, or the limit that was reached."""
    figures = _live_figures(session, usual, limits) if session.is_open else _final_figures(session, usual, limits)
    results = (("Learned", counts.learned, "learned"), ("Injected", counts.injected, "injected"))
    figures += [Figure(label, count, url=f"{address}?tab={tab}#tabs") for label, count, tab in results]
    return [*figures, Figure("Events", counts.gravest or counts.events, url=f"{address}?tab=events#tabs")]


def _live_figures(session: Session, usual: Usual, limits: Limits) -> list[Figure]:
    if session.status == Status.QUEUED:
        return []
    lasted = (session.lasted_ms or 0) / 1000
    return [
        Figure(
            "Cost so far",
            _cost(session),
            _beside(_estimated(session), f"of {dollars(limits.dollars)}", _usually(usual.cost_usd, dollars)),
            percent=percent(float(session.cost_usd), float(limits.dollars)),
        ),
        _live_turns(session, usual, limits),
        Figure(
            "Time",
            span(lasted),
            f"of {span(limits.seconds)}",
            percent=percent(lasted, limits.seconds),
        ),
    ]


def _live_turns(session: Session, usual: Usual, limits: Limits) -> Figure:
    if session.num_turns or not session.tool_calls:
        beside = _beside(f"of {limits.turns:,}", _usually(usual.num_turns, str))
        return Figure(
            "Turns so far", f"{session.num_turns:,}", beside, percent=percent(session.num_turns, limits.turns)
        )
    return Figure("Tool calls so far", f"{session.tool_calls:,}", _usually(usual.num_turns, "{} turns".format))


def _final_figures(session: Session, usual: Usual, limits: Limits) -> list[Figure]:
    lasted = session.lasted_ms
    used = tokens_of(session)
    figures = [
        Figure("Duration", span(lasted / 1000) if lasted else "–", _usually(usual.duration_ms, _milliseconds)),
        Figure("Turns", f"{session.num_turns:,}", _turns_beside(session, usual, limits)),
        Figure("Cost", _cost(session), _beside(_estimated(session), _usually(usual.cost_usd, dollars))),
    ]
    return [*figures, Figure("Tokens", f"{used:,}")] if used else figures


def _turns_beside(session: Session, usual: Usual, limits: Limits) -> str:
    if session.status != Status.COMPLETED and limits.turns and session.num_turns >= limits.turns:
        return f"of {limits.turns}"
    return _usually(usual.num_turns, str)


def _usually(value: T | None, shown: Callable[[T], str]) -> str:
    return f"usually {shown(value)}" if value else ""


def _beside(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _estimated(session: Session) -> str:
    return "estimated" if session.cost_is_estimated else ""


def _milliseconds(value: float) -> str:
    return span(value / 1000)


def _cost(session: Session) -> str:
    return f"~{dollars(session.cost_usd)}" if session.cost_is_estimated else dollars(session.cost_usd)


def tokens_of(session: Session) -> int:
    """Sum its input, cached and output tokens, as the CLI stated them."""
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return sum(value for name in names if isinstance(value := session.usage.get(name), int))


def band_of(
    session: Session,
    usual: Usual,
    limits: Limits,
    counts: Counts,
    *,
    address: str,
    waits: str,
    now_doing: str,
    now: datetime,
) -> Band:
    """Return the band of `session` as of `now` (aware).

    `waits` says what a queued one waits for, `now_doing` what a running one said last.
    """
    title, rest = title_of(session, now_doing)
    return Band(
        title=title,
        state=session.get_status_display(),
        icon=session.icon,
        tone=TONES.get(Status(session.status), ""),
        sentence=sentence_of(session, rest, usual, waits, now),
        figures=figures_of(session, usual, limits, counts, address),
        is_live=session.is_open,
    )
