"""Search vectors by sign bits, then by exact cosines, within the scope; pgvector's index replaces the sign bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.db import connection

from memories.embedding import Vectors
from memories.models import EmbeddingModel
from memories.recall import binary_index, filters, pgvector
from memories.recall.binary_index import BinaryIndex, Places
from memories.recall.filters import EVERYTHING, Where
from memories.recall.query_vector import QueryVector

RESCORED = 5
"""Vectors compared with the query's floats for each requested memory: of 20,000, 500 give a recall@10 of .998."""
LEAST_RESCORED, MOST_RESCORED = 256, 4_000
MANY = 20_000
"""Above this, more are compared, by the square root of the number: 1,100 of 100,000, 3,500 of a million."""
READ = 0.4
"""Share of the compared that is read exactly, those with the best estimates: recall@10 is less by .003 than of all."""
WIDE = 250
"""Whole rows that are read at once: they take six times as long as vectors alone, and of more few are candidates."""
FOR_RECALL = 100
"""The `limit` of a recall."""
ENOUGH_INSIDE = 0.8
"""With a smaller share of the nearest within the scope, the search continues."""
LISTED = 20_000
"""A scope of at most this many rows, as estimated from the first search, is searched by its ids."""
LISTED_FIRST = 5_000
"""With at most this many vectors in all, any scope is: listing its ids takes less than reading what lies outside."""

Stored = Sequence[tuple[int, bytes | memoryview]]
"""(memory id, its stored vector)."""
Reader = Callable[[Sequence[int]], Stored]
"""Reads the vectors of memories by their ids, as far as they are within the scope and have one."""


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
            by_id = dict(zip([pk for pk, _ in good], near.tolist(), strict=True))
            for place in np.flatnonzero(~np.isfinite(near)):  # it would break an answer's JSON
                del by_id[good[place][0]]
            self.broken += len(good) - len(by_id)
            self.cosines |= by_id


class VectorSearch:
    """Searches for one query; looks once whether the sign bits are those of the database."""

    def __init__(self, query: QueryVector) -> None:
        self.query = query
        self.off = pgvector.unusable(query.model)
        self._index: BinaryIndex | None = None

    def nearest(self, scope: Where, limit: int, read: Reader | None = None) -> Nearest:
        """Return the exact cosines of at least the `limit` nearest within the scope, if it has so many.

        `read` replaces `read_vectors`, for a caller that reads more of each row, of up to WIDE of them.
        """
        if not self.off:
            rows, by = pgvector.nearest(self.query, scope)
            if rows is not None:
                result = Nearest(by=by)
                result.take(self.query, rows)
                return result
        else:
            by = self.off
        index = self._current()
        result = Nearest(by=f"{by}; {index.note}" if index.note else by)
        index.note = ""
        distances, many = index.distances(self.query.floats), rescored(len(index), limit)

        def take(places: Places) -> int:
            best = places[np.argsort(-index.cosines(self.query.floats, places), kind="stable")]
            most = int(READ * max(many, len(places)))
            if read and most <= WIDE:  # a vector that was replaced may be there beside the new one
                ids = list(dict.fromkeys(index.memories[best].tolist()))[:most]
                rows = read(ids)
            else:
                ids = index.embeddings[best[:most]].tolist()
                rows = read_vectors(self.query.model, ids, scope, "id")
            result.take(self.query, rows)
            return len(ids) - len(rows)

        places = index.nearest(distances, many)
        if scope != EVERYTHING and len(index) <= LISTED_FIRST:
            inside = filters.ids_in(scope)
            result.outside = len(set(index.memories[places].tolist()).difference(inside))
            take(index.nearest(distances, many, inside))
            return result
        result.outside = take(places)
        share = len(result.cosines) / max(1, result.outside + len(result.cosines))
        if scope == EVERYTHING and share < ENOUGH_INSIDE:
            index.live = 0  # most of it was deleted: compacted at the next search
        if scope == EVERYTHING or share >= ENOUGH_INSIDE:
            return result
        if share * len(index) <= LISTED:
            take(index.nearest(distances, many, filters.ids_in(scope, 2 * LISTED)))
        else:
            take(index.nearest(distances, min(MOST_RESCORED, int(many / share))))
        return result

    def estimates(self, ids: Sequence[int]) -> dict[int, float]:
        """Estimate the cosines of these memories without the database; empty with pgvector."""
        return self._current().estimates(self.query.floats, ids) if self.off else {}

    def _current(self) -> BinaryIndex:
        if self._index is None:
            self._index = binary_index.current(self.query.model, self.query.newest, self.query.content_hash)
        return self._index


def nearest(query: QueryVector, scope: Where, limit: int) -> Nearest:
    return VectorSearch(query).nearest(scope, limit)


def rescored(size: int, limit: int) -> int:
    """Return how many of `size` vectors are compared by their signs with the query's floats for the `limit` nearest."""
    wanted = max(LEAST_RESCORED, RESCORED * limit)
    return min(MOST_RESCORED, int(wanted * max(1.0, (size / MANY) ** 0.5)))


def cosines(query: QueryVector, ids: Iterable[int], scope: Where) -> dict[int, float]:
    """Return exact cosines of these memories, as far as they are within the scope and have a vector."""
    result = Nearest()
    result.take(query, read_vectors(query.model, list(ids), scope))
    return result.cosines


def between(stored: Sequence[bytes | memoryview | None], dimensions: int) -> Vectors:
    """Return the cosines of stored vectors with one another: (n, n) in their order, 0 where there is none."""
    whole = np.zeros((len(stored), dimensions), dtype=np.float32)
    for place, raw in enumerate(stored):
        if raw is not None and len(raw) == dimensions * 4:
            whole[place] = np.frombuffer(raw, dtype="<f4")
    return whole @ whole.T


def read_vectors(model: EmbeddingModel, ids: Sequence[int], scope: Where, column: str = "memory_id") -> Stored:
    """Read the stored vectors of these memories (or embeddings, by `column` id) within the scope."""
    if not ids:
        return []
    source, param = filters.listed(ids)
    join, condition = "", ""
    params: tuple[Any, ...] = ()
    if scope != EVERYTHING:
        join, condition, params = "CROSS JOIN memories", f"AND memories.id = e.memory_id AND {scope.sql}", scope.params
    with connection.cursor() as cursor:
        cursor.execute(  # CROSS JOIN: SQLite keeps this order
            f"SELECT e.memory_id, e.vector FROM {source} CROSS JOIN embeddings e {join} "  # noqa: S608
            f"WHERE e.{column} = given.value AND e.model_id = %s {condition}",
            [param, model.pk, *params],
        )
        rows: list[Any] = cursor.fetchall()
    return rows
