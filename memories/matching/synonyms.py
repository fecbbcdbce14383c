"""Look up the meaning of a word: its synonym group, its side of an opposition, its weight."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import snowballstemmer

from .vocabulary import EMPTY as EMPTY_WORDS
from .vocabulary import LIGHT_NOUNS, LIGHT_VERBS, NOT_NEGATED, OPPOSITE, SAME

EMPTY, LIGHT, FULL = 0, 1, 2
"""Weights: no content ("use"), little ("service", "run"), full."""

_LONGEST = 40
"""Characters of the longest word looked up; longer ones are kept as they are."""

_stemmer = snowballstemmer.stemmer("english")
_stemming = Lock()  # a stemmer is stateful


@dataclass(frozen=True, slots=True)
class Meaning:
    """`sign` is 1, or -1 for the denying side."""

    name: str
    sign: int
    weight: int


def stem(word: str) -> str:
    """'restarted' → 'restart'."""
    return _stem(word) if len(word) <= _LONGEST else word


def meaning(word: str) -> Meaning:
    """'disabled' → ('enable', -1), 'unmounted' → ('mount', -1), 'launching' → ('start', 1)."""
    return _meaning(word) if len(word) <= _LONGEST else Meaning(word, 1, FULL)


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    with _stemming:
        return str(_stemmer.stemWord(word))


def _read_synonyms() -> dict[str, str]:
    names: dict[str, str] = {}
    for line in SAME:
        group = line.split()
        for word in group:
            names.setdefault(word, group[0])
            names.setdefault(stem(word), group[0])
    return names


def _read_opposites() -> tuple[dict[str, tuple[str, int]], dict[str, tuple[str, int]]]:
    """Return the sides of words as written, and of stems and names."""
    written: dict[str, tuple[str, int]] = {}
    stems: dict[str, tuple[str, int]] = {}
    for line in OPPOSITE:
        yes, no = (side.split() for side in line.split("|"))
        for sign, side in ((1, yes), (-1, no)):
            for word in side:
                written.setdefault(word.rstrip("!"), (yes[0], sign))
                if not word.endswith("!"):
                    stems.setdefault(stem(word), (yes[0], sign))
                    stems.setdefault(word, (yes[0], sign))
    return written, stems


_NAMES = _read_synonyms()
_WRITTEN, _STEMS = _read_opposites()
_NEGATED = re.compile(r"(?:un|non)([a-z]{2,}(?:ed|able|ible))|([a-z]{4,})less")


def _name_and_sign(word: str) -> tuple[str, int]:
    if word in _WRITTEN:
        return _WRITTEN[word]
    name = _NAMES.get(word) or _NAMES.get(stem(word)) or stem(word)
    if name in _STEMS:
        return _STEMS[name]
    if (match := _NEGATED.fullmatch(word)) and word not in NOT_NEGATED:
        name, sign = _name_and_sign(match.group(1) or match.group(2))
        return name, -sign
    return name, 1


_EMPTY_NAMES = frozenset(_name_and_sign(word)[0] for word in EMPTY_WORDS)
_LIGHT_NAMES = frozenset(_name_and_sign(word)[0] for word in LIGHT_VERBS | LIGHT_NOUNS)
LIGHT_NOUN_NAMES = frozenset(_name_and_sign(word)[0] for word in LIGHT_NOUNS)


@lru_cache(maxsize=50_000)
def _meaning(word: str) -> Meaning:
    name, sign = _name_and_sign(word)
    return Meaning(name, sign, EMPTY if name in _EMPTY_NAMES else LIGHT if name in _LIGHT_NAMES else FULL)
