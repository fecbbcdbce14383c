"""The eight steps of a piece of knowledge, the ends that its way can have, and the sentence for each. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, StrEnum

from django.urls import reverse


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
    """What became of a step: its icon on the page, and its sign in a terminal.

    `low`: passed, but not well. `unknown`: nothing is kept of it any more.
    """

    icon: str
    sign: str

    def __new__(cls, value: str, icon: str, sign: str) -> Outcome:
        self = str.__new__(cls, value)
        self._value_, self.icon, self.sign = value, icon, sign
        return self

    PASSED = "passed", "ok", "ok"
    LOW = "low", "warning", "low"
    ENDED = "ended", "failed", "ENDED"
    NOT_REACHED = "not_reached", "skipped", "-"
    UNKNOWN = "unknown", "info", "?"


class End(Enum):
    """Where the way ended: its step (None: it did not end, and nothing was lost) and its sentence."""

    NEVER_WRITTEN = Name.TRANSCRIPT, "No session wrote it{nearest}."
    ONLY_SAID = Name.TRANSCRIPT, "{who} said it, but not as a memory: no marker stands before it{day}."
    NOT_KEPT = Name.TRANSCRIPT, "{who} that was observed said it{day}, but it was not kept{reason}."
    MALFORMED = Name.TRANSCRIPT, "{who} wrote it{day}, but its marker could not be read{reason}."
    QUOTED = Name.TRANSCRIPT, "{who} wrote it{day}, but inside code or a quotation, where no marker is read."
    DISCARDED = Name.GATE, "The gate discarded it{day}{reason}."
    HELD = Name.GATE, "It knows, but may not tell: memory {memory} is held for review{reason}."
    REJECTED = Name.GATE, "It knows, but may not tell: memory {memory} was rejected in review{day}."
    UNCONFIRMED = Name.STORE, "It knows, but may not tell: memory {memory} is {reason_alone}."
    NOT_STORED = Name.STORE, "{who} wrote it{day}, but no memory of it is there: it was deleted since, or never stored."
    MERGED = Name.STORE, "It knows it by another name: memory {memory} was merged into {other}{day}."
    SUPERSEDED = Name.STORE, "It believed something newer: memory {memory} was replaced by {other}{day}."
    CONTRADICTED = Name.STORE, "It stopped believing it: memory {memory} was contradicted{day}{reason}."
    DEACTIVATED = Name.STORE, "A person switched it off: memory {memory} was deactivated{day}{reason}."
    LOWERED = Name.STORE, "A person took its confidence away: memory {memory} was set below the threshold{day}."
    DELETED = Name.STORE, "It knew, until {memory_or_it} was deleted{day}{reason}."
    LATER = Name.STORE, "It did not know yet: memory {memory} was made{day}, after session {session} had begun."
    DECAYED = Name.DECAY, "It forgot: memory {memory} faded{day}{reason}."
    EXPIRED = Name.DECAY, "It was allowed to forget: memory {memory} expired{day}."
    STALE = Name.DECAY, "It put it aside: memory {memory} is stale{day}, and stale knowledge is not recalled."
    BELOW = Name.DECAY, "It knew, but was not sure: memory {memory} is below the confidence of a prompt{reason}."
    OTHER_PROJECT = Name.RECALL, "It knows it elsewhere: memory {memory} belongs to the project {reason_alone}."
    OTHER_AGENT = Name.RECALL, "It knows it elsewhere: memory {memory} belongs to the agent {reason_alone}."
    WINDOW = Name.RECALL, "It knew, but it was not the time: memory {memory} is {reason_alone}."
    NOT_FOUND = (
        Name.RECALL,
        "It knew, but did not think of it: memory {memory} was not found for the task of session {session}.",
    )
    BUDGET = Name.BUDGET, "It knew. Memory {memory} was found, but {place}, and the budget {cut}."
    NO_PROMPT = (
        Name.TOLD,
        "It was not asked: session {session} has no receipt, so it got no prompt from here that could name memory "
        "{memory}.",
    )
    LOST = (
        Name.TOLD,
        "It knew: memory {memory} was active and within its scope, yet the receipt of session {session} does not "
        "name it.",
    )
    KNOWN = None, "It knows: memory {memory} is active, and no session that may be told of it has begun since."
    TOLD = None, "It was told: session {session} had {memory_or_it} in front of it{reason}."

    def __init__(self, step: Name | None, text: str) -> None:
        self.step, self.text = step, text

    @property
    def code(self) -> str:
        """Its name in JSON."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Link:
    """A place that shows the evidence, or something to do: the URL named `name` with `args`; with `post` a form."""

    label: str
    name: str
    args: tuple[int | str, ...] = ()
    query: str = ""
    anchor: str = ""
    post: bool = False

    @classmethod
    def to(cls, name: str, pk: int) -> Link:
        """Return the link to a memory or a session."""
        return cls(f"{name} {pk}", name, (pk,))

    @classmethod
    def to_line(cls, session_id: int, seq: int) -> Link:
        return cls(f"line {seq}", "session-log", (session_id,), f"at={seq}")

    @property
    def address(self) -> str:
        query, anchor = self.query and f"?{self.query}", self.anchor and f"#{self.anchor}"
        return reverse(self.name, args=self.args) + query + anchor


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
    steps: list[Step] = []
    is_over = False
    for name in Name:
        one = seen.get(name, NOT_KEPT)
        outcome = Outcome.UNKNOWN if one.is_unknown else Outcome.LOW if one.is_low else Outcome.PASSED
        if is_over or (end is End.KNOWN and name not in seen):
            outcome = Outcome.NOT_REACHED
            keeps_note = name is Name.TOLD and one is not NOT_KEPT
            one = replace(one, text=NOT_REACHED.text, is_low=False) if keeps_note else NOT_REACHED
        elif name is end.step:
            outcome, is_over = Outcome.ENDED, True
        steps.append(Step(name, outcome, one))
    return tuple(steps)


def sentence(
    end: End,
    *,
    memory: int | None = None,
    session: int | None = None,
    other: int | None = None,
    day: str = "",
    reason: str = "",
    rank: int | None = None,
    told: int = 0,
    nearest: Sequence[int] = (),
) -> str:
    """Return where the way ended, as one sentence for people.

    `memory`, `session`, `other` and `nearest` are numbers of rows, `day` is a day in words, `reason` a clause without
    its full stop. `rank` counts from 1; `told` is how many memories were told.
    """
    known = joined([f"memory {pk}" for pk in nearest], "and")
    near = f"the nearest {'thing known is' if len(nearest) == 1 else 'things known are'} {known}"
    return end.text.format(
        memory=memory,
        memory_or_it="it" if memory is None else f"memory {memory}",
        session=session,
        other=f"memory {other}" if other else "another memory",
        who="A session" if session is None else f"Session {session}",
        day=f" on {day}" if day else "",
        reason=f": {reason}" if reason else "",
        reason_alone=reason or "kept back",
        nearest=f"; {near}" if nearest else ", and nothing that is known is near it",
        place=f"came {ordinal(rank)}" if rank else "came too late in the ranking",
        cut=f"ended after the {ordinal(told)}" if told else "had no room for any",
    )


def would_have(changes: Sequence[str]) -> str:
    """Return what would have changed the end: "It would have been told if …, or with 126 more tokens."; "" for none."""
    return f"It would have been told {joined(changes)}." if changes else ""


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th, 11th, 21st, 112th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def joined(parts: Sequence[str], word: str = "or") -> str:
    """Join clauses: "a", "a or b", "a, b or c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}" if parts else ""
