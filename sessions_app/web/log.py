"""The log of a session: new lines, earlier pages, a search, and the raw file."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.http import FileResponse, Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render

from claudeops.lib.answers import page
from sessions_app.errors import RawLogOutside
from sessions_app.log import entries
from sessions_app.log.entries import ALL, PAGE, Counts, Only, counts_of, raw_page
from sessions_app.models import Session
from sessions_app.runner.raw_log import log_path
from sessions_app.web.forms import LogForm, RawPageForm

logger = logging.getLogger(__name__)

HIGHEST = 2**63 - 1
MOST_PASSED = 500
"""Lines that a restricted poll passes over again and again at most, before the browser gets a later place."""


def raw_log(session: Session) -> Path | None:
    """Return the session's raw log; None when it is not on this host, or not in the sessions' folder."""
    try:
        path = log_path(session)
    except RawLogOutside as error:
        if session.log_file:
            logger.warning("%s", error)
        return None
    return path if path.is_file() else None


def raw_size(session: Session) -> int | None:
    """Return the size of the session's raw log in bytes; None when it is not here."""
    path = raw_log(session)
    try:
        return None if path is None else path.stat().st_size
    except OSError:  # gone in between
        return None


def kinds_of(counts: Counts) -> list[tuple[str, str, int | None]]:
    """Return the kinds that a log can be restricted to: name in the address, label, number of lines."""
    return [
        ("", "All", counts.all),
        ("text", "Text", counts.texts),
        ("calls", "Calls", counts.calls),
        ("results", "Results", counts.results),
        ("errors", "Errors", counts.errors),
    ]


def panel(session: Session, counts: Counts, query: QueryDict) -> dict[str, Any]:
    """Return what the log on the session's page shows; `query` is that of the page's address.

    With a line that was asked for, `log` has that line, and `news` the newest lines behind it.
    """
    form = LogForm(query)
    only, line = (form.only, form.cleaned_data["line"]) if form.is_valid() else (ALL, None)
    log = entries.around(session.pk, line, only=only) if line else entries.newest(session.pk, only=only)
    news = entries.newest(session.pk, floor=log.last, only=only) if log.more_after else None
    return {
        "log": log,
        "news": news,
        "last": (news or log).last,
        "kinds": kinds_of(counts),
        "raw_size": raw_size(session),
    }


def _session(pk: int) -> Session:
    """Read the columns that a log needs. Called before its lines are read, so that an ended session has all of them."""
    if pk > HIGHEST:
        raise Http404
    rows = Session.objects.select_related("agent")
    shown = ("id", "status", "status_reason", "log_file", "stats", "agent__slug")
    return get_object_or_404(rows.only(*shown, "pid", "started_at", "ingest_offset", "trigger"), pk=pk)


@page("sessions_app.view_session")
def session_log(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a page of the log. For htmx: `after` asks for new lines, `before` (and `floor`) for those left out."""
    one = _session(pk)
    form = LogForm(request.GET)
    if not form.is_valid():
        return HttpResponse("The place in the log cannot be read.", status=400, content_type="text/plain")
    after, before, floor, line = (form.cleaned_data[name] for name in ("after", "before", "floor", "line"))
    if not request.htmx:  # type: ignore[attr-defined]
        return render(request, "sessions/log.html", _page(one, form.only, after, before, line))
    if after is not None:
        return _news(request, one, form.only, after)
    log = entries.newest(pk, before=before or entries.HIGHEST, floor=floor or 0, only=form.only)
    return render(request, "sessions/_earlier.html", {"session": one, "log": log})


def _page(session: Session, only: Only, after: int | None, before: int | None, line: int | None) -> dict[str, Any]:
    shown = {"session": session, "kinds": kinds_of(counts_of(session))}
    if line is not None:
        after = (line - 1) // PAGE * PAGE
    if after is None:
        log = entries.newest(session.pk, before=before or entries.HIGHEST, only=only)
        later = before is not None and bool(entries.following(session.pk, log.last, most=1, only=only).lines)
        return shown | {"log": log, "earlier": log.more_before, "later": later}
    log = entries.following(session.pk, after, only=only)
    earlier = bool(entries.newest(session.pk, before=log.first, most=1, only=only).lines)
    return shown | {"log": replace(log, at=line or 0), "earlier": earlier, "later": log.more_after}


def _news(request: HttpRequest, session: Session, only: Only, after: int) -> HttpResponse:
    """Render the lines after `after`, of more than a page the newest; 204 when there are none yet."""
    upto = entries.last_seq(session.pk) if only != ALL else after
    log = entries.newest(session.pk, floor=after, only=only)
    last = log.last
    if not log.lines and session.is_open:
        if upto - after < MOST_PASSED:
            return HttpResponse(status=204)
        last = upto  # what was looked through is not looked through again
    context = {"session": session, "log": log, "last": last, "follow": session.is_open}
    if log.lines:
        context["kinds"] = kinds_of(counts_of(session))
    return render(request, "sessions/_news.html", context)


@page("sessions_app.view_session")
def session_raw(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Show one page of the raw log, or with `download` the file."""
    session = _session(pk)
    path = raw_log(session)
    if path is None:
        raise Http404("Its raw log is not in the sessions' folder of this host.")
    if "download" in request.GET:
        name, text = f"session-{pk}.jsonl", "text/plain; charset=utf-8"
        return FileResponse(path.open("rb"), as_attachment=True, filename=name, content_type=text)
    form = RawPageForm(request.GET)
    number = form.cleaned_data["page"] if form.is_valid() else None
    return render(request, "sessions/raw.html", {"session": session, "page": raw_page(path, number or 1)})
