"""Stored vectors into the table that pgvector searches, at half precision, in short transactions.

What is due is written down by the triggers of `pgvector_index.py`. Knows of no index and of no search.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from django.db import connection, transaction

from memories.models import EmbeddingModel
from memories.recall import pgvector
from memories.recall.pgvector import DUE, TABLE, Extension

BATCH = 2_000
"""Vectors copied in one transaction while there is no index: some 50 ms."""
BATCH_INDEXED = 100
"""The same once there is one: a row takes a millisecond or more then, and who changes such a memory waits."""


def walk(found: Extension, model: EmbeddingModel, end: float) -> int:
    """Copy the vectors that were there before the triggers: put in line, batch by batch, and moved from there."""
    moved = last = 0
    while time.monotonic() < end:
        with connection.cursor() as cursor:
            cursor.execute(
                f"WITH missing AS (SELECT e.id FROM embeddings e WHERE e.model_id = %s AND e.id > %s "  # noqa: S608
                f"AND NOT EXISTS (SELECT 1 FROM {TABLE} v WHERE v.embedding_id = e.id) ORDER BY e.id LIMIT {BATCH}), "
                f"put AS (INSERT INTO {DUE} (embedding_id, model_id) SELECT id, %s FROM missing "
                "ON CONFLICT DO NOTHING) SELECT max(id) FROM missing",
                [model.pk, last, model.pk],
            )
            (highest,) = cursor.fetchone()
        if highest is None:
            break
        last = highest
        moved += move(found, end, BATCH)
    return moved


def move(found: Extension, end: float, batch: int) -> int:
    """Copy what is due, `batch` at a time, in short transactions. What somebody is writing at this moment stays due."""
    sizes = dict(EmbeddingModel.objects.values_list("pk", "dimensions"))
    moved = last = 0
    while time.monotonic() < end:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                f"SELECT embedding_id FROM {DUE} WHERE embedding_id > %s ORDER BY embedding_id LIMIT {batch} "  # noqa: S608
                "FOR UPDATE SKIP LOCKED",
                [last],
            )
            due = [pk for (pk,) in cursor.fetchall()]
            if not due:
                break
            last = due[-1]
            # Nobody is waited for while the lines are held, or two could wait for each other.
            cursor.execute(
                "SELECT id, model_id, memory_id, vector FROM embeddings WHERE id = ANY(%s) FOR SHARE SKIP LOCKED", [due]
            )
            rows = cursor.fetchall()
            taken = {row[0] for row in rows}
            cursor.execute("SELECT id FROM embeddings WHERE id = ANY(%s)", [due])
            busy = {pk for (pk,) in cursor.fetchall()} - taken
            cursor.execute(f"DELETE FROM {TABLE} WHERE embedding_id = ANY(%s)", [list(taken)])  # noqa: S608
            for model, dimensions in sizes.items():
                moved += _copy(cursor, model, dimensions, [row for row in rows if row[1] == model])
            cursor.execute(f"DELETE FROM {DUE} WHERE embedding_id = ANY(%s)", [list(set(due) - busy)])  # noqa: S608
    return moved


def _copy(cursor: Any, model: int, dimensions: int, rows: Sequence[tuple[int, int, int, bytes | memoryview]]) -> int:
    """Write the rows at half precision, in COPY's binary form. One of another length, or no number, is in no search."""
    good = [row for row in rows if len(row[3]) == 4 * dimensions]
    if not good or dimensions > pgvector.MOST_DIMENSIONS:
        return 0
    floats = np.frombuffer(b"".join(row[3] for row in good), dtype="<f4").reshape(len(good), dimensions)
    with np.errstate(over="ignore", invalid="ignore"):
        halves = floats.astype(">f2")
    numbers = np.isfinite(halves).all(axis=1)
    record = np.zeros(int(numbers.sum()), dtype=_record(dimensions))
    record["fields"], record["vector_size"] = 4, 4 + 2 * dimensions
    record["id_size"] = record["model_size"] = record["memory_size"] = 8
    record["id"] = [row[0] for row, whole in zip(good, numbers, strict=True) if whole]
    record["memory"] = [row[2] for row, whole in zip(good, numbers, strict=True) if whole]
    record["model"], record["dimensions"], record["vector"] = model, dimensions, halves[numbers]
    into = f"COPY {TABLE} (embedding_id, model_id, memory_id, vector) FROM STDIN (FORMAT BINARY)"
    with cursor.copy(into) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\x00" + bytes(8) + record.tobytes() + b"\xff\xff")
    return len(record)


def _record(dimensions: int) -> np.dtype[Any]:
    """A row of COPY's binary form: fields behind their lengths, big-endian; a halfvec is its size, 0, its halves."""
    ids = [
        (name, kind) for each in ("id", "model", "memory") for name, kind in ((f"{each}_size", ">i4"), (each, ">i8"))
    ]
    vector = [("vector_size", ">i4"), ("dimensions", ">i2"), ("unused", ">i2"), ("vector", ">f2", (dimensions,))]
    return np.dtype([("fields", ">i2"), *ids, *vector])
