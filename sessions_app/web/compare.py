"""`/sessions/{id}/compare`: a session beside the last good run of its agent, or beside any other (`with`)."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from claudeops.lib.answers import page
from claudeops.lib.humanize import dollars, span
from memories.models import MemoryChange
from sessions_app.models import Event, Session
from sessions_app.queries.compare import compare, last_good
from sessions_app.web.session import TIERS
from sessions_app.web.session_band import title_of, tokens_of

HIGHEST = 2**63 - 1


NUMBER = forms.IntegerField(min_value=1, max_value=HIGHEST, required=False)


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A figure of both sessions, for people; `times` says how many times the other's the first one is."""

    label: str
    one: str
    other: str
    times: str = ""

    @property
    def differs(self) -> bool:
        return self.one != self.other


def _session(pk: int) -> Session | None:
    rows = Session.objects.select_related("agent", "project").defer("structured", "injected_text")
    return rows.filter(pk=pk).first() if pk <= HIGHEST else None


@page("sessions_app.view_session")
def session_compare(request: HttpRequest, pk: int) -> HttpResponse:
    one = _session(pk)
    if one is None:
        raise Http404
    text, error = request.GET.get("with", ""), ""
    try:
        number = NUMBER.clean(text)
    except forms.ValidationError:
        number, error = None, "Give the number of a session."
    wanted = None if error else number or last_good(one)
    other = _session(wanted) if wanted and wanted != pk else None
    if number and other is None:
        error = f"There is no other session {number}."
    context = {
        "session": one,
        "asked": text or wanted or "",
        "error": error,
        "address": reverse("session", args=[pk]),
        "is_default": not number,
    }
    if other is not None:
        context |= {
            "other": other,
            "found": compare(one, other),
            "figures": figures_of(one, other),
            "title": title_of(one)[0],
            "other_title": title_of(other)[0],
        }
    return render(request, "sessions/compare.html", context, status=422 if error else 200)


def figures_of(one: Session, other: Session) -> list[FigureRow]:
    """Return the figures of both, in two queries."""
    both = (one, other)
    learned, events = (
        dict(model.objects.filter(session__in=both).order_by().values_list("session").annotate(Count("pk")))
        for model in (MemoryChange, Event)
    )
    lasted = [session.lasted_ms or 0 for session in both]
    numbers = [
        ("Duration", *(span(ms / 1000) if ms else "–" for ms in lasted), _times(*lasted)),
        ("Turns", *(f"{session.num_turns:,}" for session in both), _times(one.num_turns, other.num_turns)),
        ("Tool calls", *(f"{session.tool_calls:,}" for session in both), _times(one.tool_calls, other.tool_calls)),
        ("Cost", *(dollars(session.cost_usd) for session in both), _times(float(one.cost_usd), float(other.cost_usd))),
        ("Tokens", *(f"{tokens_of(session):,}" for session in both), _times(tokens_of(one), tokens_of(other))),
        ("Learned", *(f"{learned.get(session.pk, 0):,}" for session in both), ""),
        ("Events", *(f"{events.get(session.pk, 0):,}" for session in both), ""),
        ("Exit code", *("–" if session.exit_code is None else f"{session.exit_code}" for session in both), ""),
        ("Agent", *(session.agent.slug if session.agent else "none" for session in both), ""),
        ("Trigger", *(str(session.get_trigger_display()) for session in both), ""),
        ("Tier", *(TIERS.get(session.tier, f"{session.tier}") for session in both), ""),
        ("Model", *(session.model or "–" for session in both), ""),
        ("Host", *(session.host or "–" for session in both), ""),
        ("Has read", *(session.has_read for session in both), ""),
    ]
    return [FigureRow(*row) for row in numbers]


def _times(one: float, other: float) -> str:
    """Return "2.3 times" where the two are not about equal; empty without a number to compare with."""
    if not one or not other or 0.9 <= one / other <= 1.1:
        return ""
    return f"{one / other:.2g} times" if one / other < 10 else f"{one / other:,.0f} times"
