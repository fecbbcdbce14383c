"""What each stage of a part does: it computes, and returns what is to be written when the stage is marked done."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import Max, Value
from django.db.models.functions import Replace

from memories.capture.gate import Judgement, Word, judge
from memories.capture.reasons import Reason
from memories.capture.statement import Provenance, Statement
from memories.capture.support import Support
from memories.lifecycle import forgotten, gate_decisions
from memories.lifecycle.gate_decisions import current_thresholds
from memories.lifecycle.lock import writing
from memories.llm import Answer, Unavailable, ask
from memories.llm import Reason as NoAnswer
from memories.matching import Kind
from memories.models import (
    ClassifiedBy,
    Fact,
    FactOutcome,
    GateDecision,
    PartState,
    Segment,
    Source,
    StageName,
    Transcript,
    TranscriptPart,
)
from memories.observe import categories
from memories.observe.answer import FoundFact, FoundSegment, parse
from memories.observe.instructions import INSTRUCTIONS, message
from memories.observe.prepare import prepare
from memories.observe.turns import PartTurns, Turn, TurnKind, without_private
from memories.store import Prepared, remember
from memories.store import prepare as compare
from memories.taxonomy import KNOWLEDGE, TAXONOMY_VERSION

Read = Callable[[TranscriptPart], PartTurns]
Repeats = Callable[[str, Sequence[tuple[str, str]]], str]

LONGEST_NARRATIVE = 2_000
LONGEST_ANSWER = 200_000
"""Characters that are kept."""
CHANNEL = "observer"
UNCLASSIFIED = "operations"
"""The category of a fact that no keyword and no model could place."""
UNREAD = "what its session had read cannot be read any more, so nothing can be compared with it"


class Wait(Exception):
    """The stage has to wait: until `until` (UTC; None: a while). `counts`: it is an attempt that failed."""

    def __init__(self, why: str, until: datetime | None = None, *, counts: bool) -> None:
        super().__init__(why)
        self.why, self.until, self.counts = why, until, counts


class Unreadable(Wait):
    """The observer's answer cannot be read: it is asked again later. `answer` are the part's columns, what it said."""

    def __init__(self, unread: Sequence[str], **answer: Any) -> None:
        super().__init__(f"the observer's answer cannot be read: {'; '.join(unread)}", counts=True)
        self.answer = {"unread": list(unread), **answer}


class Gone(Exception):
    """The stage can never be done: the transcript is not there any more."""


@dataclass(frozen=True, slots=True)
class Made:
    """The result of a stage: `write` stores it, `counts` says what came in and out.

    `nothing_left` says why the part is done already; empty: the next stage follows.
    """

    write: Callable[[datetime], object]
    counts: Mapping[str, Any] = field(default_factory=dict)
    nothing_left: str = ""


def _nothing(at: datetime) -> None:
    """What a stage writes that has written all of it already."""


class Work:
    """A part on its way through the stages, with what they share. The transcript is read at most once."""

    def __init__(self, part: TranscriptPart, read: Read, repeats: Repeats) -> None:
        self.part, self._read, self._repeats = part, read, repeats
        self.compared: dict[int, Prepared] = {}

    @property
    def transcript(self) -> Transcript:
        return self.part.transcript

    @cached_property
    def turns(self) -> PartTurns:
        return self._read(self.part)

    @cached_property
    def facts(self) -> list[Fact]:
        return list(Fact.objects.filter(segment__part=self.part).order_by("segment__number", "number"))

    @cached_property
    def read_texts(self) -> list[tuple[str, str]]:
        """The texts of tools in the session, each with its source."""
        results = [(turn.source or turn.name, turn.text) for turn in self.turns.turns if turn.kind == TurnKind.RESULT]
        return [*self.turns.earlier_results, *results]

    def repeats(self, fact: Fact) -> str:
        """Say what of that which the session had read a fact repeats; empty when it is the session's own.

        What a person said or the house shows may stand in outside text, too, but not as a marker.
        """
        if self.turns.missing:
            return UNREAD
        support = Support.from_json(fact.support)
        is_known = support is not None and support.is_known
        return self._repeats(fact.text, [("" if is_known else source, text) for source, text in self.read_texts])

    def support(self, text: str) -> Support:
        """Return who supports a text. A passage that is private in the part is taken out of the quotes."""
        support = self.turns.evidence.support(text)
        if not support.quotes:
            return support
        quoted = [Turn(quote.turn, TurnKind.RESULT, quote.text) for quote in support.quotes]
        typed = [turn for turn in self.turns.turns if turn.kind == TurnKind.USER]
        texts = without_private([*typed, *quoted]).texts[len(typed) :]
        quotes = (replace(quote, text=text) for quote, text in zip(support.quotes, texts, strict=True))
        return replace(support, quotes=tuple(quotes))

    def repeats_told(self, text: str) -> bool:
        return bool(self._repeats(text, [("us", line) for line in self.turns.told]))

    def statement(self, fact: Fact) -> Statement:
        return Statement(category=fact.category, text=fact.text, taxonomy=KNOWLEDGE.slug, confidence=fact.confidence)

    def provenance(self, fact: Fact) -> Provenance:
        transcript, session = self.transcript, self.transcript.session
        actor = f"agent:{transcript.agent}" if transcript.agent else ""
        support = Support.from_json(fact.support)
        provenance = Provenance(
            Source.RUN,
            actor or f"session:{transcript.cli_session_id or transcript.pk}",
            session_id=transcript.session_id,
            tier=session.tier if session else 0,
            project_id=transcript.project_id,
            channel=CHANNEL,
            at=self.said_at(fact),
            exposure=self.turns.exposure if not self.turns.missing else transcript.exposure,
            exposed_to=tuple(self.turns.sources if not self.turns.missing else transcript.exposed_to),
            told=self.turns.told_ids,
            origin=transcript.key,
            arrived_at=self.part.created_at,
        )
        return provenance if support is None else provenance.supported(support)

    def said_at(self, fact: Fact) -> datetime:
        turn = next((turn for turn in self.turns.turns if turn.number == fact.turn), None)
        return (turn and turn.at) or self.transcript.last_at or self.part.created_at


def prepare_part(work: Work) -> Made:
    """Remove from the part what the model must not see or does not need."""
    if work.turns.missing:
        raise Gone(work.turns.missing)
    content = prepare(work.turns)
    part, turns = work.part, work.turns

    def write(at: datetime) -> None:
        TranscriptPart.objects.filter(pk=part.pk).update(
            prepared=content.text,
            prepared_sha256=hashlib.sha256(content.text.encode()).hexdigest(),
            removed=dict(content.removed),
        )
        Transcript.objects.filter(pk=part.transcript_id).update(exposure=turns.exposure, exposed_to=list(turns.sources))

    counts = {"turns": len(turns.turns), "characters": len(content.text), "removed": sum(content.removed.values())}
    return Made(write, counts, "" if content.text else "the part holds nothing to observe")


def call_observer(work: Work) -> Made:
    """Ask the observer, and keep its raw answer."""
    part, transcript = work.part, work.transcript
    text = message(
        part.prepared, project=transcript.project.name if transcript.project else "", agent=transcript.agent or ""
    )
    reply: Answer[str] | Unavailable = ask("observer", INSTRUCTIONS, text)
    if isinstance(reply, Unavailable):
        if reply.reason == NoAnswer.UNREADABLE:
            raise Unreadable([reply.why], answer=reply.raw[:LONGEST_ANSWER])
        raise _waiting(reply)
    answer = reply.raw[:LONGEST_ANSWER]
    columns = {"answer": answer, "prompt_hash": reply.prompt_hash, "call": reply.call_id, "model": reply.model}
    parsed = parse(answer)
    if not parsed.is_readable:
        raise Unreadable(parsed.unread, **columns)

    def write(at: datetime) -> None:
        TranscriptPart.objects.filter(pk=part.pk).update(state=PartState.WAITING, **columns)

    return Made(write, {"tokens in": reply.tokens_in, "tokens out": reply.tokens_out, "usd": reply.cost_usd})


def parse_answer(work: Work) -> Made:
    """Read segments and facts out of the answer, with the turns that they come from."""
    parsed = parse(work.part.answer)
    turns = {turn.number: turn for turn in work.turns.turns}

    def write(at: datetime) -> None:
        first = Segment.objects.filter(transcript=work.part.transcript_id).aggregate(Max("number"))["number__max"] or 0
        for number, segment in enumerate(parsed.segments, first + 1):
            row = _segment(work.part, number, segment, turns, at)
            source = f"{work.transcript.source_name}-segment-{number}"
            Fact.objects.bulk_create(
                _fact(row, n, fact, source, work.support(fact.text)) for n, fact in enumerate(segment.facts, 1)
            )
        TranscriptPart.objects.filter(pk=work.part.pk).update(unread=list(parsed.unread))
        work.__dict__.pop("facts", None)

    facts = sum(len(segment.facts) for segment in parsed.segments)
    counts = {"segments": len(parsed.segments), "facts": facts, "unread": len(parsed.unread)}
    return Made(write, counts, "" if parsed.segments else "the observer found nothing to remember")


def classify(work: Work) -> Made:
    """Give each fact a category: by keywords, by the observer's word, and by a model where both leave it open."""
    chosen = {fact.pk: categories.decide(fact.text, fact.said_category) for fact in work.facts}
    unsure = [fact for fact in work.facts if chosen[fact.pk] is None]
    if unsure:
        answer = categories.ask_classifier([fact.text for fact in unsure])
        if not isinstance(answer, Unavailable):
            chosen |= {fact.pk: category for fact, category in zip(unsure, answer, strict=True)}
        elif answer.reason != NoAnswer.OFF:
            raise _waiting(answer)

    def write(at: datetime) -> None:
        for fact in work.facts:
            category = chosen[fact.pk]
            if category is None or not category.slug:
                category = categories.Category(UNCLASSIFIED, 0.0, category.by if category else ClassifiedBy.KEYWORDS)
            fact.category, fact.category_confidence = category.slug, category.confidence
            fact.classified_by, fact.taxonomy_version = category.by, TAXONOMY_VERSION
        Fact.objects.bulk_update(
            work.facts, ["category", "category_confidence", "classified_by", "taxonomy_version"], batch_size=500
        )

    return Made(write, {"facts": len(work.facts), "asked": len(unsure)})


def gate(work: Work) -> Made:
    """Judge each fact: the model's word first, then the rules. Each decision is a row."""
    thresholds = current_thresholds()
    # What our own sessions say may be told in all projects without a person's word.
    in_no_project = work.transcript.project_id is None and work.transcript.session_id is None
    judged: list[tuple[Fact, Judgement]] = []
    for fact in work.facts:
        word = Word(fact.said_gate, fact.said_confidence, work.part.model)
        statement = work.statement(fact)
        judgement = judge(
            statement.text,
            statement.observation,
            taxonomy=KNOWLEDGE.slug,
            word=word,
            thresholds=thresholds,
            taint=work.repeats(fact),
            is_vouched_for=work.provenance(fact).is_vouched_for,
        )
        if judgement.verdict != "discard" and work.repeats_told(fact.text):
            judgement = replace(
                judgement, verdict="discard", reason=Reason.ECHO.words, codes=(Reason.ECHO, *judgement.codes)
            )
        if judgement.verdict == "allow" and in_no_project:
            judgement = replace(
                judgement, verdict="hold", reason=Reason.NO_PROJECT.words, codes=(Reason.NO_PROJECT, *judgement.codes)
            )
        judged.append((fact, judgement))

    def write(at: datetime) -> None:
        for fact, judgement in judged:
            fact.verdict, fact.confidence = judgement.verdict, judgement.confidence
            fact.reasons, fact.reason = list(judgement.codes), judgement.reason[:500]
            gate_decisions.note(
                judgement,
                channel=CHANNEL,
                statement=work.statement(fact),
                provenance=work.provenance(fact),
                fact=fact,
                at=at,
            )
        Fact.objects.bulk_update(work.facts, ["verdict", "confidence", "reasons", "reason"], batch_size=500)

    counts: dict[str, int] = {}
    for _, judgement in judged:
        counts[judgement.verdict] = counts.get(judgement.verdict, 0) + 1
    return Made(write, counts)


def match(work: Work) -> Made:
    """Note for each allowed fact which known memory it repeats or contradicts."""
    counts: dict[str, int] = {}
    for fact in work.facts:
        if fact.verdict != "allow":
            continue
        work.compared[fact.pk] = compare(work.statement(fact), work.provenance(fact))
        fact.match = _nearest(work.compared[fact.pk])
        relation = fact.match.get("relation", "nothing near")
        counts[relation] = counts.get(relation, 0) + 1

    def write(at: datetime) -> None:
        Fact.objects.bulk_update(work.facts, ["match"], batch_size=500)

    return Made(write, counts)


OUTCOMES = {
    "created": FactOutcome.CREATED,
    "reinforced": FactOutcome.MERGED,
    "held": FactOutcome.HELD,
    "discarded": FactOutcome.DISCARDED,
    "duplicate": FactOutcome.DUPLICATE,
}


def store(work: Work) -> Made:
    """Store fact by fact, each with its outcome in one transaction."""
    for fact in work.facts:
        if not fact.outcome:
            _store(work, fact)
    counts: dict[str, int] = {}
    for fact in work.facts:
        counts[fact.outcome] = counts.get(fact.outcome, 0) + 1
    return Made(_nothing, counts)


def _store(work: Work, fact: Fact) -> None:
    statement, provenance = work.statement(fact), work.provenance(fact)
    judgement = Judgement(fact.verdict, fact.reason, tuple(fact.reasons), fact.confidence)
    prepared = work.compared.get(fact.pk)
    if prepared is None and fact.verdict == "allow":
        prepared = compare(statement, provenance)
    with writing():
        # The row decides: what another process stored meanwhile is not stored again.
        if not Fact.objects.select_for_update().filter(pk=fact.pk, outcome="").exists():
            fact.refresh_from_db()
            return
        result = remember(statement, provenance, prepared=prepared, judgement=judgement)
        fact.outcome, fact.memory_id = OUTCOMES[result.outcome], result.memory_id
        GateDecision.objects.filter(fact=fact).update(memory=result.memory_id)
        fact.stored_at = provenance.at
        fact.reason = fact.reason or result.reason[:500]
        if result.is_forgotten:
            answer = Replace("answer", Value(fact.text), Value(forgotten.MARK))
            TranscriptPart.objects.filter(pk=fact.segment.part_id).update(answer=answer)
            fact.text, fact.excerpt, fact.support = forgotten.MARK, "", {}
            GateDecision.objects.filter(fact=fact).update(text="", words="")
        fact.save(update_fields=["outcome", "memory", "stored_at", "reason", "text", "excerpt", "support"])


STAGES: Mapping[StageName, Callable[[Work], Made]] = {
    StageName.PREPARE: prepare_part,
    StageName.CALL: call_observer,
    StageName.PARSE: parse_answer,
    StageName.CLASSIFY: classify,
    StageName.GATE: gate,
    StageName.MATCH: match,
    StageName.STORE: store,
}


def _nearest(compared: Prepared) -> dict[str, Any]:
    """Describe the known memory that a fact repeats or contradicts, else the nearest one; empty without any."""
    order = (Kind.REINFORCES, Kind.CONTRADICTS, Kind.DISTINCT)
    ranking = sorted(
        ((order.index(one.kind), -one.score, pk, one) for pk, (_, one) in compared.found.items() if one.score > 0),
        key=lambda each: each[:3],
    )
    if not ranking:
        return {}
    _, _, pk, one = ranking[0]
    return {"memory": pk, "relation": str(one.kind), "score": round(one.score, 3), "why": one.why}


def _waiting(reply: Unavailable) -> Wait:
    """Only an attempt that was made counts: without a model, or over its budget, a part waits as long as it takes."""
    is_attempt = reply.reason in (NoAnswer.UNREADABLE, NoAnswer.FAILED, NoAnswer.LATE)
    return Wait(reply.why, reply.until, counts=is_attempt)


def _segment(
    part: TranscriptPart, number: int, segment: FoundSegment, turns: Mapping[int, Turn], at: datetime
) -> Segment:
    """Store a segment; turns that the part does not have are not believed."""
    numbers = sorted(n for n in (segment.first_turn, segment.last_turn) if n is not None and n in turns)
    return Segment.objects.create(
        transcript_id=part.transcript_id,
        part=part,
        number=number,
        narrative=segment.narrative[:LONGEST_NARRATIVE],
        first_turn=numbers[0] if numbers else None,
        last_turn=numbers[-1] if numbers else None,
        start=turns[numbers[0]].start if numbers else part.start,
        end=turns[numbers[-1]].end if numbers else part.end,
        created_at=at,
    )


def _fact(segment: Segment, number: int, fact: FoundFact, source: str, support: Support) -> Fact:
    quote = support.quotes[0] if support.quotes else None
    return Fact(
        segment=segment,
        number=number,
        text=fact.text,
        source=source,
        kind=fact.kind,
        priority=fact.priority,
        said_gate=fact.gate,
        said_confidence=fact.confidence,
        said_category=fact.category,
        turn=quote.turn if quote else None,
        excerpt=quote.text if quote else "",
        support=support.as_json(),
    )
