"""The eight steps of a piece of knowledge, and the places where its way can end. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum


class Name(StrEnum):
    """The steps, in their order."""

    TRANSCRIPT = "transcript"
    GATE = "gate"
    MATCHING = "matching"
    STORE = "store"
    DECAY = "decay"
    RECALL = "recall"
    BUDGET = "budget"
    TOLD = "told"


class Outcome(StrEnum):
    """`low`: passed, but not well. `unknown`: nothing is kept of it any more."""

    PASSED = "passed"
    LOW = "low"
    ENDED = "ended"
    NOT_REACHED = "not_reached"
    UNKNOWN = "unknown"


class End(StrEnum):
    """Where the way ended. `told` and `known` are no loss."""

    NEVER_WRITTEN = "never_written"
    ONLY_SAID = "only_said"
    NOT_KEPT = "not_kept"
    MALFORMED = "malformed"
    QUOTED = "quoted"
    DISCARDED = "discarded"
    HELD = "held"
    REJECTED = "rejected"
    UNCONFIRMED = "unconfirmed"
    NOT_STORED = "not_stored"
    MERGED = "merged"
    SUPERSEDED = "superseded"
    CONTRADICTED = "contradicted"
    DEACTIVATED = "deactivated"
    LOWERED = "lowered"
    DELETED = "deleted"
    LATER = "later"
    DECAYED = "decayed"
    EXPIRED = "expired"
    STALE = "stale"
    BELOW = "below"
    OTHER_PROJECT = "other_project"
    OTHER_AGENT = "other_agent"
    WINDOW = "window"
    NOT_FOUND = "not_found"
    BUDGET = "budget"
    NO_PROMPT = "no_prompt"
    LOST = "lost"
    KNOWN = "known"
    TOLD = "told"


STEP_OF: Mapping[End, Name | None] = {
    End.NEVER_WRITTEN: Name.TRANSCRIPT,
    End.ONLY_SAID: Name.TRANSCRIPT,
    End.NOT_KEPT: Name.TRANSCRIPT,
    End.MALFORMED: Name.TRANSCRIPT,
    End.QUOTED: Name.TRANSCRIPT,
    End.DISCARDED: Name.GATE,
    End.HELD: Name.GATE,
    End.REJECTED: Name.GATE,
    End.UNCONFIRMED: Name.STORE,
    End.NOT_STORED: Name.STORE,
    End.MERGED: Name.STORE,
    End.SUPERSEDED: Name.STORE,
    End.CONTRADICTED: Name.STORE,
    End.DEACTIVATED: Name.STORE,
    End.LOWERED: Name.STORE,
    End.DELETED: Name.STORE,
    End.LATER: Name.STORE,
    End.DECAYED: Name.DECAY,
    End.EXPIRED: Name.DECAY,
    End.STALE: Name.DECAY,
    End.BELOW: Name.DECAY,
    End.OTHER_PROJECT: Name.RECALL,
    End.OTHER_AGENT: Name.RECALL,
    End.WINDOW: Name.RECALL,
    End.NOT_FOUND: Name.RECALL,
    End.BUDGET: Name.BUDGET,
    End.NO_PROMPT: Name.TOLD,
    End.LOST: Name.TOLD,
    End.KNOWN: None,
    End.TOLD: None,
}
"""The step at which each end stands; None: it did not end."""

ICONS: Mapping[Outcome, str] = {
    Outcome.PASSED: "ok",
    Outcome.LOW: "warning",
    Outcome.ENDED: "failed",
    Outcome.NOT_REACHED: "skipped",
    Outcome.UNKNOWN: "info",
}


@dataclass(frozen=True, slots=True)
class Link:
    """A place that shows the evidence: the URL named `name` with its arguments."""

    label: str
    name: str
    args: tuple[int | str, ...] = ()
    query: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one step: a sentence without its full stop, a second line, a figure beside it, the evidence.

    `at` (aware UTC) is when it happened. `is_unknown`: what would say it is not kept any more.
    """

    text: str
    note: str = ""
    beside: str = ""
    at: datetime | None = None
    link: Link | None = None
    is_low: bool = False
    is_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    name: Name
    outcome: Outcome
    seen: Seen

    @property
    def label(self) -> str:
        return self.name.value.capitalize()

    @property
    def icon(self) -> str:
        """The name of its icon: each outcome has a shape of its own."""
        return ICONS[self.outcome]

    @property
    def said(self) -> str:
        """The outcome in a word."""
        return self.outcome.value.replace("_", " ")


NOT_REACHED = Seen("Not reached")
NOT_KEPT = Seen("Nothing is kept of it", is_unknown=True)


def steps_of(seen: Mapping[Name, Seen], end: End) -> tuple[Step, ...]:
    """Return the eight steps, in order.

    At most one ended, the one of `end`; those behind it are not reached, whatever was seen there. The last keeps its
    note and its evidence: what became of the session.
    """
    last = STEP_OF[end]
    found: list[Step] = []
    is_over = False
    for name in Name:
        one = seen.get(name, NOT_KEPT)
        if is_over:
            kept = replace(one, text=NOT_REACHED.text, is_low=False) if name is Name.TOLD else NOT_REACHED
            found.append(Step(name, Outcome.NOT_REACHED, NOT_REACHED if one is NOT_KEPT else kept))
        elif name is last:
            found.append(Step(name, Outcome.ENDED, one))
            is_over = True
        elif end is End.KNOWN and name not in seen:
            found.append(Step(name, Outcome.NOT_REACHED, NOT_REACHED))
        else:
            outcome = Outcome.UNKNOWN if one.is_unknown else Outcome.LOW if one.is_low else Outcome.PASSED
            found.append(Step(name, outcome, one))
    return tuple(found)
