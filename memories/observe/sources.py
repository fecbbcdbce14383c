"""Find the turn that a fact most likely comes from, by the words that both have. Pure."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from memories.observe.turns import Turn, TurnKind, without_private

WEIGHTS = {
    TurnKind.USER: 1.5,
    TurnKind.AGENT: 1.0,
    TurnKind.RESULT: 0.8,
    TurnKind.CALL: 0.7,
    TurnKind.SUMMARY: 0.6,
}
"""How much a turn's words count: what a person said weighs most. Turns of other kinds are no source."""
LEAST = 0.34
"""The share of a fact's words, by their rarity, that its source must have."""
LONGEST = 20_000
"""Characters of a turn that are compared."""

_WORD = re.compile(r"[^\W_]+")
_COMMON = frozenset(
    """
    a an the and or but if of to in on at by for from with without is are was were be been has have had do does did not
    no it its this that these those as than then so when while because which who what where how must should may can will
    """.split()  # noqa: SIM905
)


class Sources:
    """The turns of a part, read once, to find the source of each fact. What is within `<private>` is left out."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        relevant = [turn for turn in turns if turn.kind in WEIGHTS]
        texts = without_private(relevant).texts
        self._turns = [replace(turn, text=text) for turn, text in zip(relevant, texts, strict=True)]
        self._with: dict[str, list[int]] = defaultdict(list)
        for at, turn in enumerate(self._turns):
            for word in _words(turn.text[:LONGEST]):
                self._with[word].append(at)

    def of(self, fact_text: str) -> Turn | None:
        """Return the turn with the largest weighted share of the fact's words; None when none has enough of them.

        Of equal ones it is the first. The text of the turn is without what was private.
        """
        shares: dict[int, float] = defaultdict(float)
        total = 0.0
        for word in sorted(_words(fact_text)):
            places = self._with.get(word, ())
            rarity = 1 + math.log(max(1, len(self._turns)) / max(1, len(places)))
            total += rarity
            for at in places:
                shares[at] += rarity
        scores = {at: share * WEIGHTS[self._turns[at].kind] for at, share in shares.items() if share >= LEAST * total}
        return self._turns[min(scores, key=lambda at: (-scores[at], at))] if scores else None


def _words(text: str) -> set[str]:
    return {word for word in map(_stem, _WORD.findall(text.lower())) if word not in _COMMON}


def _stem(word: str) -> str:
    """Cut the endings of English that tell no other thing: "restarts", "restarted" → "restart"."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word
