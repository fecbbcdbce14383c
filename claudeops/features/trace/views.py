"""`/trace`: why something was not remembered, in one sentence and eight steps."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from claudeops.features import trace as tracing
from claudeops.lib import local_time
from claudeops.lib.answers import page
from memories.queries.list import latest_change_of
from sessions_app.errors import SessionsError
from sessions_app.models import Session
from sessions_app.web.forms import TraceForm
from sessions_app.web.memory_sessions import MAY_SEE

SESSIONS = 30
"""The latest sessions with a prompt of ours that can be chosen."""
SEES_TRANSCRIPTS = "memories.view_transcript"
CHANGES = "memories.change_memory"


@page(MAY_SEE)
def trace(request: HttpRequest) -> HttpResponse:
    form = TraceForm(request.GET)
    context: dict[str, Any] = {"form": form}
    status = 200
    if not form.is_valid():
        status = 422
    elif form.cleaned_data["q"].strip():
        try:
            trail = tracing.trace(
                form.cleaned_data["q"],
                session_id=form.cleaned_data["session"],
                with_transcripts=request.user.has_perm(SEES_TRANSCRIPTS),
            )
        except SessionsError as error:
            form.add_error("session", str(error))
            status = 422
        else:
            may_change = request.user.has_perm(CHANGES)
            context |= {
                "found": trail,
                "actions": [one for one in trail.actions if may_change or not one.post],
                "seen": latest_change_of(trail.memory) if trail.memory else 0,
            }
    chosen = form.cleaned_data.get("session") if form.is_bound and status == 200 else None
    context |= {"sessions": _sessions(chosen), "chosen": chosen}
    return render(request, "trace/trace.html", context, status=status)


def _sessions(chosen: int | None) -> list[tuple[int, str]]:
    """Return the sessions to choose from: the latest with a receipt, and the one that is chosen."""
    rows = Session.objects.filter(receipt__isnull=False).select_related("agent")
    rows = rows.only("id", "started_at", "queued_at", "agent__slug").order_by("-queued_at", "-id")
    now, latest = timezone.now(), {}
    for row in rows[:SESSIONS]:
        at, agent = row.started_at or row.queued_at, f", {row.agent.slug}" if row.agent else ""
        latest[row.pk] = f"{row.pk}{agent}, {local_time.day(at, now)} {local_time.clock(at)[:5]}"
    if chosen is not None and chosen not in latest:
        latest = {chosen: str(chosen), **latest}
    return list(latest.items())
