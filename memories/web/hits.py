"""A hit of a recall for the page: its text with the words of the query marked, and its score in shares. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from memories.recall.query import index_terms
from memories.recall.results import Parts

WORD = re.compile(r"[\w.\-/]+|[^\w.\-/]+")


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of a text; `is_match`: it is a word that was searched for."""

    text: str
    is_match: bool


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a score: its name, its value, and where its bar begins and how long it is (0..100 of the axis)."""

    name: str
    value: float
    start: float
    width: float


def marked(text: str, searched: Collection[str]) -> list[Stretch]:
    """Split a text into stretches; joined they spell it. `searched` are terms of the index."""
    found: list[Stretch] = []
    wanted = set(searched)
    for piece in WORD.findall(text):
        is_match = not wanted.isdisjoint(index_terms(piece))
        if found and not is_match and not found[-1].is_match:
            found[-1] = Stretch(found[-1].text + piece, False)
        else:
            found.append(Stretch(piece, is_match))
    return found


def shares(parts: Parts, whole: float) -> list[Share]:
    """Split a score into words, meaning, age and the rest (confidence, use, neighbours), on an axis from 0 to `whole`.

    The cosine counts with its full weight (see fusion), and words are what else was fused. A stale memory's parts are
    lowered as its score is, so that they add up to it; a part that is negative is not drawn.
    """
    meaning = max(0.0, parts.cosine or 0.0)
    words = parts.fused - meaning
    age = parts.boosts.get("age", 0.0)
    rest = parts.context + sum(value for name, value in parts.boosts.items() if name != "age")
    named = [("words", words), ("meaning", meaning), ("age", age), ("confidence", rest)]
    total = sum(max(0.0, value) for _, value in named)
    scale = parts.final / total if total > 0 else 0.0
    found, start = [], 0.0
    for name, value in named:
        width = 100 * max(0.0, value) * scale / whole if whole > 0 else 0.0
        found.append(Share(name, max(0.0, value) * scale, start, width))
        start += width
    return found
