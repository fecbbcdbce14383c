"""Vectors in little room: the sign of each dimension to find what is near, and a byte of each to order it.

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

CHUNK = 65_536
"""Rows compared at once: what is in the processor's cache."""
FAR = 65_535
"""A distance that no row has."""
AT_FIRST = 4
"""So many times as many rows as are wanted pass by the number of bits that differ: the cheap measure is a rough one."""
PLANES = 3
"""Bits in which the query's own numbers weigh the signs of those."""
FULL_WEIGHT = 0.98
"""This share of the query's numbers lies below the one that weighs the most: a few great ones flatten no other."""
ROWS = 256
"""Rows whose bytes become floats at once."""
SPARSE = 32
"""Ids up to so many times the rows are looked up in a table of all numbers, a byte each."""

Bits = NDArray[np.uint64]
Codes = NDArray[np.int8]
Ids = NDArray[np.int64]


def words_for(dimensions: int) -> int:
    return -(-dimensions // 64)


def pack(vectors: Vectors) -> Bits:
    """Signs of vectors (n, dimensions) as (n, words) of 64 bits; what a word has left over is 0 in all."""
    packed = np.packbits(vectors > 0, axis=1)
    wide = np.zeros((len(vectors), words_for(vectors.shape[1]) * 8), dtype=np.uint8)
    wide[:, : packed.shape[1]] = packed
    return wide.view(np.uint64)


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


def distances(bits: Bits, query: Bits, over: Bits | None = None) -> NDArray[np.uint16]:
    """How many bits of each row differ from the query's, of all or of those that are set in `over`."""
    found = np.empty(len(bits), dtype=np.uint16)
    size = min(CHUNK, len(bits))
    differing, counted, summed = np.empty(size, np.uint64), np.empty(size, np.uint8), np.empty(size, np.uint8)
    for start in range(0, len(bits), CHUNK):
        part = found[start : start + CHUNK]
        differ, count, total = (room[: len(part)] for room in (differing, counted, summed))
        part[:] = 0
        for first in range(0, len(query), 3):  # what differs in three words fits into a byte
            total[:] = 0
            for word in range(first, min(first + 3, len(query))):
                np.bitwise_xor(bits[start : start + CHUNK, word], query[word], out=differ)
                if over is not None:
                    np.bitwise_and(differ, over[word], out=differ)
                np.bitwise_count(differ, out=count)
                np.add(total, count, out=total)
            np.add(part, total, out=part)
    return found


@dataclass(frozen=True, slots=True)
class Asked:
    """A query's signs, and how much of each dimension it has: 0 to 7, a bit of that in each of the `planes`."""

    signs: Bits
    planes: Bits

    @property
    def strong(self) -> Bits:
        """The dimensions whose signs tell near from far: of those that the query has little of, they say nothing."""
        return np.asarray(self.planes[1] | self.planes[2])


def asked(query: Vectors) -> Asked:
    size = np.abs(query)
    place = int(FULL_WEIGHT * len(size))
    heaviest = 2**PLANES - 1
    most = float(np.partition(size, place)[place]) or 1.0
    weights = np.minimum(np.rint(size * (heaviest / most)), heaviest).astype(np.uint8)
    planes = weights >> np.arange(PLANES, dtype=np.uint8)[:, None] & 1
    packed = pack(np.concatenate([query[None, :], planes]))
    return Asked(packed[0], packed[1:])


def weighted(bits: Bits, wanted: Asked) -> NDArray[np.uint16]:
    """Like `distances`, but a sign counts by how much of its dimension the query has."""
    words = np.ascontiguousarray(bits.T) ^ wanted.signs[:, None]
    found = np.zeros(len(bits), dtype=np.uint16)
    for place, plane in enumerate(wanted.planes):
        counted = np.bitwise_count(words & plane[:, None])
        found += np.add.reduce(counted, axis=0, dtype=np.uint16) << place
    return found


def _places(part: Part, memories: Ids) -> NDArray[np.intp]:
    """Where the rows of these memories are."""
    highest = max(int(part.memories.max()), int(memories.max(initial=0)))
    if highest > SPARSE * len(part) + CHUNK:
        return np.flatnonzero(np.isin(part.memories, memories))
    table = np.zeros(highest + 1, dtype=np.bool_)
    table[memories] = True
    return np.flatnonzero(table[part.memories])


def _distances_inside(part: Part, wanted: Asked, inside: Ids) -> NDArray[np.uint16]:
    """The distances of these memories' rows; all others are far."""
    found = np.full(len(part), FAR, dtype=np.uint16)
    places = _places(part, inside)
    found[places] = distances(part.bits[places], wanted.signs, wanted.strong)
    return found


def fewest(distance: NDArray[np.uint16], most: int) -> NDArray[np.intp]:
    """Places of the `most` rows with the smallest distance, in no order."""
    if len(distance) <= most:
        return np.arange(len(distance))
    edge = np.partition(distance, most - 1)[most - 1]
    below = np.flatnonzero(distance < edge)
    return np.concatenate([below, np.flatnonzero(distance == edge)[: most - len(below)]])


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that belong together: row ids, memory ids, `words` of 64 bits a row, bytes and their scale."""

    rows: Ids
    memories: Ids
    bits: Bits
    codes: Codes
    scales: Vectors

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, keep: NDArray[np.bool_] | slice) -> Part:
        """Of a slice nothing is copied."""
        return Part(self.rows[keep], self.memories[keep], self.bits[keep], self.codes[keep], self.scales[keep])

    def put(self, start: int, new: Part) -> None:
        """Write `new` over the rows from `start` on."""
        for name in ("rows", "memories", "bits", "codes", "scales"):
            getattr(self, name)[start : start + len(new)] = getattr(new, name)

    def cosines(self, places: NDArray[np.intp], query: Vectors) -> Vectors:
        """Of these rows with the query, off by about 0.0005."""
        found = np.empty(len(places), dtype=np.float32)
        floats = np.empty((min(ROWS, len(places)), self.codes.shape[1]), dtype=np.float32)
        for start in range(0, len(places), ROWS):
            some = places[start : start + ROWS]
            room = floats[: len(some)]
            room[:] = self.codes[some]
            np.matmul(room, query, out=found[start : start + ROWS])
        return found * self.scales[places]

    def weighted(self, places: NDArray[np.intp], wanted: Asked) -> NDArray[np.uint16]:
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
        """Memory ids of the `most` rows nearest to the query by their signs, best first by their bytes.

        `inside`: of these memories alone.
        """
        wanted = asked(query)
        parts = list(self)
        if not parts:
            return []
        if inside is None:
            distance = np.concatenate([distances(part.bits, wanted.signs, wanted.strong) for part in parts])
        else:
            distance = np.concatenate([_distances_inside(part, wanted, inside) for part in parts])
        if len(self.gone):
            distance[: len(self.base)][self.gone] = FAR
        places = fewest(distance, AT_FIRST * most)
        places = np.sort(places[distance[places] < FAR])
        split = len(parts[0])

        def of_each(ask: Callable[[Part, NDArray[np.intp]], NDArray[Any]]) -> NDArray[Any]:
            """What each part says of its own places, in one."""
            middle = int(np.searchsorted(places, split))
            own = (places[:middle], places[middle:] - split)
            return np.concatenate([ask(part, there) for part, there in zip(parts, own, strict=False)])

        if len(places) > most:
            places = np.sort(places[fewest(of_each(lambda part, there: part.weighted(there, wanted)), most)])
        order = np.argsort(-of_each(lambda part, there: part.cosines(there, query)), kind="stable")
        return list(dict.fromkeys(of_each(lambda part, there: part.memories[there])[order].tolist()))

    def cosines(self, query: Vectors, memories: Ids) -> Vectors:
        """Of these memories by their bytes, in their order, off by about 0.0005; NaN for one without a vector."""
        order = np.argsort(memories)
        found = np.full(len(memories), np.nan, dtype=np.float32)
        for part in self if len(memories) else ():
            places = _places(part, memories)
            if part is self.base and len(self.gone):
                places = places[~self.gone[places]]
            where = order[np.searchsorted(memories, part.memories[places], sorter=order)]
            found[where] = part.cosines(places, query)
        return found
