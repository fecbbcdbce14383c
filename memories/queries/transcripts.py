"""Observed transcripts for their pages and the API: filters, the numbers of a list, and what one transcript holds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import django_filters
from django.db.models import Count, DecimalField, Exists, Max, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Substr

from claudeops.lib.capped import CappedCount
from claudeops.lib.change_token import hash_of
from claudeops.lib.list_view.filters import PeriodFilter
from memories.models import (
    ArrivedBy,
    Exposure,
    Fact,
    FactOutcome,
    PartState,
    Project,
    Segment,
    Stage,
    StageState,
    Transcript,
    TranscriptPart,
)
from memories.queries.filters import IdFilter

SEARCHED = 5_000
"""Transcripts among which words are looked for: no index has them."""
MOST = 1_000
"""Parts and facts of a transcript are counted up to here."""
PARTS = 10
"""Parts of a transcript on a page, each with all of its segments."""
FACTS = 500
"""Most facts of a page of parts."""
ANSWER = 20_000
"""Characters of a raw answer that are read for a page."""

STORED = (FactOutcome.CREATED, FactOutcome.MERGED)
NO_PROJECT = "none"


class Progress(StrEnum):
    """How far the observation of a transcript is: failed or unreadable when one of its parts is, done when all are."""

    WAITING = "waiting"
    FAILED = "failed"
    UNREADABLE = "unreadable"
    DONE = "done"


PROGRESS = [(one, "observed" if one is Progress.DONE else one.value) for one in Progress]


class TranscriptFilterSet(django_filters.FilterSet):
    """Query parameters, all optional and combined by AND.

    project (slug, or `none`), arrived_by (session, hook, sweep, command), state (waiting, failed, unreadable, done),
    exposure (what the session had read by the end of what was observed), agent (slug), session (id of ours), during
    (when it was last seen, as `24h`, `7d`, `30d`, `90d`, or two times with `..` between, the first one included), and
    text (every word of it in a narrative, the folder, the installation or the CLI's session id).

    Text is looked for in the newest SEARCHED of the transcripts that the other filters leave.
    """

    project = django_filters.ModelChoiceFilter(
        queryset=Project.objects.only("id", "slug"),
        to_field_name="slug",
        label="Project",
        empty_label="any project",
        null_label="no project",
        null_value=NO_PROJECT,
    )
    state = django_filters.ChoiceFilter(choices=PROGRESS, method="by_state", label="State", empty_label="any state")
    arrived_by = django_filters.ChoiceFilter(choices=ArrivedBy.choices, label="Arrived by", empty_label="anything")
    exposure = django_filters.ChoiceFilter(choices=Exposure.choices, label="Read before", empty_label="anything")
    agent = django_filters.CharFilter(label="Agent", max_length=64)
    session = IdFilter(field_name="session_id", min_value=1, max_value=2**63 - 1, label="Session")
    during = PeriodFilter(field_name="seen_at", label="Period, as 24h or from..to")
    # Declared last: filters are applied in this order, and this one gets what the others leave.
    text = django_filters.CharFilter(method="by_text", label="Text", max_length=200)

    class Meta:
        model = Transcript
        fields: list[str] = []  # each is declared above, so that a new column adds no filter

    def by_state(self, queryset: QuerySet[Transcript], name: str, value: str) -> QuerySet[Transcript]:
        # By the few parts that are not done, which partial indexes hold.
        for state in (PartState.FAILED, PartState.UNREADABLE, PartState.WAITING):
            condition = Q(pk__in=TranscriptPart.objects.filter(state=state).order_by().values("transcript"))
            if value == state.value:
                return queryset.filter(condition)
            queryset = queryset.exclude(condition)
        return queryset

    def by_text(self, queryset: QuerySet[Transcript], name: str, value: str) -> QuerySet[Transcript]:
        newest = queryset.order_by("-seen_at", "-id").values("pk")[:SEARCHED]
        queryset = Transcript.objects.filter(pk__in=Subquery(newest))
        for word in value.split():
            in_narrative = Exists(Segment.objects.filter(transcript=OuterRef("pk"), narrative__icontains=word))
            named = Q(folder__icontains=word) | Q(installation__icontains=word) | Q(cli_session_id__icontains=word)
            queryset = queryset.filter(named | Q(in_narrative))
        return queryset


def with_numbers(rows: QuerySet[Transcript]) -> QuerySet[Transcript]:
    """Add what a row of a list shows, each by an index range.

    `part_count`, `waiting_parts`, `failed_parts`, `unreadable_parts`; of its facts `stored` (with those `merged` into
    known memories), `held` and `discarded` (up to MOST + 1);
    `cost` (US dollars, None without a call that states one) of the calls whose answers were kept; `first_narrative`.
    """
    own = OuterRef("pk")
    parts = TranscriptPart.objects.filter(transcript=own)
    facts = Fact.objects.filter(segment__transcript=own)
    cost = parts.order_by().values("transcript").annotate(sum=Sum("call__cost_usd")).values("sum")
    return rows.annotate(
        part_count=CappedCount(parts, MOST),
        waiting_parts=CappedCount(parts.filter(state=PartState.WAITING), MOST),
        failed_parts=CappedCount(parts.filter(state=PartState.FAILED), MOST),
        unreadable_parts=CappedCount(parts.filter(state=PartState.UNREADABLE), MOST),
        stored=CappedCount(facts.filter(outcome__in=STORED), MOST),
        merged=CappedCount(facts.filter(outcome=FactOutcome.MERGED), MOST),
        held=CappedCount(facts.filter(outcome=FactOutcome.HELD), MOST),
        discarded=CappedCount(facts.filter(outcome=FactOutcome.DISCARDED), MOST),
        cost=Subquery(cost, output_field=DecimalField(max_digits=14, decimal_places=6)),
        first_narrative=Subquery(Segment.objects.filter(transcript=own).order_by("number").values("narrative")[:1]),
    )


def numbered(rows: Sequence[Transcript]) -> list[Transcript]:
    """Read the rows again, in their order, with the numbers of a list. One query."""
    ids = [row.pk for row in rows]
    by_id = with_numbers(listed(Transcript.objects.filter(pk__in=ids))).in_bulk() if ids else {}
    return [by_id[pk] for pk in ids if pk in by_id]


def listed(rows: QuerySet[Transcript]) -> QuerySet[Transcript]:
    """Limit the rows to the columns that a list or the API shows."""
    return rows.select_related("project").defer("state", "prefix_sha256", "path")


def progress_of(row: Transcript) -> Progress:
    """Return how far a row with its numbers is."""
    if row.failed_parts:  # type: ignore[attr-defined]
        return Progress.FAILED
    if row.unreadable_parts:  # type: ignore[attr-defined]
        return Progress.UNREADABLE
    return Progress.WAITING if row.waiting_parts else Progress.DONE  # type: ignore[attr-defined]


@dataclass(slots=True)
class SegmentFacts:
    """A segment with its facts, in their order."""

    segment: Segment
    facts: list[Fact] = field(default_factory=list)


@dataclass(slots=True)
class PartContents:
    """A part with its stages in their order and its segments with their facts."""

    part: TranscriptPart
    stages: list[Stage] = field(default_factory=list)
    segments: list[SegmentFacts] = field(default_factory=list)

    @property
    def removed(self) -> list[tuple[str, int]]:
        """Return what was taken out before the model saw it, by reason, the most first."""
        removed = self.part.removed if isinstance(self.part.removed, dict) else {}
        return sorted(removed.items(), key=lambda pair: (-pair[1], pair[0]))

    @property
    def current(self) -> Stage | None:
        """Return the first stage that is not done; None when all are."""
        return next((stage for stage in self.stages if stage.state != "done"), None)


@dataclass(frozen=True, slots=True)
class Contents:
    """A page of the parts of a transcript: `further` is the number that the next page begins with, None at the end.

    `cut`: there are more facts on it than FACTS, which are left out.
    """

    parts: list[PartContents]
    further: int | None
    cut: bool


def state_of(transcript: int) -> str:
    """Hash how far the stages of a transcript are; it changes with each of them. One query."""
    counts = (
        Stage.objects.filter(part__transcript=transcript)
        .order_by()
        .aggregate(
            all=Count("pk"),
            done=Count("pk", filter=Q(state=StageState.DONE)),
            running=Count("pk", filter=Q(state=StageState.RUNNING)),
            tried=Sum("attempts"),
            claimed=Max("claimed_at"),
            until=Max("not_before"),
        )
    )
    return hash_of(sorted(counts.items()))


def contents_of(transcript: Transcript, after: int = 0, most: int = PARTS) -> Contents:
    """Return the parts of a transcript after that number. Four queries, however many there are.

    Of each raw answer the beginning is read, as `answer_start`.
    """
    rows = transcript.parts.filter(number__gt=after).select_related("call").defer("prepared", "answer")
    parts = list(rows.annotate(answer_start=Substr("answer", 1, ANSWER)).order_by("number")[: most + 1])
    shown = {part.pk: PartContents(part) for part in parts[:most]}
    for stage in Stage.objects.filter(part__in=shown).order_by("part", "position"):
        shown[stage.part_id].stages.append(stage)
    segments = segments_of(Segment.objects.filter(part__in=shown))
    for one in segments.segments:
        shown[one.segment.part_id].segments.append(one)
    further = parts[most].number if len(parts) > most else None
    return Contents(list(shown.values()), further, segments.cut)


@dataclass(frozen=True, slots=True)
class Segments:
    segments: list[SegmentFacts]
    cut: bool


def segments_of(rows: QuerySet[Segment], most: int = FACTS) -> Segments:
    """Return segments with their facts and their memories' texts, at most so many facts. Two queries."""
    segments = {segment.pk: SegmentFacts(segment) for segment in rows.order_by("transcript", "number")}
    facts = list(_facts(segments)[: most + 1])
    for fact in facts[:most]:
        segments[fact.segment_id].facts.append(fact)
    return Segments(list(segments.values()), len(facts) > most)


def _facts(segments: Collection[int]) -> QuerySet[Fact]:
    rows = Fact.objects.filter(segment__in=segments).select_related("memory")
    held = ("memory__id", "memory__verdict", "memory__active", "memory__inactive_reason", "memory__provisional")
    own = [one.attname for one in Fact._meta.concrete_fields]
    return rows.only(*own, *held, "memory__confirmed_at", "memory__source", "memory__exposure").order_by(
        "segment", "number"
    )


def facts_of_memory(memory: int, most: int) -> list[Fact]:
    """Return the latest facts that a memory was made of or confirmed by, with their segments. One query."""
    rows = Fact.objects.filter(memory=memory).select_related("segment__part", "segment__transcript")
    shown = ("segment__number", "segment__narrative", "segment__part__number", "segment__transcript__last_at")
    own = ("id", "number", "text", "source", "turn", "excerpt", "outcome", "priority", "stored_at")
    return list(rows.only(*own, *shown).order_by("-id")[:most])
