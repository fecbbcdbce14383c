"""Vectors in little room: the sign of each dimension to find what is near (`signs.py`), a byte of each to order it.

Pure arrays, in memory or mapped from a file (`bitsfile.py`); knows no database and no scope. What is found here is
near, not exact: the floats stay in the database, and the few that matter are read there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memories.embedding import Vectors
from memories.recall.signs import FAR, Asked, Bits, Distances, asked, distances, fewest, pack, weighted, words_for

AT_FIRST = 4
"""So many times as many rows as are wanted pass by the number of bits that differ: the cheap measure is a rough one."""
FEW = 1_500
"""So many rows are put in order by their bytes at once: their signs would save nothing."""
ROUGH, ROUGHLY = 12_000, 1_000
"""Of at most so many rows the cheap measure alone says which are put in order by their bytes, at least so many: of the
ten nearest of 10,000 that loses no more than weighing the signs of four times as many, which takes longer."""
ROWS = 128
"""Rows whose bytes become floats at once."""
SPARSE = 32
"""Ids up to so many times the rows are looked up in a table of all numbers, a byte each."""
ROOM = 65_536
"""Such a table may be so much longer."""

Codes = NDArray[np.int8]
Ids = NDArray[np.int64]
Places = NDArray[np.intp]


def quantised(vectors: Vectors) -> tuple[Codes, Vectors]:
    """Each dimension as a byte, and by what a row's bytes are multiplied. A cosine moves by about 0.0005.

    A row that holds what is no number becomes nothing: it is near to no query.
    """
    broken = np.unique(np.nonzero(~np.isfinite(vectors))[0])
    if len(broken):
        vectors = vectors.copy()
        vectors[broken] = 0
    scales = np.abs(vectors).max(axis=1, initial=0.0) / 127
    divided = vectors / np.where(scales == 0, 1, scales)[:, None]
    return np.rint(divided).astype(np.int8), scales.astype(np.float32)


def _places(part: Part, memories: Ids) -> Places:
    """Where the rows of these memories are."""
    highest = max(int(part.memories.max()), int(memories.max(initial=0)))
    if highest > SPARSE * len(part) + ROOM:
        return np.flatnonzero(np.isin(part.memories, memories))
    table = np.zeros(highest + 1, dtype=np.bool_)
    table[memories] = True
    return np.flatnonzero(table[part.memories])


def _distances_inside(part: Part, wanted: Asked, inside: Ids) -> Distances:
    """The distances of these memories' rows; all others are far."""
    found = np.full(len(part), FAR, dtype=np.uint16)
    places = _places(part, inside)
    found[places] = distances(part.bits[places], wanted.signs, wanted.strong)
    return found


@dataclass(frozen=True)
class Part:
    """Rows that belong together: row ids, memory ids, `words` of 64 bits a row, bytes and their scale."""

    rows: Ids
    memories: Ids
    bits: Bits
    codes: Codes
    scales: Vectors

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def by_memory(self) -> Places | None:
        """The places in the order of the memories; None when that is their own. It is but for what was edited."""
        if (self.memories[1:] > self.memories[:-1]).all():
            return None
        return np.argsort(self.memories, kind="stable")  # next to nothing where little is out of its place

    def where(self, memories: Ids) -> tuple[NDArray[np.bool_], Places]:
        """(which of these memories have a row here, where those have it)."""
        order = self.by_memory
        places = np.searchsorted(self.memories, memories, sorter=order)
        places = np.minimum(places, len(self) - 1)
        if order is not None:
            places = order[places]
        there = self.memories[places] == memories
        return there, places[there]

    def only(self, keep: NDArray[np.bool_] | slice) -> Part:
        """Of a slice nothing is copied."""
        return Part(self.rows[keep], self.memories[keep], self.bits[keep], self.codes[keep], self.scales[keep])

    def put(self, start: int, new: Part) -> None:
        """Write `new` over the rows from `start` on."""
        for name in ("rows", "memories", "bits", "codes", "scales"):
            getattr(self, name)[start : start + len(new)] = getattr(new, name)

    def cosines(self, places: Places, query: Vectors) -> Vectors:
        """Of these rows with the query, off by about 0.0005."""
        found = np.empty(len(places), dtype=np.float32)
        floats = np.empty((min(ROWS, len(places)), self.codes.shape[1]), dtype=np.float32)
        for start in range(0, len(places), ROWS):
            some = places[start : start + ROWS]
            room = floats[: len(some)]
            room[:] = self.codes.take(some, axis=0)
            np.matmul(room, query, out=found[start : start + ROWS])
        return found * self.scales.take(places)

    def weighted(self, places: Places, wanted: Asked) -> Distances:
        return weighted(np.take(self.bits.T, places, axis=1).T, wanted)


def empty(dimensions: int) -> Part:
    return room(0, dimensions)


def room(rows: int, dimensions: int) -> Part:
    """Room for so many rows. What is not written yet takes no memory."""
    return Part(
        np.empty(rows, dtype=np.int64),
        np.empty(rows, dtype=np.int64),
        np.empty((rows, words_for(dimensions)), dtype=np.uint64, order="F"),
        np.empty((rows, dimensions), dtype=np.int8),
        np.empty(rows, dtype=np.float32),
    )


def part_of(rows: Ids, memories: Ids, vectors: Vectors) -> Part:
    """The sketches of these vectors. A word of all rows lies together: a scan goes through one after the other."""
    return Part(rows, memories, np.asfortranarray(pack(vectors)), *quantised(vectors))


def joined(parts: list[Part]) -> Part:
    """The rows of all these parts in one."""
    parts = [part for part in parts if len(part)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    found = room(sum(map(len, parts)), parts[0].codes.shape[1])
    for start, part in zip(accumulate(map(len, parts), initial=0), parts, strict=False):
        found.put(start, part)
    return found


@dataclass(frozen=True)
class Matrix:
    """One model's vectors: what the file holds, and behind it what came since. A `gone` place of the base is no more.

    The base is never copied: at a million rows it is half a gigabyte, which all processes of the host share.
    """

    base: Part
    tail: Part
    gone: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    @property
    def rows(self) -> Ids:
        """The row ids that are there."""
        there = self.base.rows[~self.gone] if len(self.gone) else self.base.rows
        return np.concatenate([there, self.tail.rows])

    @cached_property
    def last(self) -> int:
        return max((int(part.rows.max()) for part in (self.base, self.tail) if len(part)), default=0)

    def __len__(self) -> int:
        return len(self.base) + len(self.tail) - int(self.gone.sum())

    def __iter__(self) -> Iterator[Part]:
        yield from (part for part in (self.base, self.tail) if len(part))

    def after(self, row: int) -> set[int]:
        """The row ids above `row`."""
        return {number for part in self for number in part.rows[part.rows > row].tolist()}

    def plus(self, new: Part) -> Matrix:
        """With these; a memory that has a new vector loses its old one."""
        if not len(new):
            return self
        replaced = [
            np.isin(part.memories, new.memories) | np.isin(part.rows, new.rows) for part in (self.base, self.tail)
        ]
        tail = self.tail.only(~replaced[1]) if replaced[1].any() else self.tail
        return Matrix(self.base, joined([tail, new]), self._without(replaced[0]))

    def only(self, rows: Ids) -> Matrix:
        return Matrix(
            self.base, self.tail.only(np.isin(self.tail.rows, rows)), self._without(~np.isin(self.base.rows, rows))
        )

    def _without(self, more: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if len(self.gone):
            return self.gone | more
        return more if more.any() else self.gone

    def pages(self, rows: int) -> Iterator[Part]:
        """All rows that are there, at most so many at a time."""
        for part in self:
            gone = self.gone if part is self.base else self.gone[:0]
            for start in range(0, len(part), rows):
                page = part.only(slice(start, start + rows))
                yield page.only(~gone[start : start + rows]) if len(gone) else page

    def near(self, query: Vectors, most: int, inside: Ids | None = None) -> list[int]:
        """Memory ids of the `most` rows nearest to the query, those that pass by their signs best first by their bytes.

        `inside`: of these memories alone.
        """
        return Scan(self, query, inside).nearest(most)

    def cosines(self, query: Vectors, memories: Ids) -> Vectors:
        """Of these memories by their bytes, in their order, off by about 0.0005; NaN for one without a vector."""
        found = np.full(len(memories), np.nan, dtype=np.float32)
        for part in self:
            there, places = part.where(memories)
            if part is self.base and len(self.gone):
                there[there] = kept = ~self.gone[places]
                places = places[kept]
            found[there] = part.cosines(places, query)
        return found


@dataclass(frozen=True)
class Scan:
    """One look through a matrix for what is near to `query`, of which less and then more may be wanted.

    `inside`: among these memories alone.
    """

    matrix: Matrix
    query: Vectors
    inside: Ids | None = None

    def nearest(self, most: int) -> list[int]:
        """Memory ids of the `most` nearest rows, best first."""
        if not len(self.matrix):
            return []
        places = self._passed(most)
        order = np.argsort(-self._each(places, lambda part, own: part.cosines(own, self.query)), kind="stable")[:most]
        return list(self._each(places, lambda part, own: part.memories[own])[order].tolist())

    @cached_property
    def _asked(self) -> Asked:
        return asked(self.query)

    @cached_property
    def _distance(self) -> Distances:
        """Of all rows by their signs, through both parts. It is what takes the time."""
        wanted, matrix = self._asked, self.matrix
        if self.inside is None:
            found = np.concatenate([distances(part.bits, wanted.signs, wanted.strong) for part in matrix])
        else:
            found = np.concatenate([_distances_inside(part, wanted, self.inside) for part in matrix])
        if len(matrix.gone):
            found[: len(matrix.base)][matrix.gone] = FAR
        return found

    def _passed(self, most: int) -> Places:
        """Places of the rows whose signs are near enough for their bytes to be looked at, in their order."""
        base, gone = self.matrix.base, self.matrix.gone
        everything = len(base) + len(self.matrix.tail)
        if self.inside is None and everything <= max(most, FEW):
            there = np.ones(everything, dtype=np.bool_)
            there[: len(gone)] = ~gone
            return np.flatnonzero(there)
        rough = (everything if self.inside is None else len(self.inside)) <= ROUGH
        places = fewest(self._distance, max(most, ROUGHLY) if rough else AT_FIRST * most)
        places = places[self._distance[places] < FAR]
        if rough or len(places) <= most:
            return places
        return places[fewest(self._each(places, lambda part, own: part.weighted(own, self._asked)), most)]

    def _each(self, places: Places, ask: Callable[[Part, Places], NDArray[Any]]) -> NDArray[Any]:
        """What each part says of its own places, in one. `places` are in their order."""
        base, tail = self.matrix.base, self.matrix.tail
        middle = int(np.searchsorted(places, len(base)))
        own = ((base, places[:middle]), (tail, places[middle:] - len(base)))
        return np.concatenate([ask(part, there) for part, there in own if len(there)] or [np.zeros(0, np.int64)])
