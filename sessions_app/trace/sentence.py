"""The answer of a trace in one sentence, and what would have changed it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sessions_app.trace.steps import End


@dataclass(frozen=True, slots=True)
class About:
    """What the sentences name. `memory`, `session` and `other` are numbers of rows; `day` is a day in words.

    `reason` is a clause without its full stop. `rank` counts from 1; `told` is how many memories were told.
    """

    memory: int | None = None
    session: int | None = None
    other: int | None = None
    day: str = ""
    reason: str = ""
    rank: int | None = None
    told: int = 0
    nearest: tuple[int, ...] = ()


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th, 11th, 21st, 112th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def joined(parts: Sequence[str], word: str = "or") -> str:
    """Join clauses: "a", "a or b", "a, b or c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}" if parts else ""


_TEXTS: Mapping[End, str] = {
    End.ONLY_SAID: "{who} said it, but not as a memory: no marker stands before it{day}.",
    End.NOT_KEPT: "{who} that was observed said it{day}, but it was not kept{reason}.",
    End.MALFORMED: "{who} wrote it{day}, but its marker could not be read{reason}.",
    End.QUOTED: "{who} wrote it{day}, but inside code or a quotation, where no marker is read.",
    End.DISCARDED: "The gate discarded it{day}{reason}.",
    End.HELD: "It knows, but may not tell: memory {memory} is held for review{reason}.",
    End.REJECTED: "It knows, but may not tell: memory {memory} was rejected in review{day}.",
    End.UNCONFIRMED: "It knows, but may not tell: memory {memory} is {reason_alone}.",
    End.NOT_STORED: "{who} wrote it{day}, but no memory of it is there: it was deleted since, or never stored.",
    End.MERGED: "It knows it by another name: memory {memory} was merged into {other}{day}.",
    End.SUPERSEDED: "It believed something newer: memory {memory} was replaced by {other}{day}.",
    End.CONTRADICTED: "It stopped believing it: memory {memory} was contradicted{day}{reason}.",
    End.DEACTIVATED: "A person switched it off: memory {memory} was deactivated{day}{reason}.",
    End.LOWERED: "A person took its confidence away: memory {memory} was set below the threshold{day}.",
    End.DELETED: "It knew, until {memory_or_it} was deleted{day}{reason}.",
    End.LATER: "It did not know yet: memory {memory} was made{day}, after session {session} had begun.",
    End.DECAYED: "It forgot: memory {memory} faded{day}{reason}.",
    End.EXPIRED: "It was allowed to forget: memory {memory} expired{day}.",
    End.STALE: "It put it aside: memory {memory} is stale{day}, and stale knowledge is not recalled.",
    End.BELOW: "It knew, but was not sure: memory {memory} is below the confidence of a prompt{reason}.",
    End.OTHER_PROJECT: "It knows it elsewhere: memory {memory} belongs to {reason_alone}.",
    End.OTHER_AGENT: "It knows it elsewhere: memory {memory} belongs to {reason_alone}.",
    End.WINDOW: "It knew, but it was not the time: memory {memory} is {reason_alone}.",
    End.NOT_FOUND: "It knew, but did not think of it: memory {memory} was not found for the task of session {session}.",
    End.NO_PROMPT: "It was not asked: session {session} has no receipt, so it got no prompt from here that could name "
    "memory {memory}.",
    End.LOST: "It knew: memory {memory} was active and within its scope, yet the receipt of session {session} does not "
    "name it.",
    End.KNOWN: "It knows: memory {memory} is active, and no session that may be told of it has begun since.",
}


def sentence(end: End, about: About) -> str:
    """Return where the way ended, as one sentence for people."""
    if end is End.NEVER_WRITTEN:
        return _never(about.nearest)
    if end is End.BUDGET:
        return _budget(about)
    if end is End.TOLD:
        return _told(about)
    return _TEXTS[end].format(
        memory=about.memory,
        memory_or_it="it" if about.memory is None else f"memory {about.memory}",
        session=about.session,
        other=f"memory {about.other}" if about.other else "another memory",
        who="A session" if about.session is None else f"Session {about.session}",
        day=f" on {about.day}" if about.day else "",
        reason=f": {about.reason}" if about.reason else "",
        reason_alone=about.reason or "kept back",
    )


def would_have(changes: Sequence[str]) -> str:
    """Return what would have changed the end: "It would have been told if …, or with 126 more tokens."; "" for none."""
    return f"It would have been told {joined(changes)}." if changes else ""


def _never(nearest: Sequence[int]) -> str:
    if not nearest:
        return "No session wrote it, and nothing that is known is near it."
    one = len(nearest) == 1
    named = joined([f"memory {pk}" for pk in nearest], "and")
    return f"No session wrote it; the nearest {'thing known is' if one else 'things known are'} {named}."


def _budget(about: About) -> str:
    place = f"came {ordinal(about.rank)}" if about.rank else "came too late in the ranking"
    end = f"ended after the {ordinal(about.told)}" if about.told else "had no room for any"
    return f"It knew. Memory {about.memory} was found, but {place}, and the budget {end}."


def _told(about: About) -> str:
    known = "it" if about.memory is None else f"memory {about.memory}"
    where = f": {about.reason}" if about.reason else ""
    return f"It was told: session {about.session} had {known} in front of it{where}."
