"""Find a text in observed transcripts and in the observer's stored answers, and say why no memory was made of it."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db.models import Q

from claudeops.features.trace.document import Trace
from claudeops.features.trace.find import MOST_FOUND, SESSIONS, SHARED, day, longest_words, quoted, share, terms_in
from claudeops.features.trace.steps import End, Link, Name, Seen
from claudeops.lib.secrets import mask
from memories.models import Fact, PartState, StageState, Transcript, TranscriptPart
from memories.observe.turns import Turn, TurnKind, without_private
from memories.recall.filters import Filters
from memories.recall.narratives import transcripts_within
from sessions_app.errors import RawLogOutside
from sessions_app.transcripts.turns import path_of, read_turns, reader_of

MOST_BYTES = 64 * 2**20
"""Of the files of the latest SESSIONS transcripts that are read for one trace."""
PRIVATE = "it stands in a passage marked as private, which no model is shown"
SPEAKERS = {TurnKind.USER: "A person typed it", TurnKind.AGENT: "The agent said it"}


def in_transcripts(found: Trace, scope: Filters) -> bool:
    """Look for it in the transcripts of this host within `scope`, then in the stored answers of the observer."""
    terms = terms_in(found.asked)
    if not terms:
        return False
    rows = transcripts_within(scope).select_related("session__agent", "project").order_by("-seen_at", "-pk")
    remaining = MOST_BYTES
    for row in rows.filter(host=settings.CLAUDEOPS_HOST)[:SESSIONS]:
        remaining -= row.size
        if remaining < 0:
            break
        if turn := _turn_that_says(terms, row):
            (shown,) = without_private([turn]).texts
            line = _line(terms, mask(shown))
            why = _why(terms, row, turn) if line else PRIVATE
            _note(found, row, SPEAKERS.get(turn.kind, "It was read in it"), line, why, turn.at)
            return True
    return _in_answers(found, terms, scope)


def _note(trace: Trace, row: Transcript, what: str, line: str, why: str, at: datetime | None) -> None:
    trace.ended(End.NOT_KEPT, session=row.session_id, day=day(at), reason=why.rstrip("."))
    link = Link(row.source_name, "transcript", (row.pk,))
    trace.seen[Name.TRANSCRIPT] = Seen(f"{what} in {row.source_name}", quoted(line) or why, at=at, link=link)


def _turn_that_says(terms: frozenset[str], row: Transcript) -> Turn | None:
    """Return the first turn of a transcript that says it; none when its file is not there, or is no log of ours."""
    try:
        parts = read_turns(path_of(row), row.kind, reader_of(row.session, row.project), final=True)
        return next((turn for _, turns in parts for turn in turns if _line(terms, turn.text)), None)
    except (OSError, RawLogOutside):
        return None


def _line(terms: frozenset[str], text: str) -> str:
    return next((line.strip() for line in text.splitlines() if share(terms, line) >= SHARED), "")


def _why(terms: frozenset[str], row: Transcript, turn: Turn) -> str:
    part = row.parts.filter(start__lt=turn.end, end__gte=turn.end).first()
    if part is None:
        return row.problem.rstrip(".") or "what was observed of the session does not reach so far yet"
    if part.state != PartState.DONE:
        stage = part.stages.exclude(state=StageState.DONE).order_by("position").first()
        why = f": {stage.problem}" if stage and stage.problem else ""
        return f"part {part.number} of it is {part.get_state_display()}{why}"
    if why := _fact_of(terms, part):
        return why
    if dropped := _line(terms, "\n".join(map(str, part.unread))):
        return f"the observer's answer about it could not be read: {dropped}"
    if _line(terms, part.answer):
        return "the observer's answer says it, but it was kept as no fact"
    return f"the observer found nothing to remember in it (part {part.number})"


def _fact_of(terms: frozenset[str], part: TranscriptPart) -> str:
    """Say what became of the fact of a part that says it; empty when there is none."""
    facts = Fact.objects.filter(segment__part=part).order_by("-pk")
    fact = next((one for one in facts if share(terms, one.text) >= SHARED), None)
    if fact is None:
        return ""
    became = fact.get_outcome_display() or "not stored yet"
    return f"the observer made a fact of it, which was {became}" + (f": {fact.reason}" if fact.reason else "")


def _in_answers(trace: Trace, terms: frozenset[str], scope: Filters) -> bool:
    """Look through the stored answers: their transcripts may be gone, or on another host."""
    says = Q(pk__in=())
    for word in longest_words(trace.asked):
        says |= Q(answer__icontains=word)
    rows = TranscriptPart.objects.filter(says, transcript__in=transcripts_within(scope)).select_related("transcript")
    for part in rows.order_by("-pk")[:MOST_FOUND]:
        if line := _line(terms, part.answer):
            why = _fact_of(terms, part) or f"part {part.number} is {part.get_state_display()}: no fact was kept of it"
            _note(trace, part.transcript, "The observer answered it", line, why, part.done_at or part.created_at)
            return True
    return False
