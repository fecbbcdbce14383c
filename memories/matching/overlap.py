"""Compute the words that two normal forms share, and those of each alone."""

from __future__ import annotations

from dataclasses import dataclass

from .normalise import NormalForm
from .synonyms import LIGHT_NOUN_NAMES

_MOST_COMPOUNDS = 12
"""Compounds are only looked for among so few unshared words."""


_SHORTEST_COMPOUND = 6


@dataclass(frozen=True, slots=True)
class Rest:
    """The words that only one text has.

    `aside` are those of statements that share nothing with the other text. Of the others, `full` counts full words,
    `things` those and light nouns.
    """

    words: frozenset[str]
    aside: frozenset[str]
    full: int
    things: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """The words of two texts by side; `full_shared` counts shared full words, `dimensions` shared kinds of amounts."""

    shared: frozenset[str]
    dimensions: frozenset[str]
    full_shared: int
    known: Rest
    new: Rest


def overlap(known: NormalForm, new: NormalForm, about: frozenset[str] = frozenset()) -> Overlap:
    """Compare the words of two texts; `about` are words that neither needs to say."""
    shared, dimensions = known.words & new.words, known.dimensions & new.dimensions
    only_known, only_new = known.words - shared, new.words - shared
    if shared:
        silent = about | known.implied | new.implied
        only_known, only_new = _unsaid(only_known, shared, silent), _unsaid(only_new, shared, silent)
        if only_known and only_new and len(only_known) + len(only_new) <= _MOST_COMPOUNDS:
            joined = _compounds(only_known, only_new) | _compounds(only_new, only_known)
            only_known, only_new = only_known - joined, only_new - joined
    common = shared | dimensions
    full_shared = len(shared & known.full)
    return Overlap(shared, dimensions, full_shared, _rest(known, only_known, common), _rest(new, only_new, common))


def _unsaid(only: frozenset[str], shared: frozenset[str], silent: frozenset[str]) -> frozenset[str]:
    """Remove words that are implied: the subject, "size" beside 4 GB, a restart beside a start."""
    again = {word for word in only if word.startswith("re") and word[2:] in shared}
    return only - silent - again if silent or again else only


def _compounds(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """healthcheck on one side, health and check on the other."""
    found: set[str] = set()
    for word in one:
        if len(word) >= _SHORTEST_COMPOUND:
            for first in other:
                if word.startswith(first) and (rest := word[len(first) :]) in other:
                    found |= {word, first, rest}
    return frozenset(found)


def _rest(form: NormalForm, only: frozenset[str], common: frozenset[str]) -> Rest:
    aside: frozenset[str] = frozenset()
    if form.statements > 1 and only:
        touched = {form.places[word].statement for word in common}
        aside = frozenset(word for word in only if form.places[word].statement not in touched)
    words = only - aside
    full = len(words & form.full)
    return Rest(words, aside, full, full + len(words & LIGHT_NOUN_NAMES))


def things(form: NormalForm, words: frozenset[str]) -> int:
    """Count the words that may be a text's subject: its full words and its light nouns."""
    return len(words & form.full) + len(words & LIGHT_NOUN_NAMES)
