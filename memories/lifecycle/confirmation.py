"""What makes a memory provisional, how far it can be trusted, and who may confirm it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from memories.capture.statement import Provenance, Statement
from memories.capture.topics import topics
from memories.models import Exposure, Memory, Trust, lowest, trust_of
from memories.models.trust import FROM_OUTSIDE, JOINT
from memories.taxonomy import TAXONOMIES


def provisional_reason(text: str, provenance: Provenance | None, taxonomy: str = "") -> str:
    """Return why a text of this provenance needs a confirmation in a taxonomy (a slug); "" when it needs none.

    It speaks of a topic, or its taxonomy lets everything wait that was said after outside text was read.
    """
    if provenance is None or provenance.exposure != Exposure.OUTSIDE:
        return ""
    whatever = (FROM_OUTSIDE,) if taxonomy and TAXONOMIES[taxonomy].outside_waits else ()
    return joined((*whatever, *topics(text)))


def joined(reasons: Iterable[str]) -> str:
    """Join reasons, which may be joined ones, each once."""
    parts = (part for reason in reasons for part in reason.split(JOINT) if part)
    return JOINT.join(dict.fromkeys(parts))[:200]


def is_independent(
    memory: Memory, statement: Statement, provenance: Provenance, at: datetime, *, said_by: Collection[str] = ()
) -> bool:
    """Whether a session that says `memory` again (at `at`, UTC) confirms it; `said_by` are the memory's transcripts.

    It is another session, on another day, was not told the memory, has read no outside text from the same source, and
    speaks of everything for which the memory is provisional: a loose match confirms nothing. What comes by the API is
    none: a token names any session that it likes.
    """
    if provenance.channel == "api":
        return False
    if provenance.session_id is None and (not provenance.origin or provenance.channel == "hook"):
        return False
    if provenance.session_id is not None and provenance.session_id == memory.session_id:
        return False
    if provenance.origin in said_by or memory.pk in provenance.told:
        return False
    if at.date() == memory.created_at.date():
        return False
    if memory.exposure == Exposure.OUTSIDE and provenance.exposure == Exposure.OUTSIDE:
        ours, theirs = set(provenance.exposed_to), set(memory.exposed_to)
        if not ours or not theirs or ours & theirs:
            return False
    about = set(filter(None, memory.provisional.split(JOINT))) - {FROM_OUTSIDE}
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
