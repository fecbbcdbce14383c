"""`/learning-log`: the observed transcripts, `/learning-log/{id}`: one of them, and sending a failed part again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from django.contrib import messages
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from claudeops.lib import humanize, times
from claudeops.lib.answers import action, actor, in_words, moved, page
from claudeops.lib.detail_page import Band, Figure, headline
from claudeops.lib.list_view.columns import BuiltIn, Column
from claudeops.lib.list_view.keyset import both, neighbours_of
from claudeops.lib.list_view.view import ListView
from memories.errors import Conflict
from memories.models import (
    ArrivedBy,
    Exposure,
    Fact,
    FactOutcome,
    Priority,
    StageState,
    Transcript,
    TranscriptPart,
    Verdict,
)
from memories.observe.pipeline import send_again
from memories.queries.transcripts import (
    MOST,
    PROGRESS,
    SEARCHED,
    Contents,
    PartContents,
    Progress,
    SegmentFacts,
    TranscriptFilterSet,
    contents_of,
    listed,
    numbered,
    progress_of,
    state_of,
    with_numbers,
)

BY_SEEN = both("seen", "seen", F("seen_at"), "seen_at", times.parse)
TITLE = 200
"""Most characters of a page's title."""

STATES = {
    Progress.WAITING: ("queued", "waiting", "info"),
    Progress.FAILED: ("failed", "failed", "bad"),
    Progress.UNREADABLE: ("warning", "unreadable", "warn"),
    Progress.DONE: ("ok", "observed", "ok"),
}
"""Icon, word and tone of each state."""

STAGE_ICONS = {
    StageState.WAITING: "queued",
    StageState.RUNNING: "running",
    StageState.DONE: "ok",
    StageState.FAILED: "failed",
}

OUTCOMES = {
    FactOutcome.CREATED: ("ok", "stored"),
    FactOutcome.MERGED: ("ok", "merged into a known memory"),
    FactOutcome.HELD: ("held", "held for review"),
    FactOutcome.DISCARDED: ("inactive", "discarded"),
    FactOutcome.DUPLICATE: ("skipped", "said before in this session"),
}
NOT_STORED = ("queued", "not stored yet")

MARKS = {Priority.RED: "must", Priority.YELLOW: "pattern", Priority.GREEN: "note"}
"""The mark of a priority (in templates/transcripts/_segment.html) and its word."""


def who_of(row: Transcript) -> str:
    """Return whose session it was: its agent, or the installation whose hook named it; empty for neither."""
    return row.agent or row.installation


def title_of(row: Any) -> str:
    """Say in a line what a transcript (with its numbers) tells: its first narrative, or why there is none."""
    if row.first_narrative:
        return headline(row.first_narrative, TITLE)[0]
    progress = progress_of(row)
    if progress is Progress.DONE:
        return "Nothing to keep" if row.part_count else "Nothing to observe yet"
    if progress is Progress.UNREADABLE:
        return "The observer's answer could not be read"
    return "Waits to be observed" if progress is Progress.WAITING else "Could not be observed"


def draw_row(row: Any) -> Any:
    """Give a transcript (with its numbers) what its row shows: `icon`, `progress`, `title`, `who`."""
    row.icon, row.progress, _ = STATES[progress_of(row)]
    row.title, row.who = title_of(row), who_of(row)
    return row


def band_of(row: Any) -> Band:
    icon, state, tone = STATES[progress_of(row)]
    address = reverse("transcript", args=[row.pk])
    waits = f"{_counted(row.waiting_parts)} waiting" if row.waiting_parts else ""
    failed = f"{_counted(row.failed_parts)} failed" if row.failed_parts else ""
    unreadable = f"{_counted(row.unreadable_parts)} unreadable" if row.unreadable_parts else ""
    cost = () if row.cost is None else (Figure("Cost", humanize.dollars(row.cost), "of the observer's calls"),)
    return Band(
        title=title_of(row),
        state=state,
        icon=icon,
        tone=tone,
        sentence=row.problem,
        figures=(
            Figure(
                "Parts",
                _counted(row.part_count),
                ", ".join(filter(None, (failed, unreadable, waits))),
                url=f"{address}#parts",
            ),
            Figure(
                "Stored", _counted(row.stored), f"{_counted(row.merged)} merged into known ones" if row.merged else ""
            ),
            Figure("Held", _counted(row.held), url=f"{reverse('inbox')}?view=held" if row.held else ""),
            Figure("Discarded", _counted(row.discarded)),
            *cost,
        ),
    )


def _counted(number: int) -> str:
    return f"{MOST:,}+" if number > MOST else f"{number:,}"


def draw_stage(stage: Any) -> None:
    """Give a stage its `icon`, its state in a `word`, and what it `counted` ("in 12, out 9") or why it was skipped."""
    counts = stage.counts if isinstance(stage.counts, dict) else {}
    stage.icon, stage.word = STAGE_ICONS[StageState(stage.state)], str(stage.get_state_display())
    stage.counted = ", ".join(f"{name} {count}" for name, count in counts.items())
    if skipped := counts.get("skipped"):
        stage.icon, stage.word, stage.counted = "skipped", "passed over", str(skipped)


def draw_facts(segments: list[SegmentFacts]) -> list[SegmentFacts]:
    """Give each fact the `mark` of its priority, what `became` of it, and its address in the inbox (`review`).

    `classified` says who chose its category: "operations (by the keywords, 0.90)". `said` is the model's own word.
    """
    for fact in (fact for segment in segments for fact in cast(list[Any], segment.facts)):
        fact.mark = MARKS[Priority(fact.priority)]
        fact.icon, fact.became = OUTCOMES[FactOutcome(fact.outcome)] if fact.outcome else NOT_STORED
        fact.classified, fact.said, fact.review = _category(fact), _said(fact), ""
        if fact.memory is not None and fact.memory.waits:
            kind = "held" if fact.memory.verdict == Verdict.HOLD else "unconfirmed"
            fact.review = f"{reverse('inbox')}?view={kind}&item={kind}-{fact.memory_id}"
    return segments


def draw_parts(contents: Contents) -> list[PartContents]:
    """Give the stages and facts of each part what the page shows of them."""
    for part in contents.parts:
        for stage in part.stages:
            draw_stage(stage)
        draw_facts(part.segments)
    return contents.parts


def _category(fact: Fact) -> str:
    if not fact.category:
        return "no category yet"
    if not fact.classified_by:
        return fact.category
    if fact.category_confidence == 0:
        return f"{fact.category} (by default)"
    sure = "" if fact.category_confidence is None else f", {fact.category_confidence:.2f}"
    return f"{fact.category} (by the {fact.get_classified_by_display()}{sure})"


def _said(fact: Fact) -> str:
    """Return the model's own word on a fact: "allow, 0.92, operations"."""
    sure = "" if fact.said_confidence is None else f"{fact.said_confidence:.2f}"
    return ", ".join(filter(None, (fact.said_gate or "unreadable", sure, fact.said_category)))


SEES = "memories.view_transcript"
CHANGES = "memories.change_memory"


class TranscriptList(ListView):
    name, heading, one = "transcripts", "Learning log", "transcript"
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
    sorts, first = BY_SEEN, "-seen"

    def listed(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Limit the rows to their place: a sort would compute the numbers for all that match."""
        return with_numbers(listed(rows)) if self.is_export else rows.only("id", "seen_at")

    def drawn(self, rows: Sequence[Transcript]) -> Sequence[Transcript]:
        return [draw_row(row) for row in numbered(rows)]

    def suggested(self) -> tuple[str, ...]:
        return (
            *(f"state:{state}" for state, _ in PROGRESS),
            *(f"arrived_by:{way}" for way in ArrivedBy.values),
            *(f"exposure:{exposure}" for exposure in Exposure.values),
            *("during:24h", "during:7d", "during:30d"),
        )


@page(SEES)
def transcript(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a page of the parts of a transcript, the first or that with `part` (a number) as its first."""
    state = state_of(pk)  # before the rest: what changes in between is sent with the next poll
    return render(request, "transcripts/transcript.html", _context(request, pk, state))


@page(SEES)
def live(request: HttpRequest, pk: int) -> HttpResponse:
    """Answer the poll of a transcript whose parts wait: 204 while nothing happened since `seen`, else all of it."""
    state = state_of(pk)
    if request.GET.get("seen", "") == state:
        return HttpResponse(status=204)
    return render(request, "transcripts/_changed.html", _context(request, pk, state))


def _context(request: HttpRequest, pk: int, state: str) -> dict[str, Any]:
    row: Any = get_object_or_404(with_numbers(Transcript.objects.select_related("project")), pk=pk)
    part = request.GET.get("part", "")
    place = int(part) - 1 if part.isascii() and part.isdecimal() and 0 < len(part) < 9 else 0
    contents = contents_of(row, place)
    return {
        "seen": state,
        "transcript": row,
        "address": reverse("transcript", args=[pk]),
        "neighbours": neighbours_of(
            Transcript.objects.all(), BY_SEEN["-seen"], row, "transcript", order="by the time they were last seen"
        ),
        "band": band_of(row),
        "who": who_of(row),
        "parts": draw_parts(contents),
        "contents": contents,
        "place": max(0, place),
    }


@action((SEES, CHANGES))
def again(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Let a part that failed, or is unreadable, wait again; the worker of its host takes it up within a minute."""
    part = get_object_or_404(TranscriptPart, transcript=pk, number=number)
    back = f"{reverse('transcript', args=[pk])}?part={number}"
    try:
        send_again(part, by=actor(request))
    except Conflict as conflict:
        return moved(request, back, in_words(conflict), level=messages.ERROR)
    return moved(request, back, f"Part {number} waits again, from the stage that stopped.")
