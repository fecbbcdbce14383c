"""`/transcripts`: the observed transcripts, `/transcripts/{id}`: one of them, and sending a failed part again."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import F
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from claudeops.lib.capped import Count, count_of
from claudeops.lib.list_page.bar import View
from claudeops.lib.list_page.columns import Column
from claudeops.lib.list_page.export import FORMATS, MOST
from claudeops.lib.list_page.keyset import both, moment, ordered, page_of
from claudeops.lib.list_page.page import ListPage, declare
from memories.errors import Conflict
from memories.models import ArrivedBy, Exposure, Transcript, TranscriptPart
from memories.observe.pipeline import send_again
from memories.queries.transcripts import (
    PROGRESS,
    SEARCHED,
    TranscriptFilterSet,
    contents_of,
    listed,
    numbered,
    progress_of,
    state_of,
    with_numbers,
)
from memories.web.answers import actor, in_words, moved
from memories.web.transcript_page import Row, band_of, neighbours_of, part_views, who_of

SEES = "memories.view_transcript"
CHANGES = "memories.change_memory"
SORTS = {sort.key: sort for sort in both("seen", "seen", F("seen_at"), "seen_at", moment)}

PAGE = declare(
    ListPage(
        TranscriptFilterSet,
        Transcript.objects.all,
        views=(
            View("All", ""),
            View("Waiting", "state=waiting"),
            View("Failed", "state=failed"),
            View("Unreadable", "state=unreadable"),
            View("Read outside text", "exposure=outside", counted=False),
        ),
        example="project:shop state:failed arrived_by:hook, or words",
        shown=("state", "project", "arrived_by", "exposure", "agent", "during"),
        name="transcripts",
        permission=SEES,
        columns=(
            Column("state", "State", progress_of, fixed=True, bare=True),
            Column("what", "What happened", lambda row: row.first_narrative, fixed=True),
            Column("who", "Who", who_of),
            Column("project", "Project", lambda row: row.project and row.project.slug),
            Column("session", "Session", lambda row: row.session_id, number=True),
            Column("parts", "Parts", lambda row: row.part_count, number=True),
            Column("stored", "Stored", lambda row: row.stored, number=True),
            Column("held", "Held", lambda row: row.held, number=True),
            Column("discarded", "Discarded", lambda row: row.discarded, number=True),
            Column("cost", "Cost", lambda row: row.cost, number=True),
            Column("seen", "Seen", lambda row: row.seen_at, sort="seen"),
            Column("arrived", "Arrived by", lambda row: row.get_arrived_by_display(), shown=False),
            Column("exposure", "Read before", lambda row: row.get_exposure_display(), shown=False),
            Column("folder", "Folder", lambda row: row.folder, shown=False),
            Column("host", "Host", lambda row: row.host, shown=False),
        ),
        sorts=SORTS,
        first="-seen",
    )
)

SUGGESTED = (
    *(f"state:{state}" for state, _ in PROGRESS),
    *(f"arrived_by:{way}" for way in ArrivedBy.values),
    *(f"exposure:{exposure}" for exposure in Exposure.values),
    *("during:24h", "during:7d", "during:30d"),
)


@require_safe
@never_cache
@permission_required(SEES, raise_exception=True)
def transcripts(request: HttpRequest) -> HttpResponseBase:
    filters = TranscriptFilterSet(request.GET, queryset=Transcript.objects.all())
    rows = filters.qs if filters.is_valid() and not PAGE.errors(request) else Transcript.objects.none()
    sort, after, before = PAGE.place(request)
    chosen = PAGE.chosen(request)
    if request.GET.get("format") in FORMATS:
        return PAGE.export(request.GET["format"], chosen.shown, ordered(with_numbers(listed(rows)), sort))
    if away := PAGE.redirect(request):
        return away
    # The numbers are read of the page's rows alone: a sort would compute them for all that match.
    page = page_of(rows.only("id", "seen_at"), sort, chosen.size, after=after, before=before)
    count = count_of(rows) if page.further or page.back else Count(len(page.rows))
    context = {
        **PAGE.list_context(request, sort, chosen),
        **PAGE.context(request, filters, SUGGESTED, chosen=chosen),
        "heading": "Transcripts",
        "list_id": "transcripts",
        "one_of_them": "transcript",
        "filters": filters,
        "page": page,
        "rows": [Row.of(row) for row in numbered(page.rows)],
        "count": count,
        "searched": SEARCHED if request.GET.get(PAGE.text) else None,
        "export_most": f"{MOST:,}",
    }
    return render(request, "transcripts/list.html", context)


@require_safe
@never_cache
@permission_required(SEES, raise_exception=True)
def transcript(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a page of the parts of a transcript, the first or that with `part` (a number) as its first."""
    state = state_of(pk)  # before the rest: what changes in between is sent with the next poll
    return render(request, "transcripts/transcript.html", _context(request, pk, state))


@require_safe
@never_cache
@permission_required(SEES, raise_exception=True)
def live(request: HttpRequest, pk: int) -> HttpResponse:
    """Answer the poll of a transcript whose parts wait: 204 while nothing happened since `seen`, else all of it."""
    state = state_of(pk)
    if request.GET.get("seen", "") == state:
        return HttpResponse(status=204)
    return render(request, "transcripts/_changed.html", _context(request, pk, state))


def _context(request: HttpRequest, pk: int, state: str) -> dict[str, Any]:
    found: Any = get_object_or_404(with_numbers(Transcript.objects.select_related("project")), pk=pk)
    part = request.GET.get("part", "")
    place = int(part) - 1 if part.isascii() and part.isdecimal() and 0 < len(part) < 9 else 0
    contents = contents_of(found, place)
    return {
        "seen": state,
        "transcript": found,
        "address": reverse("transcript", args=[pk]),
        "neighbours": neighbours_of(found),
        "band": band_of(found),
        "who": who_of(found),
        "parts": part_views(contents),
        "contents": contents,
        "place": max(0, place),
    }


@require_POST
@permission_required((SEES, CHANGES), raise_exception=True)
def again(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Let a part that failed, or is unreadable, wait again; the worker of its host takes it up within a minute."""
    part = get_object_or_404(TranscriptPart, transcript=pk, number=number)
    back = f"{reverse('transcript', args=[pk])}?part={number}"
    try:
        send_again(part, by=actor(request))
    except Conflict as conflict:
        return moved(request, back, in_words(conflict), level=messages.ERROR)
    return moved(request, back, f"Part {number} waits again, from the stage that stopped.")
