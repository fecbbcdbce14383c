"""A memory's sessions, for its page in an app that does not know sessions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django import template
from django.urls import reverse
from django.utils import timezone

from claudeops.lib import humanize
from claudeops.lib.charts.strip import MOST as STRIP
from claudeops.lib.charts.strip import Strip
from claudeops.lib.detail_page import Band, Figure
from sessions_app import receipts
from sessions_app.credit.facts import uses_of
from sessions_app.models import Session, Status
from sessions_app.queries.helped import helped
from sessions_app.web.session_tabs import lines_of, marked_entries
from sessions_app.web.strips import strip_of

register = template.Library()

FEW = 4
"""Most sessions that a memory's page lists; the strip shows more of them."""


@dataclass(frozen=True, slots=True)
class Told:
    """The sessions that received a memory: the latest `rows`, the strip of the last ones, and all counted in words.

    `outcomes` counts by status those of the last `receipts.COUNTED`; `capped`: there are more than these.
    """

    rows: list[Session]
    count: str
    strip: Strip
    outcomes: str
    counted: int
    capped: bool


@register.simple_tag
def told_sessions(memory: int) -> Told:
    """Return the sessions that received the memory. Four queries, each of a part of an index."""
    page = receipts.told(memory, most=STRIP)
    counts = receipts.outcomes(memory)
    counted = sum(counts.values())
    return Told(
        rows=page.rows,
        count=page.count,
        strip=strip_of(reversed(page.rows)),
        outcomes=", ".join(f"{count} {Status(status).label}" for status, count in counts.items()),
        counted=counted,
        capped=counted >= receipts.COUNTED,
    )


AROUND = 600
"""Characters that are shown of a line on either side of a memory's text."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a session's log: its number, and its text around what it says."""

    seq: int
    text: str


@register.simple_tag
def said_in_log(memory: Any) -> Line | None:
    """Return the line of its session's log that says a memory; None when no line does. One query."""
    entries = marked_entries(memory.session_id)
    [seq] = lines_of([memory.observation], entries)
    if seq is None:
        return None
    text = dict(entries)[seq]
    place = max(0, text.find(memory.observation[:40]))
    start, end = max(0, place - AROUND), place + len(memory.observation) + AROUND
    return Line(seq, ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else ""))


@register.simple_tag
def with_told(band: Band, told: Told, memory: int) -> Band:
    """Return the band of a memory with how many sessions received it as its second figure."""
    value = "no session" if not told.rows else f"{told.count} session{'' if told.count == '1' else 's'}"
    url = reverse("memory-sessions", args=[memory]) if told.rows else ""
    figure = Figure("Told", value, _last(told.rows), url)
    return replace(band, figures=(*band.figures[:1], figure, *band.figures[1:]))


def _last(rows: list[Session]) -> str:
    at = rows[0].started_at or rows[0].queued_at if rows else None
    return f"last {humanize.ago(at, timezone.now())}" if at else ""


@register.filter
def said_of(session: Session) -> str:
    """Return what came of a session in a line: its summary, or why it ended; its status when it said nothing."""
    return session.ended_with or session.get_status_display()


@register.inclusion_tag("sessions/_helped.html")
def did_it_help(memory: int, service: str) -> dict[str, Any]:
    return {"helped": helped(memory, service, at=timezone.now())}


@register.inclusion_tag("sessions/_of_memory.html")
def sessions_of_memory(memory: int, told: Told) -> dict[str, Any]:
    return {"pk": memory, "told": replace(told, rows=told.rows[:FEW]), "uses": uses_of(memory)}
