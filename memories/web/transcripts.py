"""`/transcripts`: the observed transcripts, `/transcripts/{id}`: one of them, and sending a failed part again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from claudeops.lib import times
from claudeops.lib.answers import actor, in_words, moved
from claudeops.lib.list_view.columns import BuiltIn, Column
from claudeops.lib.list_view.keyset import both
from claudeops.lib.list_view.view import ListView
from memories.errors import Conflict
from memories.models import ArrivedBy, Exposure, Transcript, TranscriptPart
from memories.observe.parts import send_again
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
from memories.web.transcript_page import Row, band_of, neighbours_of, part_views, who_of

SEES = "memories.view_transcript"
CHANGES = "memories.change_memory"


class TranscriptList(ListView):
    name, heading, one = "transcripts", "Transcripts", "transcript"
    template, row_template = "transcripts/list.html", "transcripts/_row.html"
    permission_required = SEES
    model, filterset = Transcript, TranscriptFilterSet
    searched = f"{SEARCHED:,}"
    fields = ("state", "project", "arrived_by", "exposure", "agent", "during")
    example = "project:shop state:failed arrived_by:hook, or words"
    built_in = (
        BuiltIn("All", ""),
        BuiltIn("Waiting", "state=waiting"),
        BuiltIn("Failed", "state=failed"),
        BuiltIn("Unreadable", "state=unreadable"),
        BuiltIn("Read outside text", "exposure=outside", counted=False),
    )
    columns = (
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
    )
    sorts, first = both("seen", "seen", F("seen_at"), "seen_at", times.parse), "-seen"

    def listed(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Limit the rows to their place: a sort would compute the numbers for all that match."""
        return with_numbers(listed(rows)) if self.is_export else rows.only("id", "seen_at")

    def drawn(self, rows: Sequence[Transcript]) -> Sequence[Row]:
        return [Row.of(row) for row in numbered(rows)]

    def suggested(self) -> tuple[str, ...]:
        return (
            *(f"state:{state}" for state, _ in PROGRESS),
            *(f"arrived_by:{way}" for way in ArrivedBy.values),
            *(f"exposure:{exposure}" for exposure in Exposure.values),
            *("during:24h", "during:7d", "during:30d"),
        )


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
