"""Read the steps of a memory from its rows: from its session to the store, and what time made of it."""

from __future__ import annotations

from datetime import datetime

from claudeops.features.trace.document import Trace
from claudeops.features.trace.find import day, quoted
from claudeops.features.trace.steps import NOT_KEPT, End, Link, Name, Seen
from memories.capture.reasons import in_words
from memories.history.sentences import moved, plain, sentence
from memories.injection.budget import shown
from memories.lifecycle.rules import aged
from memories.models import Change, Fact, GateDecision, Inactive, Memory, MemoryChange, Source, Verdict
from memories.models.trust import kept_back
from memories.taxonomy import TAXONOMIES
from sessions_app.models import LogEntry, LogKind

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
STORED = {
    End.MERGED: "merged into another",
    End.SUPERSEDED: "replaced by another",
    End.CONTRADICTED: "contradicted",
    End.DEACTIVATED: "deactivated by a person",
    End.LOWERED: "set below the threshold by a person",
    End.STALE: "closed, because it was stale",
}


def read_memory(found: Trace, memory: Memory, until: datetime, *, with_transcripts: bool) -> None:
    """Read the steps of a memory, which is in its state at `until` (aware UTC), and where it ended by itself.

    What time took up to then is applied to it, as the sweep before a prompt does. Six queries at most.
    """
    for name, value in aged(memory, until).items():
        setattr(memory, name, value)
    stored = _Stored(memory, until)
    end, at, reason = stored.end
    found.ended(end, day=day(at), reason=reason)
    found.seen = {
        Name.TRANSCRIPT: stored.transcript(with_transcripts),
        Name.GATE: stored.gate(),
        Name.MATCHING: stored.matching(),
        Name.STORE: stored.store(end),
        Name.DECAY: stored.decay(end),
    }


class _Stored:
    """A memory, its changes up to a time (the latest first), the decision of the gate, and the fact that it is of."""

    def __init__(self, memory: Memory, until: datetime) -> None:
        self.memory = memory
        rows = MemoryChange.objects.filter(memory=memory.pk).order_by("-at", "-pk")
        self.changes = list(rows.filter(at__lte=until)[:CHANGES])
        self.made = next((change for change in reversed(self.changes) if change.kind == Change.CREATED), None)
        self.decision = GateDecision.objects.filter(memory=memory.pk).order_by("at").first()
        self.fact = Fact.objects.filter(memory=memory.pk).select_related("segment__transcript").first()
        # The change that made it inactive last.
        self.off = next((one for one in self.changes if (one.after or {}).get("active") is False), None)

    @property
    def end(self) -> tuple[End, datetime | None, str]:
        """Where the memory ended by its own state, when, and why; KNOWN while it can be told."""
        memory, when = self.memory, self.off.at if self.off else None
        if memory.verdict == Verdict.HOLD:
            if memory.inactive_reason == Inactive.OPERATOR:
                return End.REJECTED, when, ""
            return End.HELD, memory.created_at, memory.verdict_reason
        if not memory.active:
            end = ENDS[Inactive(memory.inactive_reason)] if memory.inactive_reason else End.DEACTIVATED
            reason = ""
            if end is End.DECAYED:
                reason = f"not confirmed since {day(memory.updated_at)}, at {shown(memory.confidence)}"
            elif end is End.DEACTIVATED and self.off:
                reason = self.off.reason.rstrip(".")
            return end, (memory.stale_at if end is End.STALE else None) or when, reason
        if unconfirmed := kept_back(memory):
            return End.UNCONFIRMED, memory.created_at, unconfirmed
        if memory.stale_at is not None and memory.taxonomy == "knowledge":
            return End.STALE, memory.stale_at, ""
        least = TAXONOMIES[memory.taxonomy].injected_from or 0.0
        if memory.confidence < least:
            return End.BELOW, None, f"{shown(memory.confidence)} of {shown(least)}"
        return End.KNOWN, None, ""

    def transcript(self, with_transcripts: bool) -> Seen:
        memory, pk = self.memory, self.memory.session_id
        if pk is None:
            what, text, link = "Its session is not kept any more", memory.observation, None
            if memory.source == Source.HUMAN:
                what = "A person typed it"
            elif self.fact and with_transcripts:
                row = self.fact.segment.transcript
                what, text = "An observed session said it", self.fact.excerpt or self.fact.text
                link = Link(row.source_name, "transcript", (row.pk,))
            elif memory.source == Source.IMPORT:
                what = "An import brought it"
            return Seen(what, f"“{quoted(text)}”", at=memory.created_at, link=link)
        start = memory.observation[:80]
        entry = LogEntry.objects.filter(session=pk, kind=LogKind.TEXT, text__contains=start).order_by("seq").first()
        if entry is None:
            note = "the line is not in its log: it was pruned, or the text came in its structured answer or was edited"
            return Seen(f"Session {pk} wrote it", note, at=memory.created_at, link=Link.to("session", pk))
        line = next((one for one in entry.text.splitlines() if start in one), memory.observation)
        return Seen(f"Session {pk} wrote it", quoted(line.strip()), at=entry.at, link=Link.to_line(pk, entry.seq))

    def gate(self) -> Seen:
        memory, decision = self.memory, self.decision
        reasons = in_words(decision.reasons) if decision else ""
        if memory.verdict == Verdict.HOLD:
            text = "A person rejected it" if memory.inactive_reason == Inactive.OPERATOR else "Held it for review"
            return Seen(text, memory.verdict_reason or reasons, link=Link("the inbox", "inbox"))
        if memory.source == Source.HUMAN:
            return Seen("Not asked: a person typed it")
        if decision is None:
            return Seen("Allowed it", f"its session had read {memory.read_before}")
        if decision.verdict != Verdict.ALLOW:
            by = f" by {decision.labelled_by}" if decision.labelled_by else ""
            was = "Held it first" if decision.verdict == Verdict.HOLD else "Discarded it first"
            return Seen(f"{was}; it was released since{by}", decision.words or reasons, at=decision.at)
        sure = "" if decision.said_confidence is None else f", {decision.said_confidence:.2f}"
        return Seen(f"Allowed it{sure}", reasons)

    def matching(self) -> Seen:
        match = self.fact.match if self.fact and isinstance(self.fact.match, dict) else {}
        other, score = match.get("memory"), match.get("score")
        if isinstance(other, int) and isinstance(score, int | float):
            text = f"Compared with memory {other}: {match.get('relation', 'distinct')}"
            return Seen(text, f"likeness {score:.2f}", link=Link.to("memory", other))
        creation = self.made or MemoryChange.objects.filter(memory=self.memory.pk, kind=Change.CREATED).first()
        if creation is None:
            return NOT_KEPT
        why = creation.evidence.get("by words alone") if isinstance(creation.evidence, dict) else None
        note = "" if why is None else f"by words alone: {why}"
        return Seen("Found nothing that says the same", note, beside="new", at=creation.at)

    def store(self, end: End) -> Seen:
        memory, off, text = self.memory, self.off, f"Kept it as memory {self.memory.pk}"
        link = Link.to("memory", memory.pk)
        ended = STORED.get(end, "") if end is not End.STALE or not memory.active else ""
        if ended:
            note = plain(sentence(off)) if off else ""
            return Seen(f"{text}; since then {ended}", note, at=off.at if off else None, link=link)
        if end is End.UNCONFIRMED:
            return Seen(f"{text}, unconfirmed", kept_back(memory), at=memory.created_at, link=link)
        then = (self.made.after or {}).get("confidence") if self.made else None
        sure = f"confidence {then:.2f}, " if isinstance(then, int | float) else ""
        where = memory.project.slug if memory.project else "all projects"
        note = f"{sure}{memory.service or 'general'}, {where}"
        return Seen(f"{text}, active", note, at=memory.created_at, link=link)

    def decay(self, end: End) -> Seen:
        memory, now = self.memory, shown(self.memory.confidence)
        steps = [one for one in reversed(self.changes) if one.kind == Change.DECAYED and not one.step]
        levels = [(one.after or {}).get("confidence") for one in steps]
        course = ", ".join(f"{level:.2f}" for level in levels if isinstance(level, int | float))
        note = f"not confirmed since {day(memory.updated_at)}" + (f": {course}" if course else "")
        beside = f"{len(steps)} time{'' if len(steps) == 1 else 's'}" if steps else ""
        if end is End.DECAYED:
            return Seen(f"Lowered it to {now}, below its threshold", note, beside)
        if end is End.EXPIRED:
            return Seen("It expired", f"its end was {day(memory.expires_at)}")
        if end is End.STALE:
            return Seen("It went stale: never recalled", f"since {day(memory.stale_at)}")
        if end is End.BELOW:
            return Seen(f"Its confidence is {now}, below that of a prompt", note, beside)
        if steps:
            least = TAXONOMIES[memory.taxonomy].inactive_below
            return Seen(f"Lowered it to {now}" + (f", above {shown(least)}" if least else ""), note, beside)
        confirmed = (one for one in self.changes if one.kind in (Change.REINFORCED, Change.BACKED) and moved(one).text)
        raised = next(confirmed, None)
        return Seen(f"Took nothing: its confidence is {now}", f"confirmed on {day(raised.at)}" if raised else "")
