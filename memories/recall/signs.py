"""Signs of vectors as bits: how far rows lie from a query by them, and which of these distances are the smallest.

Pure arithmetic on arrays; knows neither ids nor bytes (`sketches.py`), no database and no scope.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from memories.embedding import Vectors
from memories.recall import aside

CHUNK = 65_536
"""Rows compared at once: what is in the processor's cache."""
FAR = 65_535
"""A distance that no row has."""
PLANES = 3
"""Bits in which the query's own numbers weigh the signs of those."""
FULL_WEIGHT = 0.98
"""This share of the query's numbers lies below the one that weighs the most: a few great ones flatten no other."""
HALVED = 300_000
"""Rows from which half of them are compared aside: numpy lets other threads run while it counts."""

Bits = NDArray[np.uint64]
Distances = NDArray[np.uint16]


def words_for(dimensions: int) -> int:
    return -(-dimensions // 64)


def pack(vectors: Vectors) -> Bits:
    """Signs of vectors (n, dimensions) as (n, words) of 64 bits; what a word has left over is 0 in all."""
    packed = np.packbits(vectors > 0, axis=1)
    wide = np.zeros((len(vectors), words_for(vectors.shape[1]) * 8), dtype=np.uint8)
    wide[:, : packed.shape[1]] = packed
    return wide.view(np.uint64)


def distances(bits: Bits, query: Bits, over: Bits | None = None) -> Distances:
    """How many bits of each row differ from the query's, of all or of those that are set in `over`."""
    found = np.empty(len(bits), dtype=np.uint16)
    if len(bits) < HALVED:
        _compare(bits, query, over, found)
        return found
    middle = len(bits) // 2
    other = aside.begin(partial(_compare, bits[middle:], query, over, found[middle:]))
    _compare(bits[:middle], query, over, found[:middle])
    other()
    return found


def _compare(bits: Bits, query: Bits, over: Bits | None, found: Distances) -> None:
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


def weighted(bits: Bits, wanted: Asked) -> Distances:
    """Like `distances`, but a sign counts by how much of its dimension the query has."""
    words = np.ascontiguousarray(bits.T) ^ wanted.signs[:, None]
    found = np.zeros(len(bits), dtype=np.uint16)
    for place, plane in enumerate(wanted.planes):
        counted = np.bitwise_count(words & plane[:, None])
        found += np.add.reduce(counted, axis=0, dtype=np.uint16) << place
    return found


def fewest(distance: Distances, most: int) -> NDArray[np.intp]:
    """Places of the `most` rows with the smallest distance, in the order of the rows; of equal ones the first."""
    if len(distance) <= most:
        return np.arange(len(distance))
    edge = np.partition(distance, most - 1)[most - 1]
    places = np.flatnonzero(distance <= edge)
    if len(places) > most:
        on_it = np.flatnonzero(distance[places] == edge)
        places = np.delete(places, on_it[most - len(places) :])
    return places
