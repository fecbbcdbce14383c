"""Find a text in observed transcripts and in the observer's stored answers, and say why no memory was made of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Q

from claudeops.lib.secrets import mask
from memories.models import Fact, PartState, StageState, Transcript, TranscriptPart
from memories.observe.turns import Turn, TurnKind, without_private
from memories.recall.filters import Filters
from memories.recall.narratives import transcripts_within
from memories.recall.query import LONGEST_QUERY, index_terms, words
from sessions_app.errors import RawLogOutside
from sessions_app.trace.find import MOST_FOUND, SESSIONS, SHARED, share
from sessions_app.transcripts.turns import path_of, read_turns, reader_of

MOST_BYTES = 64 * 2**20
"""Of the files of the latest SESSIONS transcripts that are read for one trace."""
PRIVATE = "it stands in a passage marked as private, which no model is shown"
SPEAKERS = {TurnKind.USER: "A person typed it", TurnKind.AGENT: "The agent said it"}


@dataclass(frozen=True, slots=True)
class Said:
    """Where a text was said: `what` says by whom, `why` what became of it there. `at` is UTC; `text` has no secret."""

    transcript: Transcript
    what: str
    text: str
    why: str
    at: datetime | None


def said_in(text: str, scope: Filters) -> Said | None:
    """Return where a transcript of this host, or an answer of the observer, within `scope` says the text."""
    asked = frozenset(index_terms(text[:LONGEST_QUERY]))
    if not asked:
        return None
    rows = transcripts_within(scope).select_related("session__agent", "project").order_by("-seen_at", "-pk")
    left = MOST_BYTES
    for row in rows.filter(host=settings.CLAUDEOPS_HOST)[:SESSIONS]:
        left -= row.size
        if left < 0:
            break
        if turn := next(_turns_that_say(asked, row), None):
            (shown,) = without_private([turn]).texts
            line = _line(asked, mask(shown))
            why = _why(asked, row, turn) if line else PRIVATE
            return Said(row, SPEAKERS.get(turn.kind, "It was read in it"), line, why, turn.at)
    return _answered(asked, text, scope)


def _turns_that_say(asked: frozenset[str], row: Transcript) -> Iterator[Turn]:
    """Yield the turns of a transcript that say it; none when its file is not there, or is no log of ours."""
    try:
        for _, turns in read_turns(path_of(row), row.kind, reader_of(row.session), final=True):
            yield from (turn for turn in turns if _line(asked, turn.text))
    except (OSError, RawLogOutside):
        return


def _line(asked: frozenset[str], text: str) -> str:
    return next((line.strip() for line in text.splitlines() if share(asked, line) >= SHARED), "")


def _why(asked: frozenset[str], row: Transcript, turn: Turn) -> str:
    part = row.parts.filter(start__lt=turn.end, end__gte=turn.end).first()
    if part is None:
        return row.problem.rstrip(".") or "what was observed of the session does not reach so far yet"
    if part.state != PartState.DONE:
        stage = part.stages.exclude(state=StageState.DONE).order_by("position").first()
        why = f": {stage.problem}" if stage and stage.problem else ""
        return f"part {part.number} of it is {part.get_state_display()}{why}"
    if why := _fact_of(asked, part):
        return why
    if dropped := _line(asked, "\n".join(map(str, part.unread))):
        return f"the observer's answer about it could not be read: {dropped}"
    if _line(asked, part.answer):
        return "the observer's answer says it, but it was kept as no fact"
    return f"the observer found nothing to remember in it (part {part.number})"


def _fact_of(asked: frozenset[str], part: TranscriptPart) -> str:
    """Say what became of the fact of a part that says it; empty when there is none."""
    facts = Fact.objects.filter(segment__part=part).order_by("-pk")
    fact = next((one for one in facts if share(asked, one.text) >= SHARED), None)
    if fact is None:
        return ""
    became = fact.get_outcome_display() or "not stored yet"
    return f"the observer made a fact of it, which was {became}" + (f": {fact.reason}" if fact.reason else "")


def _answered(asked: frozenset[str], text: str, scope: Filters) -> Said | None:
    """Look through the stored answers: their transcripts may be gone, or on another host."""
    longest = sorted({word for word in words(text[:LONGEST_QUERY]) if len(word) > 3}, key=lambda word: -len(word))
    says = Q(pk__in=())
    for word in longest[:2]:
        says |= Q(answer__icontains=word)
    rows = TranscriptPart.objects.filter(says, transcript__in=transcripts_within(scope)).select_related("transcript")
    for part in rows.order_by("-pk")[:MOST_FOUND]:
        if line := _line(asked, part.answer):
            why = _fact_of(asked, part) or f"part {part.number} is {part.get_state_display()}: no fact was kept of it"
            return Said(part.transcript, "The observer answered it", line, why, part.done_at or part.created_at)
    return None
