"""What makes a memory provisional, and who may confirm it: a person, or an independent session. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from memories.capture.statement import Provenance, Statement
from memories.capture.topics import topics
from memories.models import Exposure, Memory

JOINT = "; "


def provisional_reason(text: str, provenance: Provenance | None) -> str:
    """Return the topics for which a text of this provenance needs a confirmation; "" for none."""
    if provenance is None or provenance.exposure != Exposure.OUTSIDE:
        return ""
    return joined(topics(text))


def joined(reasons: Iterable[str]) -> str:
    """Join reasons, which may be joined ones, each once."""
    parts = (part for reason in reasons for part in reason.split(JOINT) if part)
    return JOINT.join(dict.fromkeys(parts))[:200]


def is_independent(memory: Memory, statement: Statement, provenance: Provenance, at: datetime) -> bool:
    """Whether a session that says `memory` again (at `at`, UTC) confirms it.

    It is another session, on another day, was not told the memory, has read no outside text from the same source, and
    speaks of everything for which the memory is provisional: a loose match confirms nothing.
    """
    if provenance.session_id is None or provenance.session_id == memory.session_id or memory.pk in provenance.told:
        return False
    if at.date() == memory.created_at.date():
        return False
    if memory.exposure == Exposure.OUTSIDE and provenance.exposure == Exposure.OUTSIDE:
        ours, theirs = set(provenance.exposed_to), set(memory.exposed_to)
        if not ours or not theirs or ours & theirs:
            return False
    return set(filter(None, memory.provisional.split(JOINT))) <= set(topics(statement.text))


def after_edit(
    row: Memory, text: str, provenance: Provenance | None, at: datetime, also: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the columns of confirmation for a memory that gets `text` (its own, when only other columns change).

    A person confirms what they change. A new text of anybody else is not confirmed, and provisional for what it says
    and for the reasons `also`.
    """
    if provenance is not None and provenance.typed:
        return {} if row.confirmed_at is not None else {"confirmed_at": at}
    if text == row.observation:
        return {}
    reasons = [row.provisional, *also, provisional_reason(text, provenance)]
    return {"confirmed_at": None, "provisional": joined(reasons)}
