"""What a part of a transcript holds, before it is prepared for the observer. Pure.

What a person marked as private is taken out wherever it stands in the given turns, also where another one repeats it:
four words of it in a row, all of a shorter passage, a word with a digit. The tags of an agent or a tool count in
their own turn alone, so that no text from outside can take a person's words away. What an earlier part marked is not
known here: if a later part repeats it, it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from memories.capture.support import Evidence
from memories.observe.runs import Runs


class TurnKind(StrEnum):
    """`user` is what a person typed or an agent's task; `summary` is that of a compaction."""

    USER = "user"
    AGENT = "agent"
    CALL = "call"
    RESULT = "result"
    SYSTEM = "system"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Turn:
    """One piece of a transcript, in order. Credentials in `text` are masked.

    `number` counts within the transcript, from 1; `start` and `end` are the bytes of its line. `at` is UTC. `name` is
    the tool's of a call or a result. `source` names what a result exposes to: empty for nothing from outside the
    session's own machines. `is_outside` says whether that is text from outside the house.
    """

    number: int
    kind: TurnKind
    text: str
    start: int = 0
    end: int = 0
    at: datetime | None = None
    name: str = ""
    source: str = ""
    is_outside: bool = False


@dataclass(frozen=True, slots=True)
class PartTurns:
    """The turns of one part, with what had been read by its end: `exposure` (a value of `Exposure`), and its sources.

    `earlier_results` are texts of tools that stand before the part, for the comparison of facts with what was read.
    `evidence` is what supports facts, of the whole transcript up to the part's end.
    `told` are the texts that were put into the session by us: injected blocks and recalled memories. `told_ids` are
    the ids of those memories. `missing` says why the part cannot be read, empty when it can.
    """

    turns: tuple[Turn, ...] = ()
    exposure: str = "outside"
    sources: tuple[str, ...] = ()
    earlier_results: tuple[tuple[str, str], ...] = ()
    evidence: Evidence = field(default_factory=Evidence)
    told: tuple[str, ...] = ()
    told_ids: frozenset[int] = frozenset()
    missing: str = ""


INSTEAD = "[private]"
RUN = 4
"""Words in a row that repeat a private passage."""

# A tag that is not closed by ">" counts too: rather too much is taken out than too little.
TAG = re.compile(r"(?:<|&lt;)\s{0,3}(/?)\s{0,3}private\b(?:[^<>&]{0,200}(?:>|&gt;))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WithoutPrivate:
    """The texts without the private passages, and in how many places these were."""

    texts: tuple[str, ...]
    removed: int


def without_private(turns: Sequence[Turn], *, read: Sequence[int | None] | None = None) -> WithoutPrivate:
    """Return the texts of `turns`, which are in order, without the private passages.

    `read` are the characters of each text that count (None: all). A passage that is not closed reaches to the end of
    its message: of the last of the turns that a person has without another's between them.
    """
    texts = [turn.text[: read[at] if read else None] for at, turn in enumerate(turns)]
    passages: list[str] = []  # of people
    others: list[str] = []
    depth = 0
    for at, text in enumerate(texts):
        if at and not _goes_on(turns[at - 1], turns[at]):
            depth = 0
        if depth or "private" in text.lower():
            texts[at], depth = _outside(text, depth, passages if turns[at].kind == TurnKind.USER else others)
    count = len(passages) + len(others)
    if not passages:
        return WithoutPrivate(tuple(texts), count)
    runs = Runs(passages, length=RUN, shortest=1, telling=True)
    for at, text in enumerate(texts):
        texts[at], more = runs.without(text, INSTEAD)
        count += more
    return WithoutPrivate(tuple(texts), count)


def _goes_on(before: Turn, turn: Turn) -> bool:
    """Whether a turn belongs to the message of the one before it: plain text has a turn for each paragraph."""
    if not turn.kind == before.kind == TurnKind.USER:
        return False
    return turn.number == before.number + 1 or (turn.start, turn.end) == (before.start, before.end) != (0, 0)


def _outside(text: str, depth: int, passages: list[str]) -> tuple[str, int]:
    """Return what of `text` is not private, and the depth at its end; `depth` is that at its beginning.

    Before a closing tag without an opening one all is private: the text may be the rest of a message.
    """
    pieces: list[str] = [INSTEAD] if depth else []
    at = 0
    for tag in TAG.finditer(text):
        if tag[1]:
            if depth == 0:
                pieces = [INSTEAD]
            if depth <= 1:
                passages.append(_bare(text[at : tag.start()]))
                at = tag.end()
            depth = max(0, depth - 1)
        else:
            if depth == 0:
                pieces += [text[at : tag.start()], INSTEAD]
                at = tag.end()
            depth += 1
    if depth:
        passages.append(_bare(text[at:]))
    else:
        pieces.append(text[at:])
    return "".join(pieces), depth


def _bare(passage: str) -> str:
    return TAG.sub(" ", passage)
