"""`/api/transcripts`: the observed transcripts, and one with its stages, segments and facts. Reads only."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from claudeops.lib.api_errors import Refused, check_names, narrowed, page_of
from memories.access import Access, visible_memories, visible_projects
from memories.bearer import access_in, needs
from memories.models import Fact, Scope, Transcript
from memories.queries.transcripts import (
    PARTS,
    Contents,
    PartContents,
    SegmentFacts,
    TranscriptFilterSet,
    contents_of,
    listed,
    numbered,
    progress_of,
    with_numbers,
)

AFTER = {"after": "`next` of the page before."}
HIGHEST = 2**31 - 1

router = Router(tags=["transcripts"])


class TranscriptOut(Schema):
    """One transcript. Times are UTC; the counts go up to 1,001."""

    id: int
    kind: str
    arrived_by: str
    installation: str
    cli_session_id: str
    session_id: int | None = Field(description="Our session; null = a developer's.")
    project: str | None
    agent: str | None
    host: str
    folder: str
    state: str = Field(description="waiting, failed, unreadable or done.")
    problem: str
    exposure: str = Field(description="What its session had read: nothing, house or outside.")
    exposed_to: list[str]
    parts: int
    waiting_parts: int
    failed_parts: int
    unreadable_parts: int
    stored: int = Field(description="Facts that became memories, or were merged into known ones.")
    held: int
    discarded: int
    cost_usd: float | None = Field(description="Of the observer's calls; null = none states one.")
    first_at: datetime | None
    last_at: datetime | None
    ended_at: datetime | None
    seen_at: datetime


class TranscriptsOut(Schema):
    transcripts: list[TranscriptOut]
    next: str


class StageOut(Schema):
    name: str
    state: str
    attempts: int
    not_before: datetime | None
    problem: str = Field(description="Why it waits or failed.")


class FactOut(Schema):
    number: int
    text: str
    source: str
    kind: str
    priority: int = Field(description="1 must, 2 pattern, 3 note.")
    category: str
    classified_by: str
    verdict: str
    confidence: float | None
    reason: str
    outcome: str = Field(description="created, merged, held, discarded, duplicate; empty = not stored yet.")
    memory_id: int | None
    turn: int | None


class SegmentOut(Schema):
    number: int
    narrative: str = Field(description="Empty without the scope review: no gate has judged it.")
    first_turn: int | None
    last_turn: int | None
    facts: list[FactOut]


class PartOut(Schema):
    number: int
    start: int
    end: int
    state: str
    model: str
    removed: dict[str, int] = Field(description="What was taken out before the model saw it, by reason.")
    created_at: datetime
    done_at: datetime | None
    stages: list[StageOut]
    segments: list[SegmentOut]


class WholeTranscript(TranscriptOut):
    contents: list[PartOut]
    next: int | None = Field(description="The part that the next page begins with; null = there is none.")


def visible_transcripts(access: Access) -> QuerySet[Transcript]:
    """Filter to the transcripts that it may see: with a project only those of that project."""
    return Transcript.objects.filter(project=access.project_id or 0) if access.confined else Transcript.objects.all()


@router.get(
    "/transcripts",
    **needs(Scope.READ, TranscriptsOut, filters=TranscriptFilterSet, also=AFTER),
    summary="Observed transcripts, 50 a page, the last seen first",
)
def transcripts(request: HttpRequest) -> dict[str, Any]:
    access = access_in(request)
    check_names(request, [*TranscriptFilterSet.base_filters, *AFTER])
    filters = TranscriptFilterSet(request.GET, queryset=visible_transcripts(access))
    filters.filters["project"].queryset = visible_projects(access)  # another project is as unknown as one that is not
    rows, further = page_of(narrowed(filters).only("id", "seen_at"), "seen_at", request.GET.get("after", ""))
    return {"transcripts": [as_row(row) for row in numbered(rows)], "next": further}


@router.get(
    "/transcripts/{int:transcript_id}",
    **needs(Scope.READ, WholeTranscript, also={"part": "The number of the first part; 1 by default."}),
    summary="One transcript",
)
def transcript(request: HttpRequest, transcript_id: int) -> dict[str, Any]:
    """With ten of its parts, their stages, segments and facts.

    Without the scope `review` narratives are empty, and only the facts of memories that the caller may see are listed.
    """
    access = access_in(request)
    check_names(request, ["part"])
    rows = with_numbers(listed(visible_transcripts(access)))
    row = rows.filter(pk=transcript_id).first() if transcript_id < 2**63 else None
    if row is None:
        raise Refused(
            404, "transcript_not_found", f"There is no transcript {transcript_id}.", "List them: GET /api/transcripts"
        )
    contents = contents_of(row, _first_part(request) - 1, PARTS)
    shown = _shown(access, contents)
    return as_row(row) | {"contents": [_part(one, shown) for one in contents.parts], "next": contents.further}


def _first_part(request: HttpRequest) -> int:
    text = request.GET.get("part", "") or "1"
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or not 0 < int(text) <= HIGHEST:
        raise Refused(422, "invalid_part", f"part is {text[:40]!r}.", "Give a number from 1.", field="part")
    return int(text)


def _shown(access: Access, contents: Contents) -> set[int] | None:
    """Return the ids of the memories whose facts are listed; None: all facts are."""
    if access.may(Scope.REVIEW):
        return None
    facts = [fact for one in contents.parts for segment in one.segments for fact in segment.facts]
    ids = {fact.memory_id for fact in facts if fact.memory_id is not None}
    return set(visible_memories(access).filter(pk__in=ids).values_list("pk", flat=True))


def as_row(row: Any) -> dict[str, Any]:
    """Return a transcript (with its numbers) as plain values."""
    names = (
        *("kind", "arrived_by", "installation", "cli_session_id", "session_id", "agent", "host", "folder", "problem"),
        *("exposure", "exposed_to", "waiting_parts", "failed_parts", "unreadable_parts"),
        *("stored", "held", "discarded"),
        *("first_at", "last_at", "ended_at", "seen_at"),
    )
    return {name: getattr(row, name) for name in names} | {
        "id": row.pk,
        "project": row.project.slug if row.project else None,
        "state": progress_of(row).value,
        "parts": row.part_count,
        "cost_usd": None if row.cost is None else float(row.cost),
    }


def _part(one: PartContents, shown: set[int] | None) -> dict[str, Any]:
    names = ("number", "start", "end", "state", "model", "removed", "created_at", "done_at")
    stages = ("name", "state", "attempts", "not_before", "problem")
    return {name: getattr(one.part, name) for name in names} | {
        "stages": [{name: getattr(stage, name) for name in stages} for stage in one.stages],
        "segments": [_segment(segment, shown) for segment in one.segments],
    }


def _segment(one: SegmentFacts, shown: set[int] | None) -> dict[str, Any]:
    facts = [fact for fact in one.facts if shown is None or fact.memory_id in shown]
    return {
        "number": one.segment.number,
        "narrative": one.segment.narrative if shown is None else "",
        "first_turn": one.segment.first_turn,
        "last_turn": one.segment.last_turn,
        "facts": [_fact(fact) for fact in facts],
    }


def _fact(fact: Fact) -> dict[str, Any]:
    names = (
        *("number", "text", "source", "kind", "priority", "category", "classified_by", "verdict", "confidence"),
        *("reason", "outcome", "memory_id", "turn"),
    )
    return {name: getattr(fact, name) for name in names}
