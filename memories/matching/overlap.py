"""What two normal forms share, and what each has for itself.

A statement that touches nothing of the other text ("-- wait before checking health") stands aside: it adds to
the fact, it does not change it. Judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from .normalise import NormalForm
from .vocabulary import FULL_WEIGHT, IMPLIED

_MOST_COMPOUNDS = 12


@dataclass(frozen=True, slots=True)
class Overlap:
    """Words by side. `known` and `new` are what each text has for itself, without what stands aside."""

    shared: frozenset[str]
    known: frozenset[str]
    new: frozenset[str]
    aside_known: frozenset[str]
    aside_new: frozenset[str]
    full_shared: int
    full_known: int
    full_new: int


def overlap(known: NormalForm, new: NormalForm, about: frozenset[str] = frozenset()) -> Overlap:
    """`about` are words both texts are about anyway: neither needs to say them."""
    shared = known.words & new.words
    only_known, only_new = known.words - shared, new.words - shared
    if only_known and only_new and len(only_known) + len(only_new) <= _MOST_COMPOUNDS:
        joined = _compounds(only_known, only_new) | _compounds(only_new, only_known)
        only_known, only_new = only_known - joined, only_new - joined
    implied = about | {f"re{word}" for word in shared}  # a restart is a start
    for amount in (*known.amounts, *new.amounts):
        implied |= IMPLIED.get(amount.dimension, frozenset())
    only_known, only_new = only_known - implied, only_new - implied
    aside_known, aside_new = _aside(known, only_known, shared), _aside(new, only_new, shared)
    only_known, only_new = only_known - aside_known, only_new - aside_new
    return Overlap(
        shared, only_known, only_new, aside_known, aside_new,
        _full(known, shared), _full(known, only_known), _full(new, only_new),
    )  # fmt: skip


def _compounds(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """healthcheck on one side, health and check on the other."""
    found: set[str] = set()
    for word in one:
        for first in other:
            if word.startswith(first) and (rest := word[len(first) :]) in other:
                found |= {word, first, rest}
    return frozenset(found)


def _aside(form: NormalForm, only: frozenset[str], shared: frozenset[str]) -> frozenset[str]:
    """The words whose statement has nothing of the other text."""
    if form.statements == 1 or not only:
        return frozenset()
    touched = {form.places[word].statement for word in shared}
    touched = touched - form.reasons or touched  # a reason explains, whatever words it does so with
    return frozenset(word for word in only if form.places[word].statement not in touched)


def _full(form: NormalForm, words: frozenset[str]) -> int:
    weights = form.weights
    return sum(weights[word] == FULL_WEIGHT for word in words)
