"""Decide what follows from a model's word about a pair of memories. Pure; in doubt a person decides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memories.matching import Kind
from memories.models import Inactive, Memory, Source, Verdict
from memories.models.disagreement import DisagreementKind
from memories.models.memory import Trust, lowest


class Action(StrEnum):
    """What becomes of a question. The first four are its answers."""

    MERGED = "merged"
    KEPT = "kept"
    BOTH = "both"
    SUPERSEDES = "supersedes"
    CONTRADICTION = "contradiction"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class Decision:
    """`why` says, for a person, why the question is left to them; "" otherwise."""

    action: Action
    why: str = ""


def decide(kind: str, relation: Kind, older: Memory, newer: Memory) -> Decision:
    """Return what the relation of two memories means for a question of `kind` about them.

    A memory that is held, unconfirmed, from outside text or less trusted never takes the place of another, and none
    takes the place of a text that a person wrote. A difference that the rules found is not talked away by a model.
    """
    if kind == DisagreementKind.DUPLICATE:
        if relation == Kind.CONTRADICTS:
            return Decision(Action.CONTRADICTION)
        return Decision(Action.KEPT) if relation == Kind.DISTINCT else _if_allowed(Action.MERGED, older, newer)
    if relation == Kind.REINFORCES:
        return Decision(Action.PERSON, "matching found a difference between the two")
    if relation == Kind.CONTRADICTS:
        return _if_allowed(Action.SUPERSEDES, newer, older)
    why = why_weaker(newer, older)
    if not why and not older.active and older.inactive_reason != Inactive.CONTRADICTED:
        why = f"memory {older.pk} is inactive"
    return Decision(Action.PERSON, why) if why else Decision(Action.BOTH)


def _if_allowed(action: Action, winner: Memory, loser: Memory) -> Decision:
    why = why_stays(winner, loser)
    return Decision(Action.PERSON, why) if why else Decision(action)


def why_stays(winner: Memory, loser: Memory) -> str:
    """Say why `loser` may not be given up for `winner` without a person; "" when it may."""
    if loser.source == Source.HUMAN or loser.trust == Trust.OPERATOR:
        return f"a person wrote memory {loser.pk}"
    if not winner.active:
        return f"memory {winner.pk} is inactive"
    if loser.confirmed_at is not None and winner.confirmed_at is None:
        return f"memory {loser.pk} was confirmed, memory {winner.pk} was not"
    if loser.persistent and not winner.persistent:
        return f"a person exempted memory {loser.pk} from fading"
    return why_weaker(winner, loser)


def why_weaker(one: Memory, other: Memory) -> str:
    """Say why `one` may decide nothing about `other`: it waits for a person, or is less trusted; "" if neither."""
    for memory in (one, other):
        if memory.verdict == Verdict.HOLD:
            return f"memory {memory.pk} is held"
    if one.unconfirmed or (one.provisional and one.confirmed_at is None):
        return f"memory {one.pk} is unconfirmed"
    if one.trust == Trust.EXTERNAL and one.confirmed_at is None:
        return f"memory {one.pk} comes from outside text and was not confirmed"
    if one.trust != other.trust and lowest(one.trust, other.trust) == one.trust:
        return f"memory {one.pk} is less trusted than memory {other.pk}"
    return ""


def from_outside(memory: Memory) -> bool:
    """Whether its text may have been written by somebody outside: it is judged apart from pairs that are trusted."""
    return memory.trust == Trust.EXTERNAL or bool(memory.provisional)
