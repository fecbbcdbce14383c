"""Take out what a person marked as private: `<private>…</private>`. Pure.

It is taken out wherever it stands in the given texts, also where a later one repeats it. A text of an earlier part is
not known here: what it marked can come back in a later part, when a tool or the agent repeats it there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memories.observe.runs import Runs

INSTEAD = "[private]"
RUN = 4
"""Words in a row that repeat a private passage."""

# A tag that is not closed by ">" counts too: rather too much is taken out than too little.
TAG = re.compile(r"(?:<|&lt;)\s{0,3}(/?)\s{0,3}private\b(?:[^<>&]{0,200}(?:>|&gt;))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WithoutPrivate:
    """The texts without the private passages, and how many places that were."""

    texts: tuple[str, ...]
    removed: int


def without_private(texts: Sequence[str]) -> WithoutPrivate:
    """Take the private passages out of `texts`, which belong to one session.

    A passage that is not closed reaches to the end of its text; a passage within another ends with the outer one.
    """
    passages: list[str] = []
    kept = [_outside(text, passages) if "private" in text.lower() else text for text in texts]
    count = len(passages)
    if not passages:
        return WithoutPrivate(tuple(kept), 0)
    runs = Runs(passages, length=RUN, shortest=1, telling=True)
    for at, text in enumerate(kept):
        kept[at], more = runs.without(text, INSTEAD)
        count += more
    return WithoutPrivate(tuple(kept), count)


def _outside(text: str, passages: list[str]) -> str:
    pieces: list[str] = []
    depth, at = 0, 0
    for tag in TAG.finditer(text):
        if tag[1]:
            if depth == 1:
                passages.append(TAG.sub(" ", text[at : tag.start()]))
                at = tag.end()
            elif depth == 0:
                pieces.append(text[at : tag.start()])
                at = tag.end()
            depth = max(0, depth - 1)
        else:
            if depth == 0:
                pieces += [text[at : tag.start()], INSTEAD]
                at = tag.end()
            depth += 1
    if depth:
        passages.append(TAG.sub(" ", text[at:]))
    else:
        pieces.append(text[at:])
    return "".join(pieces)
