"""Sign bits in a file of the data folder, mapped by every process of the host: a start reads no vector again.

A cache and nothing more: what is missing, cut off or of another model is passed over and written anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

import numpy as np
from django.conf import settings
from django.db import connection
from numpy.typing import NDArray

from memories.models import EmbeddingModel

MAGIC = 0x31_73_74_69_62_6F_63  # "cobits1"
HEADER = 4
"""Numbers of 64 bits: the magic, rows, words a row, and 0."""
SMALLEST = 20_000
"""Fewer rows than this are read from the database in a moment."""
GROWTH = 1.1
"""The file is written again when there are so many times more rows than in it."""

_written: dict[Path, int] = {}


def path_of(model: EmbeddingModel) -> Path:
    """The file of this database's model. Another database in the same data folder has another one."""
    of = connection.settings_dict
    where = f"{of['ENGINE']}|{of['HOST']}|{of['PORT']}|{of['NAME']}|{model.pk}|{model.name}|{model.created_at:%s%f}"
    return Path(settings.CLAUDEOPS_DATA_DIR) / "vectors" / f"{hashlib.sha256(where.encode()).hexdigest()[:24]}.bits"


def read(model: EmbeddingModel, words: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]] | None:
    """(row ids, memory ids, bits), mapped and not read; None when there is no such file or it is not whole."""
    path = path_of(model)
    try:
        mapped = np.memmap(path, dtype=np.int64, mode="r")
    except (OSError, ValueError):
        return None
    if len(mapped) < HEADER or mapped[0] != MAGIC or mapped[2] != words:
        return None
    count = int(mapped[1])
    if count < 0 or len(mapped) != HEADER + count * (2 + words):
        return None
    _written[path] = count
    rows = np.asarray(mapped[HEADER : HEADER + count])
    memories = np.asarray(mapped[HEADER + count : HEADER + 2 * count])
    bits = np.asarray(mapped[HEADER + 2 * count :]).view(np.uint64).reshape(count, words)
    return rows, memories, bits


def worth_writing(model: EmbeddingModel, rows: int) -> bool:
    """Whether so many rows are worth a file, and more than it has."""
    return rows >= SMALLEST and rows > GROWTH * _written.get(path_of(model), 0)


def write(
    model: EmbeddingModel, rows: NDArray[np.int64], memories: NDArray[np.int64], bits: NDArray[np.uint64]
) -> None:
    """Put the file in its place at once. A full or read-only disk costs the cache, not the answer."""
    path = path_of(model)
    _written[path] = len(rows)
    header = np.array([MAGIC, len(rows), bits.shape[1], 0], dtype=np.int64)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".bits-")
        try:
            with os.fdopen(handle, "wb") as file:
                for part in (header, rows, memories, bits):
                    file.write(np.ascontiguousarray(part).tobytes())
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
