"""Read the steps of a memory from its rows: from its session to the store, and what time made of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memories.capture.reasons import in_words
from memories.history.sentences import moved, plain, sentence
from memories.injection.budget import shown
from memories.lifecycle.rules import aged
from memories.models import Change, Fact, GateDecision, Inactive, Memory, MemoryChange, Source, Verdict
from memories.models.trust import kept_back
from memories.taxonomy import TAXONOMIES
from sessions_app.models import LogEntry, LogKind
from sessions_app.trace.answer import Trace
from sessions_app.trace.find import day, quoted
from sessions_app.trace.steps import End, Link, Name, Seen

CHANGES = 200
"""The latest changes of a memory that are read."""

ENDS = {
    Inactive.DECAYED: End.DECAYED,
    Inactive.CONTRADICTED: End.CONTRADICTED,
    Inactive.OPERATOR: End.DEACTIVATED,
    Inactive.LOWERED: End.LOWERED,
    Inactive.EXPIRED: End.EXPIRED,
    Inactive.SUPERSEDED: End.SUPERSEDED,
    Inactive.MERGED: End.MERGED,
    Inactive.CLOSED: End.STALE,
}


def read_memory(found: Trace, memory: Memory, until: datetime, *, with_transcripts: bool) -> None:
    """Read the steps of a memory, which is in its state at `until` (aware UTC), and where it ended by itself.

    What time took up to then is applied to it, as the sweep before a prompt does. Six queries at most.
    """
    for name, value in aged(memory, until).items():
        setattr(memory, name, value)
    rows = MemoryChange.objects.filter(memory=memory.pk, at__lte=until).order_by("-at", "-pk")
    changes = list(rows[:CHANGES])
    made = next((change for change in reversed(changes) if change.kind == Change.CREATED), None)
    if made is None:
        made = MemoryChange.objects.filter(memory=memory.pk, kind=Change.CREATED).first()
    decision = GateDecision.objects.filter(memory=memory.pk).order_by("at").first()
    fact = Fact.objects.filter(memory=memory.pk).select_related("segment__transcript").first()
    end, at, reason = _end_of(memory, changes)
    found.ended(end, day=day(at), reason=reason)
    found.seen = {
        Name.TRANSCRIPT: _transcript(memory, fact if with_transcripts else None),
        Name.GATE: _gate(memory, decision),
        Name.MATCHING: _matching(made, fact),
        Name.STORE: _store(memory, changes, end),
        Name.DECAY: _decay(memory, changes, end),
    }


def _last_off(changes: Sequence[MemoryChange]) -> MemoryChange | None:
    """Return the change that made a memory inactive last."""
    return next((one for one in changes if (one.after or {}).get("active") is False), None)


def _end_of(memory: Memory, changes: Sequence[MemoryChange]) -> tuple[End, datetime | None, str]:
    """Return where the memory ended by its own state, when, and why; KNOWN while it can be told."""
    last = _last_off(changes)
    when = last.at if last else None
    if memory.verdict == Verdict.HOLD:
        if memory.inactive_reason == Inactive.OPERATOR:
            return End.REJECTED, when, ""
        return End.HELD, memory.created_at, memory.verdict_reason
    if not memory.active:
        end = ENDS.get(Inactive(memory.inactive_reason), End.DEACTIVATED) if memory.inactive_reason else End.DEACTIVATED
        if end is End.DECAYED:
            return end, when, f"not confirmed since {day(memory.updated_at)}, at {shown(memory.confidence)}"
        if end is End.STALE:
            return end, memory.stale_at or when, ""
        if end is End.DEACTIVATED:
            return end, when, (last.reason.rstrip(".") if last else "")
        return end, when, ""
    if unconfirmed := kept_back(memory):
        return End.UNCONFIRMED, memory.created_at, unconfirmed
    if memory.stale_at is not None and memory.taxonomy == "knowledge":
        return End.STALE, memory.stale_at, ""
    least = TAXONOMIES[memory.taxonomy].injected_from or 0.0
    if memory.confidence < least:
        return End.BELOW, None, f"{shown(memory.confidence)} of {shown(least)}"
    return End.KNOWN, None, ""


def _transcript(memory: Memory, fact: Fact | None) -> Seen:
    if memory.source == Source.HUMAN and memory.session_id is None:
        return Seen("A person typed it", f"“{quoted(memory.observation)}”", at=memory.created_at)
    if memory.session_id is None and fact is not None:
        transcript = fact.segment.transcript
        where = Link(transcript.source_name, "transcript", (transcript.pk,))
        return Seen(
            "An observed session said it", f"“{quoted(fact.excerpt or fact.text)}”", at=memory.created_at, link=where
        )
    if memory.session_id is None:
        what = "An import brought it" if memory.source == Source.IMPORT else "Its session is not kept any more"
        return Seen(what, f"“{quoted(memory.observation)}”", at=memory.created_at)
    start, pk = memory.observation[:80], memory.session_id
    entry = LogEntry.objects.filter(session=pk, kind=LogKind.TEXT, text__contains=start).order_by("seq").first()
    if entry is None:
        note = "the line is not in its log: it was pruned, or the text came in its structured answer or was edited"
        return Seen(f"Session {pk} wrote it", note, at=memory.created_at, link=Link(f"session {pk}", "session", (pk,)))
    line = next((one for one in entry.text.splitlines() if start in one), memory.observation)
    link = Link(f"line {entry.seq}", "session-log", (pk,), f"at={entry.seq}")
    return Seen(f"Session {pk} wrote it", quoted(line.strip()), at=entry.at, link=link)


def _gate(memory: Memory, decision: GateDecision | None) -> Seen:
    if memory.verdict == Verdict.HOLD:
        why = memory.verdict_reason or (in_words(decision.reasons) if decision else "")
        said = "A person rejected it" if memory.inactive_reason == Inactive.OPERATOR else "Held it for review"
        return Seen(said, why, link=Link("the desk", "desk"))
    if memory.source == Source.HUMAN:
        return Seen("Not asked: a person typed it")
    if decision is not None and decision.verdict != Verdict.ALLOW:
        by = f" by {decision.labelled_by}" if decision.labelled_by else ""
        was = "Held it first" if decision.verdict == Verdict.HOLD else "Discarded it first"
        return Seen(f"{was}; it was released since{by}", decision.words or in_words(decision.reasons), at=decision.at)
    sure = f", {decision.said_confidence:.2f}" if decision and decision.said_confidence is not None else ""
    note = in_words(decision.reasons) if decision else f"its session had read {memory.read_before}"
    return Seen(f"Allowed it{sure}", note)


def _matching(made: MemoryChange | None, fact: Fact | None) -> Seen:
    match = fact.match if fact and isinstance(fact.match, dict) else {}
    other, score = match.get("memory"), match.get("score")
    if isinstance(other, int) and isinstance(score, int | float):
        return Seen(
            f"Compared with memory {other}: {match.get('relation', 'distinct')}",
            f"likeness {score:.2f}",
            link=Link(f"memory {other}", "memory", (other,)),
        )
    if made is None:
        return Seen("Nothing is kept of it", is_unknown=True)
    evidence = made.evidence if isinstance(made.evidence, dict) else {}
    note = "" if evidence.get("by words alone") is None else f"by words alone: {evidence['by words alone']}"
    return Seen("Found nothing that says the same", note, beside="new", at=made.at)


def _store(memory: Memory, changes: Sequence[MemoryChange], end: End) -> Seen:
    link = Link(f"memory {memory.pk}", "memory", (memory.pk,))
    first = next((one for one in reversed(changes) if one.kind == Change.CREATED), None)
    then = (first.after or {}).get("confidence") if first else None
    where = memory.project.slug if memory.project else "all projects"
    sure = f"confidence {then:.2f}, " if isinstance(then, int | float) else ""
    note = f"{sure}{memory.service or 'general'}, {where}"
    if end is End.UNCONFIRMED:
        return Seen(f"Kept it as memory {memory.pk}, unconfirmed", kept_back(memory), at=memory.created_at, link=link)
    ended = {
        End.MERGED: "merged into another",
        End.SUPERSEDED: "replaced by another",
        End.CONTRADICTED: "contradicted",
        End.DEACTIVATED: "deactivated by a person",
        End.LOWERED: "set below the threshold by a person",
        End.STALE: "" if memory.active else "closed, because it was stale",
    }.get(end)
    if ended:
        last = _last_off(changes)
        said = plain(sentence(last)) if last else ""
        return Seen(f"Kept it as memory {memory.pk}; since then {ended}", said, at=last.at if last else None, link=link)
    return Seen(f"Kept it as memory {memory.pk}, active", note, at=memory.created_at, link=link)


def _decay(memory: Memory, changes: Sequence[MemoryChange], end: End) -> Seen:
    steps = [one for one in reversed(changes) if one.kind == Change.DECAYED and not one.step]
    levels = [(one.after or {}).get("confidence") for one in steps]
    course = ", ".join(f"{level:.2f}" for level in levels if isinstance(level, int | float))
    note = f"not confirmed since {day(memory.updated_at)}" + (f": {course}" if course else "")
    beside = f"{len(steps)} time{'' if len(steps) == 1 else 's'}" if steps else ""
    if end is End.DECAYED:
        return Seen(f"Lowered it to {shown(memory.confidence)}, below its threshold", note, beside)
    if end is End.EXPIRED:
        return Seen("It expired", f"its end was {day(memory.expires_at)}")
    if end is End.STALE:
        return Seen("It went stale: never recalled", f"since {day(memory.stale_at)}")
    if end is End.BELOW:
        return Seen(f"Its confidence is {shown(memory.confidence)}, below that of a prompt", note, beside)
    if steps:
        least = TAXONOMIES[memory.taxonomy].inactive_below
        return Seen(
            f"Lowered it to {shown(memory.confidence)}" + (f", above {shown(least)}" if least else ""), note, beside
        )
    raised = next((one for one in changes if one.kind in (Change.REINFORCED, Change.BACKED) and moved(one).text), None)
    return Seen(
        f"Took nothing: its confidence is {shown(memory.confidence)}",
        f"confirmed on {day(raised.at)}" if raised else "",
    )
