"""The meaning's side of a recall: sketches of all vectors in memory, the best of them rescored from the stored floats.

The sketches follow the table of embeddings by a change token and are shared by the processes of a host through a
mapped file (`bitsfile.py`). Scope is asked of the database before anything is returned.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from django.db import connection

from memories.embedding import Vectors
from memories.models import EmbeddingModel
from memories.recall import bitsfile, pgvector, scope, signs, sketches
from memories.recall.scope import Where
from memories.recall.sketches import Matrix, Part, Scan

RESCORED, RESCORED_OF_MANY = 700, 4_000
"""How many of the nearest by their signs are ordered by their bytes: at least, and at most."""
RESCORED_BY = 5.0
"""Between them, so many times the root of how many there are: recall@10 is .995 and more so (docs/recall.md)."""
WANTED = 100
"""Memories within the scope whose floats are read, unless told."""
AT_FIRST = 1.3
"""Of the nearest so many times as many are looked up at first: some stand in another order by their bytes, or in
another scope."""
FEW_INSIDE = 0.65
"""A smaller share of the first ones within the scope than this, and more are ordered by their bytes: the nearest of a
tenth of all are among the hundred nearest of all, and these pass by their signs as the ten do when there are three
times as many. So it goes by the root of the share."""
DEEPEST = 16
"""No smaller share than one in so many is reckoned with; MOST_LOOKED rows are looked up at most."""
MOST_LOOKED = 2_000
ENOUGH = 50
"""Fewer of the nearest inside the scope than this, and the scope itself is searched."""
LOOK_BACK = 1_000
"""Ids below the last one that are looked at again: PostgreSQL commits in another order than it numbers."""
RECOUNT = 30.0
"""Seconds after which the rows are counted, to let go of what was deleted."""
SLOWER = 20_000
"""Rows from which they are counted more seldom, in proportion: counting reads an index through."""
READ = 2_500
"""Vectors read at once: some 20 MB while their sketches are made."""


Stored = Iterable[tuple[int, bytes | memoryview | None]]
"""(memory id, its vector's floats as they are stored)."""


@dataclass(slots=True)
class Near:
    """What meaning found: cosine by memory id. `outside` of the nearest lay in another scope, `broken` had no use.

    `by` is who searched: pgvector (within the scope alone, so nothing is outside), or numpy and why.
    """

    cosines: dict[int, float] = field(default_factory=dict)
    outside: int = 0
    broken: int = 0
    by: str = "numpy"


@dataclass(slots=True)
class _Kept:
    matrix: Matrix
    counted_at: float = 0.0


_lock = threading.Lock()
_kept: dict[tuple[int, str], _Kept] = {}


def matrix(model: EmbeddingModel, newest: int | None = None) -> Matrix:
    """The sketches as the database has them now. What an open transaction sees is not kept: it may be undone.

    `newest` is the highest id of the model's rows, where the caller has just asked for it (0: there is none).
    """
    key = (model.pk, model.created_at.isoformat())
    with _lock:
        kept = _kept.get(key)
        if kept is None:
            kept = _Kept(_from_file(model))
        now = _refreshed(kept, model, newest)
        if not connection.in_atomic_block:
            _kept.clear()  # of another model nothing is asked any more
            _kept[key] = kept
            if now is not kept.matrix and bitsfile.worth_writing(model, len(now)):
                bitsfile.write(model, now)
                now = _from_file(model, now)
            kept.matrix = now
    return now


def forget() -> None:
    """Let go of all sketches in this process: for a start from nothing."""
    with _lock:
        _kept.clear()


def _from_file(model: EmbeddingModel, otherwise: Matrix | None = None) -> Matrix:
    found = bitsfile.read(model, signs.words_for(model.dimensions))
    nothing = sketches.empty(model.dimensions)
    return Matrix(found, nothing) if found else otherwise or Matrix(nothing, nothing)


def _newest(model: EmbeddingModel) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM embeddings WHERE model_id = %s ORDER BY id DESC LIMIT 1", [model.pk])
        found = cursor.fetchone()
    return found[0] if found else 0


def _refreshed(kept: _Kept, model: EmbeddingModel, newest: int | None) -> Matrix:
    """The change token: the highest id says whether something is new, the count now and then what is gone."""
    last = _newest(model) if newest is None else newest
    nothing = sketches.empty(model.dimensions)
    if not last:
        return Matrix(nothing, nothing)
    now = kept.matrix
    if last != now.last:
        back = max(0, now.last - LOOK_BACK)
        now = now.plus(_read_new(model, back, now.after(back)))
    if kept.counted_at == 0.0 or time.monotonic() - kept.counted_at > RECOUNT * max(1.0, len(now) / SLOWER):
        kept.counted_at = time.monotonic()
        if _count(model) != len(now):
            with connection.cursor() as cursor:
                cursor.execute("SELECT id FROM embeddings WHERE model_id = %s", [model.pk])
                there = np.fromiter((row for (row,) in cursor.fetchall()), dtype=np.int64)
            now = now.only(there)
            if len(now) < len(there):
                now = Matrix(nothing, nothing).plus(_read(model, 0, set()))
    return now


def _read_new(model: EmbeddingModel, after: int, known: set[int]) -> Part:
    """The vectors past `after` that are not `known`: their ids come first, for most often one of a thousand is new."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM embeddings WHERE model_id = %s AND id > %s ORDER BY id LIMIT %s",
            [model.pk, after, READ + len(known)],
        )
        new = [row for (row,) in cursor.fetchall() if row not in known]
    return _read(model, new[0] - 1, known) if new else sketches.empty(model.dimensions)


def _read(model: EmbeddingModel, after: int, known: set[int]) -> Part:
    """The vectors past `after`, page by page; one of another length has no place here."""
    size = model.dimensions * 4
    page = _page(model, after)
    room = sketches.room(len(page) if len(page) < READ else _count(model, after), model.dimensions)
    filled = 0
    late = []
    while page:
        good = [row for row in page if row[0] not in known and len(row[2]) == size]
        stored = np.frombuffer(b"".join(raw for _, _, raw in good), dtype="<f4")
        rows, memories = (np.array([row[column] for row in good], dtype=np.int64) for column in (0, 1))
        new = sketches.part_of(rows, memories, stored.reshape(len(good), model.dimensions))
        if filled + len(new) <= len(room):
            room.put(filled, new)
            filled += len(new)
        else:  # stored since they were counted
            late.append(new)
        page = _page(model, page[-1][0]) if len(page) == READ else []
    return sketches.joined([room.only(slice(filled)), *late])


def _page(model: EmbeddingModel, after: int) -> list[tuple[int, int, bytes | memoryview]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, memory_id, vector FROM embeddings WHERE model_id = %s AND id > %s ORDER BY id LIMIT %s",
            [model.pk, after, READ],
        )
        return list(cursor.fetchall())


def _count(model: EmbeddingModel, after: int = 0) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM embeddings WHERE model_id = %s AND id > %s", [model.pk, after])
        return int(cursor.fetchone()[0])


@dataclass(slots=True)
class Search:
    """One search for what is near to `query` (one normalised vector) within `visible`. `newest`: see `matrix`."""

    model: EmbeddingModel
    query: Vectors
    visible: Where
    newest: int | None = None
    ahead: Ahead | None = None
    """What was found before this search began."""
    _sketches: Matrix | None = field(default=None, init=False)
    """As they were when this search first asked for them."""

    def about(self, ids: Sequence[int]) -> Vectors | None:
        """Cosines of these memories, off by about 0.0005, in their order and NaN for one without a vector.

        They are not asked of the database. None where pgvector answers, and no process has the vectors.
        """
        if not pgvector.state(self.model).reason:
            return None
        return self._matrix().cosines(self.query, np.array(ids, dtype=np.int64))

    def near(
        self,
        beside: Iterable[int] = (),
        read: Callable[[Sequence[int]], Stored] | None = None,
        wanted: int = WANTED,
    ) -> Near:
        """Exact cosines of the `wanted` nearest memories; those of the memories in `beside` are read along.

        `read` gives the stored vectors of memories, as far as they are visible: for who reads more of a memory in
        the same statement.
        """
        beside = list(beside)
        served = pgvector.nearest(self.model, self.query, self.visible, beside)
        found = Near(by=served.by)
        if served.rows is not None:
            _take(found, self.model, self.query, served.rows)
            return found
        read = read or (lambda ids: stored(self.model, ids, self.visible))
        everything = self._matrix()
        most = rescored(everything)
        ahead = self.ahead or Ahead.of(everything, self.query)
        near = ahead.near

        def take(into: Near, ids: Sequence[int]) -> None:
            _take(into, self.model, self.query, read(ids))

        def deeper(share: float) -> list[int]:
            depth = int(most / math.sqrt(max(share, 1 / DEEPEST)))
            return ahead.scan.nearest(depth) if len(near) < len(everything) else near

        inside = _nearest_inside(found, near, take, wanted, beside, deeper)
        if inside < ENOUGH and len(near) < len(everything):
            # A narrow scope: the mask comes first, then the scan.
            there = np.fromiter(scope.ids(self.visible), dtype=np.int64)
            again = Near(dict(found.cosines), broken=found.broken)
            _nearest_inside(again, everything.near(self.query, RESCORED, there), take, wanted)
            found.cosines, found.broken = again.cosines, again.broken
        return found

    def _matrix(self) -> Matrix:
        if self._sketches is None:
            self._sketches = self.ahead.scan.matrix if self.ahead else matrix(self.model, self.newest)
        return self._sketches


@dataclass(frozen=True, slots=True)
class Ahead:
    """The nearest of all sketches to a query, whatever its scope: found while something else is read."""

    scan: Scan
    near: list[int]

    @classmethod
    def of(cls, sketches: Matrix, query: Vectors, most: int | None = None) -> Ahead:
        """The `most` nearest, else as many as a search orders by their bytes. Asks no database."""
        scan = Scan(sketches, query)
        return cls(scan, scan.nearest(most or rescored(sketches)))


def ready(model: EmbeddingModel, newest: int | None) -> Matrix | None:
    """The sketches by which an `Ahead` can be made; None where pgvector answers, and no process has them."""
    return matrix(model, newest) if pgvector.state(model).reason else None


def rescored(everything: Matrix) -> int:
    """How many of the nearest by their signs are ordered by their bytes."""
    return min(RESCORED_OF_MANY, max(RESCORED, int(RESCORED_BY * math.sqrt(len(everything)))))


def search(model: EmbeddingModel, query: Vectors, visible: Where) -> Near:
    """Exact cosines of the memories nearest to `query` within `visible`."""
    return Search(model, query, visible).near()


def _nearest_inside(
    found: Near,
    near: Sequence[int],
    take: Callable[[Near, Sequence[int]], None],
    wanted: int,
    beside: Iterable[int] = (),
    deeper: Callable[[float], Sequence[int]] | None = None,
) -> int:
    """Look up the nearest, best first, until `wanted` of them are within the scope. Returns how many are.

    `take` puts the cosines of those within it into `found`. `deeper` gives a longer list, best first, by the share
    of those looked up that the scope holds.
    """
    inside, looked = 0, 0
    step = first = int(AT_FIRST * wanted)
    more = list(beside)
    while inside < wanted and looked < MOST_LOOKED and (looked < len(near) or more):
        some = near[looked : looked + step]
        looked += len(some)
        broken = found.broken
        take(found, [*dict.fromkeys((*some, *more))])
        there = sum(pk in found.cosines for pk in some)
        found.outside += max(0, len(some) - there - (found.broken - broken))
        inside, more = inside + there, []
        if deeper is not None and looked and inside < FEW_INSIDE * looked:
            known = set(near[:looked])
            near = [*near[:looked], *(pk for pk in deeper(inside / looked) if pk not in known)]
            deeper = None
        # As many more as the scope's share of those before promises to need.
        step = max(first, int(1.5 * (wanted - inside) * looked / max(1, inside)))
    return inside


def cosines(model: EmbeddingModel, query: Vectors, ids: Sequence[int], visible: Where) -> dict[int, float]:
    """Exact cosines of these memories with `query`, as far as they are visible and have a vector."""
    found = Near()
    _take(found, model, query, stored(model, ids, visible))
    return found.cosines


def between(vectors: Sequence[bytes | memoryview | None], dimensions: int) -> Vectors:
    """Cosines of stored vectors with one another: (n, n) in their order, 0 where one is none."""
    whole = np.zeros((len(vectors), dimensions), dtype=np.float32)
    for place, raw in enumerate(vectors):
        if raw is not None and len(raw) == dimensions * 4:
            whole[place] = np.frombuffer(raw, dtype="<f4")
    return whole @ whole.T


def stored(model: EmbeddingModel, ids: Sequence[int], visible: Where) -> Stored:
    """The stored vectors of these memories, as far as they are visible and have one."""
    if not ids:
        return []
    there, listed = scope.listed(ids)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT e.memory_id, e.vector FROM embeddings e JOIN memories ON memories.id = e.memory_id "  # noqa: S608
            f"WHERE e.memory_id IN ({there}) AND e.model_id = %s AND {visible.sql}",
            [listed, model.pk, *visible.params],
        )
        return list(cursor.fetchall())


def _take(found: Near, model: EmbeddingModel, query: Vectors, rows: Stored) -> None:
    """Put the cosines of these vectors into `found`."""
    size = model.dimensions * 4
    good = []
    for pk, raw in rows:
        if raw is None:
            continue
        if len(raw) == size:
            good.append((pk, raw))
        else:
            found.broken += 1
    if good:
        floats = np.frombuffer(b"".join(raw for _, raw in good), dtype="<f4").reshape(len(good), model.dimensions)
        near = floats @ query
        found.cosines.update(zip((pk for pk, _ in good), near.tolist(), strict=True))
        for place in np.flatnonzero(~np.isfinite(near)):  # no number: it would rank, and break an answer's JSON
            del found.cosines[good[place][0]]
            found.broken += 1
