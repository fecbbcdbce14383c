"""Sketches of vectors in a file of the data folder, mapped by every process of the host: a start reads no vector again.

A cache and nothing more: what is missing, cut off or of another model is passed over and written anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import tempfile
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection
from numpy.typing import NDArray

from memories.models import EmbeddingModel
from memories.recall.signs import Bits, words_for
from memories.recall.sketches import Matrix, Part

MAGIC = 0x32_73_74_69_62_6F_63  # "cobits2"
HEADER = 4
"""Numbers of 64 bits: the magic, rows, words a row, dimensions."""
SMALLEST = 20_000
"""Fewer rows than this are read from the database in a moment."""
GROWTH = 1.1
"""The file is written again when there are so many times more rows than in it."""
PAGE = 10_000
"""Rows written at once: what is new is not copied behind what was there."""

_written: dict[Path, int] = {}


def path_of(model: EmbeddingModel) -> Path:
    """The file of this database's model. Another database in the same data folder has another one."""
    of = connection.settings_dict
    where = f"{of['ENGINE']}|{of['HOST']}|{of['PORT']}|{of['NAME']}|{model.pk}|{model.name}|{model.created_at:%s%f}"
    return Path(settings.CLAUDEOPS_DATA_DIR) / "vectors" / f"{hashlib.sha256(where.encode()).hexdigest()[:24]}.bits"


def read(model: EmbeddingModel, words: int) -> Part | None:
    """What the file holds, mapped and not read; None when there is no such file or it is not whole."""
    path = path_of(model)
    try:
        mapped = np.memmap(path, dtype=np.uint8, mode="r")
    except (OSError, ValueError):
        return None
    if len(mapped) < HEADER * 8:
        return None
    magic, count, stored_words, dimensions = mapped[: HEADER * 8].view(np.int64).tolist()
    if (magic, stored_words, dimensions) != (MAGIC, words, model.dimensions) or count < 0:
        return None
    sizes = [HEADER * 8, count * 8, count * 8, count * words * 8, count * 4, count * dimensions]
    if len(mapped) != sum(sizes):
        return None
    ends = np.cumsum(sizes).tolist()
    rows, memories, bits, scales, codes = (np.asarray(mapped[start:end]) for start, end in itertools.pairwise(ends))
    _written[path] = count
    return Part(
        rows.view(np.int64),
        memories.view(np.int64),
        bits.view(np.uint64).reshape(words, count).T,
        codes.view(np.int8).reshape(count, dimensions),
        scales.view(np.float32),
    )


def worth_writing(model: EmbeddingModel, rows: int) -> bool:
    """Whether so many rows are worth a file, and more than it has."""
    return rows >= SMALLEST and rows > GROWTH * _written.get(path_of(model), 0)


def write(model: EmbeddingModel, matrix: Matrix) -> None:
    """Put the file in its place at once. A full or read-only disk costs the cache, not the answer."""
    path = path_of(model)
    _written[path] = len(matrix)
    words = words_for(model.dimensions)
    header = np.array([MAGIC, len(matrix), words, model.dimensions], dtype=np.int64)
    bits = (partial(_word, word) for word in range(words))
    columns: tuple[Callable[[Part], NDArray[Any]], ...]
    columns = (attrgetter("rows"), attrgetter("memories"), *bits, attrgetter("scales"), attrgetter("codes"))
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".bits-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(header.data)
                for column in columns:
                    for page in matrix.pages(PAGE):
                        file.write(np.ascontiguousarray(column(page)).data)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise


def _word(word: int, part: Part) -> Bits:
    return part.bits[:, word]
