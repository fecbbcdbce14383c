"""Axes of opposite leanings, kinds of things and near-synonyms, from data files. Only `features` uses them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from .synonyms import meaning, stem
from .vocabulary import entries

AXES = entries("axes")
"""One axis a line: words that lean one way | words that lean the other way."""

CIRCUMSTANCES = entries("circumstances")
"""Axes of when, where and which: texts at both ends that also differ elsewhere state two cases (day, night)."""

KINDS = entries("kinds")
"""Things of one kind, a line each: in a slot they exclude one another."""


ALIKE = entries("near_synonyms")
"""Near-synonyms, looser than synonyms and never enough to merge."""


def _alike() -> Mapping[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, line in enumerate(ALIKE):
        for word in line.split():
            for key in {word, stem(word), meaning(word).name}:
                found.setdefault(key, set()).add(number)
    return MappingProxyType({word: frozenset(groups) for word, groups in found.items()})


def _axes() -> Mapping[str, tuple[tuple[int, int], ...]]:
    found: dict[str, dict[int, int]] = {}
    for number, line in enumerate(AXES + CIRCUMSTANCES):
        for sign, side in zip((1, -1), line.split(" | "), strict=True):
            for word in side.split():
                for key in {word, stem(word)}:
                    found.setdefault(key, {}).setdefault(number, sign)
    return MappingProxyType({word: tuple(axes.items()) for word, axes in found.items()})


def _kinds() -> Mapping[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, line in enumerate(KINDS):
        for word in line.split():
            for key in {word, stem(word), meaning(word).name}:
                found.setdefault(key, set()).add(number)
    return MappingProxyType({word: frozenset(kinds) for word, kinds in found.items()})


_NONE: frozenset[int] = frozenset()
_AXES, _KINDS, _ALIKE = _axes(), _kinds(), _alike()
_FIRST_CIRCUMSTANCE = len(AXES)


def alikes_of(name: str) -> frozenset[int]:
    """Return the groups of near-synonyms of a word, by its meaning's name."""
    return _ALIKE.get(name, _NONE)


@lru_cache(maxsize=20_000)
def leaning(word: str) -> tuple[tuple[int, int], ...]:
    """Return (axis, side) pairs of a word; side is 1 or -1."""
    return _AXES.get(word) or _AXES.get(stem(word), ())


def is_circumstance(axis: int) -> bool:
    """Whether an axis only says when, where or which."""
    return axis >= _FIRST_CIRCUMSTANCE


@lru_cache(maxsize=20_000)
def kinds_of(word: str) -> frozenset[int]:
    return _KINDS.get(word) or _KINDS.get(stem(word)) or _KINDS.get(meaning(word).name, frozenset())
