"""Draw sessions as the strip of last runs: what each tick is named and where it leads."""

from __future__ import annotations

from collections.abc import Iterable

from django.urls import reverse

from claudeops.lib.charts.strip import Run, Strip, strip
from sessions_app.models import Session, Status


def strip_of(sessions: Iterable[Session]) -> Strip:
    """Return the strip of `sessions` (oldest first) that have started or ended, for `charts/_strip.html`."""
    pages = reverse("sessions")  # once: for a page of many strips it is the greater part of the time
    return strip([_run(session, pages) for session in sessions if session.status != Status.QUEUED])


def _run(session: Session, pages: str) -> Run:
    name = f"#{session.pk} {session.get_status_display()}"
    name += f": {session.ended_with}" if session.ended_with else ""
    return Run(session.icon, name, f"{pages}/{session.pk}", session.started_at or session.queued_at)
