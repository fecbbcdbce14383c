"""Search vectors by sign bits, then by exact cosines, within the scope; pgvector's index replaces the sign bits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from memories.embedding import Vectors
from memories.models import EmbeddingModel
from memories.recall import binary_index, filters, pgvector
from memories.recall.binary_index import BinaryIndex
from memories.recall.filters import EVERYTHING, Where
from memories.recall.query_vector import QueryVector

RESCORED = 5
"""Vectors read exactly for each requested memory: of 20,000, 500 give a recall@10 of .998, 250 of .995."""
LEAST_RESCORED, MOST_RESCORED = 256, 4_000
MANY = 20_000
"""Above this, more are read, by the square root of the number: 1,100 of 100,000, 3,500 of a million."""
FOR_RECALL = 100
"""The `limit` of a recall."""
ENOUGH_INSIDE = 0.8
"""With a smaller share of the nearest within the scope, the search continues."""
LISTED = 20_000
"""A scope of at most this many rows, as estimated from the first search, is searched by its ids."""

Stored = list[tuple[int, bytes | memoryview]]
"""(memory id, its stored vector)."""


@dataclass(slots=True)
class Nearest:
    """Exact cosines by memory id. `outside`: beyond the scope; `broken`: unusable; `by`: pgvector, or numpy and why."""

    cosines: dict[int, float] = field(default_factory=dict)
    outside: int = 0
    broken: int = 0
    by: str = "numpy"

    def take(self, query: QueryVector, rows: Stored) -> None:
        size = query.model.dimensions * 4
        good = [row for row in rows if len(row[1]) == size]
        self.broken += len(rows) - len(good)
        if good:
            floats = np.frombuffer(b"".join([raw for _, raw in good]), dtype="<f4").reshape(len(good), -1)
            near = floats @ query.floats
            found = dict(zip([pk for pk, _ in good], near.tolist(), strict=True))
            for place in np.flatnonzero(~np.isfinite(near)):  # it would break an answer's JSON
                del found[good[place][0]]
            self.broken += len(good) - len(found)
            self.cosines |= found


class VectorSearch:
    """Searches for one query; reads the sign bits once."""

    def __init__(self, query: QueryVector) -> None:
        self.query = query
        self.off = pgvector.unusable(query.model)
        self._index: BinaryIndex | None = None
        self._distances: NDArray[np.uint16] = np.zeros(0, dtype=np.uint16)

    def nearest(self, scope: Where, limit: int) -> Nearest:
        """Return the exact cosines of at least the `limit` nearest within the scope, if it has so many."""
        if not self.off:
            rows, by = pgvector.nearest(self.query, scope)
            if rows is not None:
                found = Nearest(by=by)
                found.take(self.query, rows)
                return found
        else:
            by = self.off
        index = self._scanned()
        found = Nearest(by=f"{by}; {index.note}" if index.note else by)
        index.note = ""
        most = rescored(len(index), limit)
        places = index.nearest(self._distances, most)
        self._read(found, index.embeddings[places].tolist(), scope)
        share = len(found.cosines) / max(1, len(places))
        if scope == EVERYTHING and share < ENOUGH_INSIDE:
            index.live = 0  # most of it was deleted: compacted at the next search
        if scope == EVERYTHING or len(places) == len(index) or share >= ENOUGH_INSIDE:
            return found
        if share * len(index) <= LISTED:
            inside = filters.ids_in(scope, 2 * LISTED)
            places = index.nearest(self._distances, most, inside)
        else:
            places = index.nearest(self._distances, min(MOST_RESCORED, int(len(places) / share)))[len(places) :]
        outside = found.outside
        self._read(found, index.embeddings[places].tolist(), scope)
        found.outside = outside
        return found

    def estimates(self, ids: Sequence[int]) -> dict[int, float]:
        """Estimate the cosines of these memories without the database; empty with pgvector."""
        return self._scanned().estimates(self._distances, ids) if self.off else {}

    def _scanned(self) -> BinaryIndex:
        if self._index is None:
            self._index = binary_index.current(self.query.model, self.query.newest)
            self._distances = self._index.distances(self.query.floats)
        return self._index

    def _read(self, found: Nearest, embeddings: Sequence[int], scope: Where) -> None:
        before = len(found.cosines) + found.broken
        found.take(self.query, read_vectors(self.query.model, embeddings, scope, "id"))
        found.outside += max(0, len(embeddings) - (len(found.cosines) + found.broken - before))


def nearest(query: QueryVector, scope: Where, limit: int) -> Nearest:
    return VectorSearch(query).nearest(scope, limit)


def rescored(size: int, limit: int) -> int:
    """Return how many of `size` vectors are read exactly for the `limit` nearest."""
    wanted = max(LEAST_RESCORED, RESCORED * limit)
    return min(MOST_RESCORED, int(wanted * max(1.0, (size / MANY) ** 0.5)))


def cosines(query: QueryVector, ids: Iterable[int], scope: Where) -> dict[int, float]:
    """Return exact cosines of these memories, as far as they are within the scope and have a vector."""
    found = Nearest()
    found.take(query, read_vectors(query.model, list(ids), scope))
    return found.cosines


def between(model: EmbeddingModel, ids: Sequence[int], scope: Where) -> Vectors:
    """Return the cosines of memories with one another: (n, n) in their order, 0 without a vector."""
    whole = np.zeros((len(ids), model.dimensions), dtype=np.float32)
    places = {pk: place for place, pk in enumerate(ids)}
    for pk, raw in read_vectors(model, ids, scope):
        if len(raw) == model.dimensions * 4:
            whole[places[pk]] = np.frombuffer(raw, dtype="<f4")
    return whole @ whole.T


def read_vectors(model: EmbeddingModel, ids: Sequence[int], scope: Where, column: str = "memory_id") -> Stored:
    """Read the stored vectors of these memories (or embeddings, by `column` id) within the scope."""
    if not ids:
        return []
    source, given = filters.listed(ids)
    join, condition = "", ""
    params: tuple[Any, ...] = ()
    if scope != EVERYTHING:
        join, condition, params = "CROSS JOIN memories", f"AND memories.id = e.memory_id AND {scope.sql}", scope.params
    with connection.cursor() as cursor:
        cursor.execute(  # CROSS JOIN: SQLite keeps this order
            f"SELECT e.memory_id, e.vector FROM {source} CROSS JOIN embeddings e {join} "  # noqa: S608
            f"WHERE e.{column} = given.value AND e.model_id = %s {condition}",
            [given, model.pk, *params],
        )
        rows: list[Any] = cursor.fetchall()
    return rows
