"""Compare what two texts of other languages deny. Pure; English has `clauses`, and the words are in data/denials.txt.

Nothing is understood of such a text but its denials and the words of permission and duty beside them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import pairwise

from memories.capture.text import WITHOUT_BLANKS

from .vocabulary import entries

_SIDES = [tuple(side.split() for side in line.split(" | ")) for line in entries("denials")]
_DENYING, _MODAL = (frozenset(word for sides in _SIDES for word in sides[at]) for at in (0, 1))
_PART = re.compile(
    "|".join(
        sorted((word for word in _DENYING | _MODAL if re.search(f"[{WITHOUT_BLANKS}]", word)), key=len, reverse=True)
    )
)
_WORD = re.compile(r"\w[\w\u0300-\u036f\u0e31-\u0e4e]*")


def likeness_but_for_a_denial(known: str, new: str) -> float | None:
    """Return how alike two texts are (0..1) of which one denies; None where both or neither do, or a number differs."""
    one, other = _read(known), _read(new)
    if one[0] % 2 == other[0] % 2 or re.findall(r"\d+", known) != re.findall(r"\d+", new):
        return None
    here, there = (Counter(pairwise(f" {content} ")) for _, _, content in (one, other))
    alike = 2 * (here & there).total() / (here.total() + there.total())
    return alike if one[1] <= other[1] or other[1] <= one[1] else min(alike, 0.9)  # "may" beside "need not"


@lru_cache(maxsize=4_096)
def _read(text: str) -> tuple[int, frozenset[str], str]:
    """Return how often a text denies, its words of permission and duty, and the rest of it."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    if re.search(f"[{WITHOUT_BLANKS}]", folded):
        folded = re.sub(r"\s", "", folded)
    found = _PART.findall(folded)
    words = _WORD.findall(_PART.sub("", folded))
    found += [word for word in words if word in _DENYING or word in _MODAL]
    rest = " ".join(word for word in words if word not in _DENYING and word not in _MODAL)
    return sum(one in _DENYING for one in found), frozenset(found) & _MODAL, rest
