"""What a query's terms weigh in the memories that were read: counts, idf, bm25 and coverage. Pure.

Knows no database: `keyword` reads, and puts here what it read.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

K1, B = 0.9, 0.4
"""bm25 for short texts, as measured: less weight on repetition and length than the usual 1.2 and 0.75."""

BETWEEN = " \n "
"""What stands between the terms of two memories in a text of many: the end of a line, as if it were a term."""

Numbers = NDArray[np.float64]
Ids = NDArray[np.int64]
_LETTERS = [np.uint64((1 << 8 * letters) - 1) for letters in range(9)]
"""So many letters of eight that are read as one number."""


@dataclass(frozen=True, slots=True)
class Collection:
    """How many memories are indexed, the mean number of their terms, the lowest id and the highest."""

    size: int
    mean_length: float
    first: int = 0
    last: int = 0


@dataclass(slots=True)
class Words:
    """What the words found for the query's `terms`, a row of `counts` for each memory that was read.

    `counts` says how often each term stands there, `lengths` how many terms there are in all; `scores` (bm25) and
    `covered` (0..1, the share of the query's idf mass) follow by `weigh`. `searched` are the terms by which the
    index was asked, `outside` what it found that the filters keep back.
    """

    terms: tuple[str, ...] = ()
    frequency: dict[str, int] = field(default_factory=dict)
    searched: tuple[str, ...] = ()
    collection: Collection = Collection(0, 1.0)
    outside: int = 0
    unindexed: int = 0
    idf: dict[str, float] = field(default_factory=dict)
    mass: float = 0.0
    places: dict[int, int] = field(default_factory=dict)
    counts: Numbers = field(default_factory=lambda: np.zeros((0, 0)))
    lengths: Numbers = field(default_factory=lambda: np.zeros(0))
    scores: list[float] = field(default_factory=list)
    covered: list[float] = field(default_factory=list)

    def take(self, rows: Sequence[tuple[int, int, str]]) -> None:
        """Read memories that were not read before: (id, how many terms it has, these, separated by spaces)."""
        if rows:
            ids, lengths, terms = zip(*rows, strict=True)
            self.take_joined(ids, np.array(lengths, dtype=np.float64), BETWEEN.join(terms))

    def take_joined(self, ids: Sequence[int], lengths: Numbers, texts: str) -> None:
        """The same for many at once: `texts` holds the terms of each, with BETWEEN between two."""
        found = counted(self.terms, texts, len(ids))
        known = len(self.lengths)
        self.places.update(zip(ids, range(known, known + len(ids)), strict=True))
        self.counts = np.concatenate([self.counts, found]) if known else found
        self.lengths = np.concatenate([self.lengths, lengths])

    def drop(self, memory_id: int) -> bool:
        """Forget what was read of a memory; whether there was something."""
        place = self.places.pop(memory_id, None)
        if place is not None:
            self.counts[place] = 0.0
        return place is not None

    def weigh_terms(self) -> None:
        """Set the terms' idf (Robertson's, never negative). A term that no memory holds counts as the rarest."""
        size = self.collection.size
        counted_in = ((term, self.frequency.get(term, 0)) for term in self.terms)
        self.idf = {term: math.log(1 + max(0, size - df + 0.5) / (df + 0.5)) for term, df in counted_in}
        self.mass = sum(self.idf.values())

    def weigh(self) -> None:
        """Set the terms' idf, then each memory's score and coverage."""
        self.weigh_terms()
        if not len(self.lengths):
            self.scores, self.covered = [], []
            return
        idf = np.array([*self.idf.values()])[:, None]
        times = self.counts.T
        norms = K1 * (1 - B + B * self.lengths / max(1.0, self.collection.mean_length))
        # Added up term by term, so that two memories that hold the same have the same to the last bit.
        scores = _added(idf * times * (K1 + 1) / (times + norms))
        self.scores = scores.tolist()
        covered = _added(idf * (times > 0))
        self.covered = (covered / self.mass).tolist() if self.mass > 0 else [0.0] * len(norms)

    def best(self, most: int) -> list[int]:
        """The memories with the highest scores, best first; of equal ones the newer first."""
        if not self.places:
            return []
        ids = np.fromiter(self.places.keys(), dtype=np.int64, count=len(self.places))
        scores = np.array(self.scores)[np.fromiter(self.places.values(), dtype=np.intp, count=len(ids))]
        order = np.lexsort((-ids, -scores))[:most]
        found: list[int] = ids[order[scores[order] > 0]].tolist()
        return found

    def times(self, memory_id: int | None) -> set[str]:
        """Which of the query's terms stand in this memory; none in one that was not read."""
        place = self.places.get(memory_id) if memory_id is not None else None
        if place is None:
            return set()
        return {self.terms[column] for column in np.flatnonzero(self.counts[place]).tolist()}

    def coverage(self, memory_id: int) -> float:
        """The share (0..1) of the query's idf mass that this memory's terms cover."""
        place = self.places.get(memory_id)
        return self.covered[place] if place is not None else 0.0

    def shared(self, parts: Sequence[tuple[Container[str], float]]) -> float:
        """Coverage by several texts: (their terms, what a term counts that stands there). The best one counts."""
        if self.mass <= 0:
            return 0.0
        covered = 0.0
        for term, idf in self.idf.items():
            best = 0.0
            for held, share in parts:
                if share > best and term in held:
                    best = share
            covered += idf * best
        return covered / self.mass

    def bm25(self, memory_id: int) -> float:
        place = self.places.get(memory_id)
        return self.scores[place] if place is not None else 0.0


def _added(rows: Numbers) -> Numbers:
    """The sum of the rows, one after the other; numpy's own would group them by how they lie in memory."""
    total = np.zeros(rows.shape[1])
    for row in rows:
        total += row
    return total


def counted(terms: Sequence[str], texts: str, lines: int) -> Numbers:
    """How often each term (a column) stands in each of the `lines` of `texts` (a row), which BETWEEN parts.

    Each word's first eight letters are read as one number, so that a term is looked for in all words at once; what is
    longer goes on with its next eight where these are the same. Terms are ASCII, and end with a space.
    """
    joined = texts.encode("ascii") + b" " * 9
    letters = np.frombuffer(joined, dtype=np.uint8)
    eights = np.ndarray(len(joined) - 7, dtype="<u8", buffer=joined, strides=(1,))  # from each letter on
    begins = np.concatenate(([0], np.flatnonzero(letters[:-9] == ord(" ")) + 1))
    heads = eights[begins]
    ends = np.flatnonzero(letters == ord("\n"))
    counts = np.zeros((len(terms), lines))
    for row, term in zip(counts, terms, strict=True):
        wanted = term.encode("ascii") + b" "
        at = begins[_same(heads, wanted[:8])]
        for further in range(8, len(wanted), 8):
            at = at[_same(eights[at + further], wanted[further : further + 8])]
        if len(at):
            row[:] = np.bincount(np.searchsorted(ends, at), minlength=lines)
    return counts.T


def _same(eights: NDArray[np.uint64], letters: bytes) -> NDArray[np.bool_]:
    """Which of these begin with these letters, eight at most."""
    found: NDArray[np.bool_] = (eights & _LETTERS[len(letters)]) == np.uint64(int.from_bytes(letters, "little"))
    return found


def by_mass(held: Sequence[tuple[Sequence[str], Ids]], idf: dict[str, float]) -> Ids:
    """Memories by the idf of the terms that each is known to hold, most first; of equal ones the newer first.

    `held`: some terms, and memories that hold all of these. One may be in several, and counts a term once.
    """
    numbers = {term: number for number, term in enumerate(dict.fromkeys(term for terms, _ in held for term in terms))}
    ids, where = np.unique(np.concatenate([found for _, found in held]), return_inverse=True)
    there = np.zeros((len(ids), len(numbers)), dtype=bool)
    begin = 0
    for terms, found in held:
        there[where[begin : begin + len(found), None], [[numbers[term] for term in terms]]] = True
        begin += len(found)
    mass = there @ np.array([idf[term] for term in numbers])
    return ids[np.lexsort((-ids, -mass))]
