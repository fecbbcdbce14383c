"""The log of a session: new lines, earlier pages, and the raw file."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from sessions_app.errors import RawLogOutside
from sessions_app.log import entries
from sessions_app.models import Session
from sessions_app.runner.raw_log import log_path
from sessions_app.web.forms import LogPlaceForm

logger = logging.getLogger(__name__)

HIGHEST = 2**63 - 1


def raw_log(session: Session) -> Path | None:
    """Return the session's raw log; None when it is not on this host, or not in the sessions' folder."""
    try:
        path = log_path(session)
    except RawLogOutside as error:
        if session.log_file:
            logger.warning("%s", error)
        return None
    return path if path.is_file() else None


def _session(pk: int) -> Session:
    """Read the columns that a log needs. Called before its lines are read, so that an ended session has all of them."""
    if pk > HIGHEST:
        raise Http404
    rows = Session.objects.select_related("agent")
    return get_object_or_404(rows.only("id", "status", "status_reason", "log_file", "agent__slug"), pk=pk)


@require_safe
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def session_log(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a page of the log. For htmx: `after` asks for new lines, `before` (and `floor`) for those left out."""
    one = _session(pk)
    form = LogPlaceForm(request.GET)
    if not form.is_valid():
        return HttpResponse("The place in the log cannot be read.", status=400, content_type="text/plain")
    after, before, floor = (form.cleaned_data[name] for name in ("after", "before", "floor"))
    if not request.htmx:  # type: ignore[attr-defined]
        return render(request, "sessions/log.html", _page(one, after, before))
    if after is not None:
        return _news(request, one, after)
    found = entries.newest(pk, before=before or entries.HIGHEST, floor=floor or 0)
    return render(request, "sessions/_earlier.html", {"session": one, "log": found})


def _page(session: Session, after: int | None, before: int | None) -> dict[str, Any]:
    if after is None:
        found = entries.newest(session.pk, before=before or entries.HIGHEST)
        later = before is not None and bool(entries.following(session.pk, found.last, most=1).lines)
        return {"session": session, "log": found, "earlier": found.more_before, "later": later}
    found = entries.following(session.pk, after)
    earlier = bool(entries.newest(session.pk, before=found.first, most=1).lines)
    return {"session": session, "log": found, "earlier": earlier, "later": found.more_after}


def _news(request: HttpRequest, session: Session, after: int) -> HttpResponse:
    """Render the lines after `after`, of more than a page the newest; 204 when there are none yet."""
    found = entries.newest(session.pk, floor=after)
    if not found.lines and session.is_open:
        return HttpResponse(status=204)
    return render(request, "sessions/_news.html", {"session": session, "log": found, "follow": session.is_open})


@require_safe
@never_cache
@permission_required("sessions_app.view_session", raise_exception=True)
def session_raw(request: HttpRequest, pk: int) -> HttpResponseBase:
    path = raw_log(_session(pk))
    if path is None:
        raise Http404("Its raw log is not in the sessions' folder of this host.")
    return FileResponse(
        path.open("rb"), as_attachment=True, filename=f"session-{pk}.jsonl", content_type="text/plain; charset=utf-8"
    )
