"""The words of a text that say something, to compare proposals with entries and observations. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from memories.matching.synonyms import stem

WORD = re.compile(r"[^\W_]+(?:[./_-]+[^\W_]+)*")
"""A word, a number, or a name of several parts: "restic", "03:00" is two, "/srv/backup.sh" one without its slash."""
PART = re.compile(r"[^\W_]+")
LONGEST = 10_000

# No word of negation, obligation or time is among them: these are what a poisoned text adds to a harmless one.
SMALL = frozenset(
    """
    a an the and or but of to in on at by for from with into as than then so that this these those it its there
    is are was were be been being has have had do does did will would can could which who when where while because
    also both each per via about between through during after before under over up again too very such some
    """.split()  # noqa: SIM905
)


@lru_cache(maxsize=4_096)
def words_of(text: str) -> frozenset[str]:
    """Return the stems of the words of `text` and of the parts of its names, without small words."""
    plain = unicodedata.normalize("NFKC", text[:LONGEST]).lower()
    stems = set()
    for name in WORD.findall(plain):
        parts = PART.findall(name)
        stems |= {name, *parts} if len(parts) > 1 else {stem(name)}
    return frozenset(stems - SMALL)


def share(words: frozenset[str], among: frozenset[str]) -> float:
    """Return the share (0..1) of `words` that are `among` others; 0 for none."""
    return len(words & among) / len(words) if words else 0.0


def likeness(one: str, other: str) -> float:
    """Return the share (0..1) of the words of one text that the other has, whichever is larger."""
    first, second = words_of(one), words_of(other)
    return max(share(first, second), share(second, first))
