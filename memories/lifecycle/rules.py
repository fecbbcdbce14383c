"""Compute confidence, decay and expiry by `taxonomy.py`. Pure; confidence 0..1 at six decimals, times aware UTC.

An expiry that a person set is the person's: it stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.db.models import QuerySet

from memories.capture.fields import checked_confidence
from memories.capture.statement import Provenance, Statement
from memories.capture.support import Voice
from memories.capture.topics import topics
from memories.lifecycle.write import json_value
from memories.models import (
    By,
    Change,
    Exposure,
    Inactive,
    Memory,
    MemoryChange,
    Project,
    Trust,
    Verdict,
    lowest,
    trust_of,
)
from memories.models.trust import FROM_OUTSIDE, JOINT, SAID_OUTSIDE, WHATEVER
from memories.taxonomy import PROJECT, TAXONOMIES, Decay, Taxonomy


class Ageing(Protocol):
    """The columns of a memory that decay and expiry read; `taxonomy` is a slug."""

    taxonomy: Any
    category: Any
    confidence: Any
    active: Any
    verdict: Any
    persistent: Any
    updated_at: Any
    decayed_until: Any
    expires_at: Any


def clamp(confidence: float) -> float:
    """Clamp to 0..1, at six decimals. Raises InvalidMemory for NaN and infinity."""
    return checked_confidence(confidence)


ECHO_LIMIT = 0.9
"""The confidence above which a session does not raise a memory that it was told."""


def reinforced(confidence: float, taxonomy: Taxonomy, *, echo: bool = False) -> float:
    raised = clamp(confidence + taxonomy.reinforced_by)
    return max(confidence, min(raised, ECHO_LIMIT)) if echo else raised


def contradicted(confidence: float, taxonomy: Taxonomy) -> float:
    return clamp(confidence - taxonomy.contradicted_by)


def credited(confidence: float, taxonomy: Taxonomy, *, helped: bool) -> float:
    """Return the confidence after a session that used the memory: it completed (`helped`), or failed."""
    if not taxonomy.credited_by:
        return confidence
    return clamp(confidence + taxonomy.credited_by if helped else confidence - taxonomy.credited_by)


def is_active(confidence: float, taxonomy: Taxonomy) -> bool:
    return taxonomy.inactive_below is None or confidence >= taxonomy.inactive_below


def decay_start(updated_at: datetime, decayed_until: datetime | None, decay: Decay) -> datetime:
    """Return when the next decay begins: at the end of the grace, or where decay was applied last."""
    start = updated_at + decay.grace
    return start if decayed_until is None else max(start, decayed_until)


def decayed(
    confidence: float, updated_at: datetime, decayed_until: datetime | None, at: datetime, decay: Decay
) -> tuple[float, datetime | None]:
    """Return (confidence at `at`, new `decayed_until`); by whole periods, so the number of runs is irrelevant."""
    start = decay_start(updated_at, decayed_until, decay)
    periods = (at - start) // decay.every
    if periods < 1:
        return confidence, decayed_until
    return clamp(confidence - periods * decay.step), start + periods * decay.every


def kept_decay(updated_at: datetime, decayed_until: datetime | None, decay: Decay | None) -> datetime | None:
    """Return `decayed_until` after a confirmation at `updated_at`; None where the new grace ends later.

    It is kept when an old log confirms a memory that has decayed since, or the same weeks would count twice.
    """
    if decay is None or decayed_until is None or decayed_until <= updated_at + decay.grace:
        return None
    return decayed_until


def decay_of(memory: Ageing) -> Decay | None:
    """Return how a memory decays; None if it does not: persistent, held for review, or by its taxonomy."""
    return None if memory.persistent or memory.verdict == Verdict.HOLD else TAXONOMIES[memory.taxonomy].decay


def aged(memory: Ageing, at: datetime) -> dict[str, Any]:
    """Return the columns that decay and expiry change until `at`, {} for none. What expires does not decay."""
    if not memory.active:
        return {}
    if memory.expires_at is not None and memory.expires_at <= at:
        return {"active": False, "inactive_reason": Inactive.EXPIRED.value}
    decay = decay_of(memory)
    if decay is None:
        return {}
    confidence, until = decayed(memory.confidence, memory.updated_at, memory.decayed_until, at, decay)
    if until == memory.decayed_until:
        return {}
    new: dict[str, Any] = {"confidence": confidence, "decayed_until": until}
    if not is_active(confidence, TAXONOMIES[memory.taxonomy]):
        new |= {"active": False, "inactive_reason": Inactive.DECAYED.value}
    return new


def provisional_reason(text: str, provenance: Provenance | None, taxonomy: str = "") -> str:
    """Return why a text of this provenance needs a confirmation in a taxonomy (a slug); "" when it needs none.

    What a person said or outputs of the house show needs none, what outside text said always does. What nobody said or
    showed does when it speaks of a topic, or when its taxonomy lets everything wait that was said after outside text
    was read. Where nothing is known of a session, its topics count only after it had read outside text.
    """
    if provenance is None or provenance.is_vouched_for:
        return ""
    after_outside = provenance.exposure == Exposure.OUTSIDE
    if provenance.support is None and not after_outside:
        return ""
    if provenance.support is not None and provenance.support.by == Voice.OUTSIDE:
        whatever = [SAID_OUTSIDE]
    else:
        whatever = [FROM_OUTSIDE] if after_outside and taxonomy and TAXONOMIES[taxonomy].outside_waits else []
    return joined((*whatever, *topics(text)))


def joined(reasons: Iterable[str]) -> str:
    """Join reasons, which may be joined ones, each once."""
    parts = (part for reason in reasons for part in reason.split(JOINT) if part)
    return JOINT.join(dict.fromkeys(parts))[:200]


def is_independent(
    memory: Memory,
    statement: Statement,
    provenance: Provenance,
    at: datetime,
    *,
    said_by: Collection[str] = (),
    arrived_at: datetime | None = None,
) -> bool:
    """Whether a session that says `memory` again (at `at`, UTC) confirms it; `said_by` are the memory's transcripts.

    It is another session, on another day, was not told the memory, repeats no outside text from the same source, and
    speaks of everything for which the memory is provisional: a loose match confirms nothing. What comes by the API is
    none: a token names any session that it likes. A day is that of the server, on which a log arrived (`arrived_at` is
    when the memory did): a log states what time it likes.
    """
    if provenance.channel == "api":
        return False
    if provenance.session_id is None and (not provenance.origin or provenance.channel == "hook"):
        return False
    if provenance.session_id is not None and provenance.session_id == memory.session_id:
        return False
    if provenance.origin in said_by or memory.pk in provenance.told:
        return False
    if (provenance.arrived_at or at).date() == (arrived_at or memory.created_at).date():
        return False
    if memory.exposure == Exposure.OUTSIDE and provenance.exposure == Exposure.OUTSIDE:
        ours, theirs = set(provenance.exposed_to), set(memory.exposed_to)
        if not ours or not theirs or ours & theirs:
            return False
    about = set(filter(None, memory.provisional.split(JOINT))) - {*WHATEVER}
    return about <= set(topics(statement.text))


def after_edit(
    row: Memory,
    text: str,
    provenance: Provenance | None,
    at: datetime,
    also: Iterable[str] = (),
    lineage: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the columns of confirmation and trust for a memory that gets `text` (its own when only others change).

    A person confirms what they change, and a text that they change is an operator's. A new text of anybody else is not
    confirmed, provisional for what it says and for the reasons `also`, and trusted as the least of the memory, of those
    whose trust is in `lineage` and of who says it.
    """
    same = text == row.observation
    if provenance is not None and provenance.typed:
        new: dict[str, Any] = {} if same else {"trust": Trust.OPERATOR.value}
        return new if row.confirmed_at is not None else new | {"confirmed_at": at}
    if same:
        return {}
    reasons = [row.provisional, *also, provisional_reason(text, provenance, row.taxonomy)]
    by = provenance and trust_of(provenance.source, provenance.exposure, provenance.exposed_to)
    trust = lowest(row.trust, *lineage, by or Trust.IMPORTED).value
    return {"confirmed_at": None, "provisional": joined(reasons), "trust": trust}


OWN_END = "own_end"
"""In the evidence of a change: its end was given, and does not follow from a lifetime."""


class Lifetimes:
    """Lifetimes by type and project; each project is read once, and so are the ends that people set for `rows`."""

    def __init__(self, rows: QuerySet[Memory] | None = None) -> None:
        self._projects: dict[int, Project | None] = {}
        self._own = None if rows is None else _own_ends(rows)

    def is_own(self, memory: Memory) -> bool:
        """Whether a person set the end that `memory` has now, "never" included."""
        own = _own_ends(Memory.objects.filter(pk=memory.pk)) if self._own is None else self._own
        return (memory.pk, json_value(memory.expires_at)) in own

    def end(self, memory: Memory, at: datetime) -> datetime | None:
        """Return when `memory` expires if its life begins at `at` (aware UTC); None: never, or persistent."""
        lasts = None if memory.persistent else self.of(memory)
        return None if lasts is None else at + lasts

    def of(self, memory: Memory) -> timedelta | None:
        """Return the lifetime of the memory's type in its project; None: it has none."""
        if memory.taxonomy == PROJECT.slug and memory.project_id is not None:
            if memory.project_id not in self._projects:
                self._projects[memory.project_id] = Project.objects.filter(pk=memory.project_id).first()
            project = self._projects[memory.project_id]
            if project is not None:
                return project.lifetime(memory.category)
        return TAXONOMIES[memory.taxonomy].expires.get(memory.category)


def _own_ends(rows: QuerySet[Memory]) -> set[tuple[int | None, str | None]]:
    """Return the ends (ISO 8601, UTC) that people set for `rows`, with the memory's id."""
    changes = MemoryChange.objects.filter(
        memory__in=rows.order_by().values("pk"),
        by=By.PEOPLE,
        kind__in=(Change.CREATED, Change.EDITED),
        after__has_key="expires_at",
    )
    return {
        (memory, after["expires_at"])
        for memory, after, evidence in changes.values_list("memory", "after", "evidence")
        # Of an earlier version there is no sign: an end that changed with these followed from them.
        if OWN_END in evidence or not {"active", "persistent"} & after.keys()
    }
