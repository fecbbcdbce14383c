"""The meaning's side of a recall: sign bits of all vectors in memory, the best of them rescored from the stored floats.

The bits follow the table of embeddings by a change token and are shared by the processes of a host through a
mapped file (`bitsfile.py`). Scope is asked of the database before anything is returned.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from memories.embedding import Vectors
from memories.models import Embedding, EmbeddingModel
from memories.recall import bitsfile, scope
from memories.recall.scope import Where

RESCORED = 1_000
RESCORED_OF_MANY = 4_000
MANY = 500_000
"""How many of the nearest by sign bits are rescored exactly: recall@10 is .993 and .995 so (docs/recall.md)."""
ENOUGH = 50
"""Fewer of the nearest inside the scope than this, and the scope itself is searched."""
CHUNK = 65_536
"""Rows compared at once: what is in the processor's cache."""
LOOK_BACK = 1_000
"""Ids below the last one that are looked at again: PostgreSQL commits in another order than it numbers."""
RECOUNT = 30.0
"""Seconds after which the rows are counted, to let go of what was deleted."""
READ = 20_000

Bits = NDArray[np.uint64]
Ids = NDArray[np.int64]


@dataclass(slots=True)
class Near:
    """What meaning found: cosine by memory id. `outside` of the nearest lay in another scope, `broken` had no use."""

    cosines: dict[int, float] = field(default_factory=dict)
    outside: int = 0
    broken: int = 0


@dataclass(frozen=True, slots=True)
class Matrix:
    """Sign bits of one model's vectors: row ids, memory ids, and `words` of 64 bits a row."""

    rows: Ids
    memories: Ids
    bits: Bits

    @property
    def last(self) -> int:
        return int(self.rows.max()) if len(self.rows) else 0

    def plus(self, rows: Ids, memories: Ids, bits: Bits) -> Matrix:
        """With these; a memory that has a new vector loses its old one."""
        if not len(rows):
            return self
        keep = ~(np.isin(self.memories, memories) | np.isin(self.rows, rows))
        if keep.all():
            kept = (self.rows, self.memories, self.bits)
        else:
            kept = (self.rows[keep], self.memories[keep], self.bits[keep])
        return Matrix(
            np.concatenate([kept[0], rows]), np.concatenate([kept[1], memories]), np.concatenate([kept[2], bits])
        )

    def only(self, rows: Ids) -> Matrix:
        keep = np.isin(self.rows, rows)
        return Matrix(self.rows[keep], self.memories[keep], self.bits[keep])


@dataclass(slots=True)
class _Kept:
    matrix: Matrix
    counted_at: float = 0.0


_lock = threading.Lock()
_kept: dict[tuple[int, str], _Kept] = {}


def words_for(dimensions: int) -> int:
    return -(-dimensions // 64)


def pack(vectors: Vectors) -> Bits:
    """Signs of vectors (n, dimensions) as (n, words) of 64 bits; what a word has left over is 0 in all."""
    packed = np.packbits(vectors > 0, axis=1)
    wide = np.zeros((len(vectors), words_for(vectors.shape[1]) * 8), dtype=np.uint8)
    wide[:, : packed.shape[1]] = packed
    return wide.view(np.uint64)


def matrix(model: EmbeddingModel) -> Matrix:
    """The bits as the database has them now. What an open transaction sees is not kept: it may be undone."""
    key = (model.pk, f"{model.created_at.timestamp():.6f}")
    with _lock:
        kept = _kept.get(key)
        if kept is None:
            kept = _Kept(_from_file(model))
        now = _refreshed(kept, model)
        if not connection.in_atomic_block:
            _kept.clear()  # of another model nothing is asked any more
            _kept[key] = kept
            kept.matrix = now
            if bitsfile.worth_writing(model, len(now.rows)):
                bitsfile.write(model, now.rows, now.memories, now.bits)
    return now


def forget() -> None:
    """Let go of all bits in this process: for a start from nothing."""
    with _lock:
        _kept.clear()


def _from_file(model: EmbeddingModel) -> Matrix:
    found = bitsfile.read(model, words_for(model.dimensions))
    return Matrix(*found) if found else _empty(model)


def _empty(model: EmbeddingModel) -> Matrix:
    none = np.zeros(0, dtype=np.int64)
    return Matrix(none, none, np.zeros((0, words_for(model.dimensions)), dtype=np.uint64))


def _refreshed(kept: _Kept, model: EmbeddingModel) -> Matrix:
    """The change token: the highest id says whether something is new, the count now and then what is gone."""
    table = Embedding.objects.filter(model=model)
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM embeddings WHERE model_id = %s ORDER BY id DESC LIMIT 1", [model.pk])
        newest = cursor.fetchone()
    if newest is None:
        return _empty(model)
    (last,) = newest
    now = kept.matrix
    if last != now.last:
        now = now.plus(
            *_read(model, max(0, now.last - LOOK_BACK), set(now.rows[now.rows > now.last - LOOK_BACK].tolist()))
        )
    if time.monotonic() - kept.counted_at > RECOUNT or kept.counted_at == 0.0:
        kept.counted_at = time.monotonic()
        if table.count() != len(now.rows):
            there = np.fromiter(table.values_list("id", flat=True).iterator(), dtype=np.int64)
            now = now.only(there)
            if len(now.rows) < len(there):
                now = _empty(model).plus(*_read(model, 0, set()))
    return now


def _read(model: EmbeddingModel, after: int, known: set[int]) -> tuple[Ids, Ids, Bits]:
    """(row ids, memory ids, bits) of the vectors past `after`; one of another length has no place here."""
    rows: list[int] = []
    memories: list[int] = []
    parts: list[Bits] = []
    raws: list[bytes] = []
    size = model.dimensions * 4

    def pack_up() -> None:
        if raws:
            parts.append(pack(np.frombuffer(b"".join(raws), dtype="<f4").reshape(len(raws), model.dimensions)))
            raws.clear()

    table = Embedding.objects.filter(model=model, id__gt=after).order_by("id")
    for row, memory, raw in table.values_list("id", "memory_id", "vector").iterator(chunk_size=2_000):
        if row in known or len(raw) != size:
            continue
        rows.append(row)
        memories.append(memory)
        raws.append(bytes(raw))
        if len(raws) >= READ:
            pack_up()
    pack_up()
    bits = np.concatenate(parts) if parts else np.zeros((0, words_for(model.dimensions)), dtype=np.uint64)
    return np.array(rows, dtype=np.int64), np.array(memories, dtype=np.int64), bits


def nearest(bits: Bits, query: Bits, most: int) -> NDArray[np.intp]:
    """Places of the `most` rows with the fewest bits that differ, in no order."""
    distance = np.empty(len(bits), dtype=np.uint16)
    for start in range(0, len(bits), CHUNK):
        part = bits[start : start + CHUNK]
        distance[start : start + CHUNK] = np.bitwise_count(part ^ query).sum(axis=1, dtype=np.uint16)
    if len(bits) <= most:
        return np.arange(len(bits))
    return np.argpartition(distance, most)[:most]


def search(model: EmbeddingModel, query: Vectors, visible: Where) -> Near:
    """Cosines of the memories nearest to `query` (one normalised vector) within `visible`."""
    all_bits = matrix(model)
    found = Near()
    if not len(all_bits.rows):
        return found
    wanted = pack(query[None, :])[0]
    most = RESCORED if len(all_bits.rows) < MANY else RESCORED_OF_MANY
    places = nearest(all_bits.bits, wanted, most)
    _rescore(found, model, query, "id", all_bits.rows[places].tolist(), visible)
    found.outside = len(places) - len(found.cosines) - found.broken
    if len(found.cosines) < ENOUGH and len(places) < len(all_bits.rows):
        # A narrow scope: the mask comes first, then the scan.
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT memories.id FROM memories WHERE {visible.sql}", visible.params)  # noqa: S608
            inside = np.fromiter((pk for (pk,) in cursor), dtype=np.int64)
        masked = np.flatnonzero(np.isin(all_bits.memories, inside))
        places = masked[nearest(all_bits.bits[masked], wanted, most)]
        found = Near(outside=found.outside)
        _rescore(found, model, query, "id", all_bits.rows[places].tolist(), visible)
    return found


def cosines(model: EmbeddingModel, query: Vectors, ids: Iterable[int], visible: Where) -> dict[int, float]:
    """Exact cosines of these memories with `query`, as far as they are visible and have a vector."""
    found = Near()
    _rescore(found, model, query, "memory_id", list(ids), visible)
    return found.cosines


def _rescore(
    found: Near, model: EmbeddingModel, query: Vectors, column: str, ids: Sequence[int], visible: Where
) -> None:
    """Put the cosines of the vectors whose `column` (id, memory_id) is one of `ids` into `found`."""
    if not ids:
        return
    there, listed = scope.listed(ids)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT e.memory_id, e.vector FROM embeddings e JOIN memories ON memories.id = e.memory_id "  # noqa: S608
            f"WHERE e.{column} IN ({there}) AND e.model_id = %s AND {visible.sql}",
            [listed, model.pk, *visible.params],
        )
        _take(found, model, query, cursor.fetchall())


def _take(found: Near, model: EmbeddingModel, query: Vectors, rows: Iterable[tuple[int, bytes | memoryview]]) -> None:
    size = model.dimensions * 4
    good = []
    for pk, raw in rows:
        if len(raw) == size:
            good.append((pk, raw))
        else:
            found.broken += 1
    if good:
        stored = np.frombuffer(b"".join(raw for _, raw in good), dtype="<f4").reshape(len(good), model.dimensions)
        found.cosines.update(zip((pk for pk, _ in good), (stored @ query).tolist(), strict=True))
