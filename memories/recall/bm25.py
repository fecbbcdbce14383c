"""Compute bm25 scores and coverage of the memories that keyword search found. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection as Some
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memories.recall.term_statistics import Collection

K1, B = 0.9, 0.4
"""Measured on short texts: less weight for repetition and length than the usual 1.2 and 0.75."""


@dataclass(slots=True)
class KeywordHits:
    """The memories with any of the query's `terms`: their term counts (`held`) and numbers of terms.

    `searched`: the terms asked of the index; `outside`: hits outside the scope; `unindexed`: memories read as texts.
    """

    terms: tuple[str, ...] = ()
    collection: Collection = field(default_factory=lambda: Collection(0, 1.0))
    frequency: dict[str, int] = field(default_factory=dict)
    searched: tuple[str, ...] = ()
    outside: int = 0
    unindexed: int = 0
    held: dict[int, Mapping[str, int]] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    idf: dict[str, float] = field(default_factory=dict)
    mass: float = 0.0
    figures: dict[int, tuple[float, float]] = field(default_factory=dict)
    """(score, coverage) by memory, as far as computed."""

    def add(self, rows: Iterable[tuple[int, int, str]]) -> None:
        """Add memories: (id, number of terms, the terms separated by spaces)."""
        shared = set(self.terms).intersection
        for pk, length, text in rows:
            words = text.split(" ")
            self.held[pk] = {term: words.count(term) for term in shared(words)}
            self.lengths[pk] = length
            self.figures.pop(pk, None)

    def remove(self, memory_id: int) -> bool:
        """Remove a memory; return whether it was there."""
        self.lengths.pop(memory_id, None)
        self.figures.pop(memory_id, None)
        return self.held.pop(memory_id, None) is not None

    def weigh(self) -> None:
        """Compute the idf of the terms (Robertson's, never negative). A term that occurs nowhere counts as rarest."""
        size = self.collection.size
        counts = ((term, self.frequency.get(term, 0)) for term in self.terms)
        self.idf = {term: math.log(1 + max(0, size - count + 0.5) / (count + 0.5)) for term, count in counts}
        self.mass = sum(self.idf.values())
        self.figures.clear()

    def score(self, memory_id: int) -> float:
        """Return the bm25 score of a memory; 0 for one that was not found."""
        return (self.figures.get(memory_id) or self._figures([memory_id])[memory_id])[0]

    def coverage(self, memory_id: int) -> float:
        """Return the share (0..1) of the query's idf mass that the memory's terms cover."""
        return (self.figures.get(memory_id) or self._figures([memory_id])[memory_id])[1]

    def coverages(self, ids: Iterable[int]) -> list[float]:
        figures = self._figures(ids)
        return [figures[pk][1] for pk in ids]

    def _figures(self, ids: Iterable[int]) -> dict[int, tuple[float, float]]:
        """Return the figures by memory, after computing those of `ids` that are missing."""
        figures, terms, idfs, mass = self.figures, self.terms, self.idf, self.mass or 1.0
        least, by_length = K1 * (1 - B), K1 * B / max(1.0, self.collection.mean_length)
        for pk in ids:
            if pk in figures:
                continue
            counts, score, covered = self.held.get(pk) or {}, 0.0, 0.0
            norm = least + by_length * self.lengths.get(pk, 0)
            for term in terms if len(counts) > 1 else counts:  # in one order: equal memories get equal scores
                if term in counts:
                    idf, times = idfs[term], counts[term]
                    score += idf * times * (K1 + 1) / (times + norm)
                    covered += idf
            figures[pk] = (score, covered / mass)
        return figures

    def best(self, most: int) -> list[int]:
        """Return the memories with the highest scores, best first; of equal ones the newer first."""
        figures = self._figures(self.held)
        scored = sorted([(figures[pk][0], pk) for pk in self.held], reverse=True)
        return [pk for score, pk in scored[:most] if score > 0]

    def terms_in(self, memory_id: int | None) -> Some[str]:
        return self.held.get(memory_id, {}) if memory_id is not None else {}

    def shared_coverage(self, parts: Sequence[tuple[Some[str], float]]) -> float:
        """Compute the coverage by several texts, (its terms, their weight); a term's highest weight counts."""
        if self.mass <= 0:
            return 0.0
        covered = (
            idf * max((share for held, share in parts if term in held), default=0.0) for term, idf in self.idf.items()
        )
        return sum(covered) / self.mass
