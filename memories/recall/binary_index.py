"""Index the sign bits of a model's vectors (48 bytes instead of 1,536) in each process.

From FILE_FROM vectors on also cached in a file of the data folder, which can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection
from numpy.typing import NDArray

from memories.embedding import Vectors
from memories.models import EmbeddingModel

LOOK_BACK = 1_000
"""Newest rows compared at each change: PostgreSQL's commit order differs from its ids, and backups reuse ids."""
FILE_FROM = 20_000
"""Fewer vectors are read from the database quickly."""
GROWTH = 1.1
"""Index size per live row above which deleted rows are dropped and the file is written."""
PAGE = 2_500
"""Vectors read at once, some 4 MB."""
COLUMNS = "id, memory_id, content_hash, vector"

UNFINISHED = ".index-"
LEFT_ALONE = 3600.0
"""Seconds after which a file that was not finished is nobody's."""

log = logging.getLogger(__name__)

Words = NDArray[np.uint64]
Places = NDArray[np.intp]
_HEAD = 3
"""The first rows of `data`: embedding id, memory id, the first 64 bits of the content hash. The sign bits follow."""


def pack(vectors: Vectors) -> Words:
    """Return the signs of vectors (n, dimensions) as (words, n) of 64 bits; unused bits are 0."""
    packed = np.packbits(vectors > 0, axis=1)
    wide = np.zeros((len(vectors), -(-vectors.shape[1] // 64) * 8), dtype=np.uint8)
    wide[:, : packed.shape[1]] = packed
    return np.ascontiguousarray(wide.view(np.uint64).T)


@dataclass(slots=True)
class BinaryIndex:
    """Sign bits by embedding.

    `data` has one column a vector and spare ones, `count` in use. The column of a deleted embedding stays until the
    index is compacted; searches skip it.
    """

    dimensions: int
    data: Words
    count: int = 0
    last: int = 0
    """The highest embedding id."""
    live: int = 0
    """The number of columns when the index was last known to hold only live rows."""
    note: str = ""
    """What the next search has to say of it in its trace."""

    @classmethod
    def empty(cls, dimensions: int) -> BinaryIndex:
        return cls(dimensions, np.zeros((_HEAD - (-dimensions // 64), 0), dtype=np.uint64))

    def __len__(self) -> int:
        return self.count

    @property
    def embeddings(self) -> Words:
        return self.data[0, : self.count]

    @property
    def memories(self) -> Words:
        return self.data[1, : self.count]

    def copy(self) -> BinaryIndex:
        return BinaryIndex(self.dimensions, self.data[:, : self.count].copy(), self.count, self.last, self.live)

    def keep(self, places: NDArray[Any]) -> BinaryIndex:
        """Return an index of these columns only (a mask or places)."""
        data = self.data[:, : self.count][:, places]
        last = int(data[0].max()) if data.shape[1] else 0
        return BinaryIndex(self.dimensions, data, data.shape[1], last, data.shape[1])

    def add(self, rows: Sequence[tuple[int, int, str, bytes | memoryview]]) -> None:
        """Add (embedding id, memory id, content hash, vector); vectors of another length are left out."""
        good = [row for row in rows if len(row[3]) == self.dimensions * 4]
        if good:
            vectors = np.frombuffer(b"".join(row[3] for row in good), dtype="<f4").reshape(len(good), -1)
            end = self.count + len(good)
            if end > self.data.shape[1]:
                grown = np.zeros((len(self.data), max(end, int(self.count * GROWTH))), dtype=np.uint64)
                grown[:, : self.count] = self.data[:, : self.count]
                self.data = grown
            self.data[:_HEAD, self.count : end] = np.array([(a, b, check_of(c)) for a, b, c, _ in good], np.uint64).T
            self.data[_HEAD:, self.count : end] = pack(vectors)
            self.count = end
        self.last = max(self.last, *(row[0] for row in rows))

    def distances(self, query: Vectors) -> NDArray[np.uint16]:
        """Count the signs by which each vector differs from the query."""
        counts = np.zeros(self.count, dtype=np.uint16)
        for word, query_word in zip(self.data[_HEAD:, : self.count], pack(query[None])[:, 0], strict=True):
            counts += np.bitwise_count(word ^ query_word)
        return counts

    def nearest(self, distances: NDArray[np.uint16], most: int, memories: Sequence[int] | None = None) -> Places:
        """Return the places of the `most` smallest distances, nearest first; if given, among these memories."""
        places = None
        if memories is not None:
            places = np.flatnonzero(np.isin(self.memories, np.array(memories, dtype=np.uint64)))
            distances = distances[places]
        if len(distances) > most:
            indices = np.flatnonzero(distances <= np.partition(distances, most - 1)[most - 1])
        else:
            indices = np.arange(len(distances))
        indices = indices[np.argsort(distances[indices], kind="stable")][:most]
        return indices if places is None else places[indices]

    def cosines(self, query: Vectors, places: Places) -> Vectors:
        """Estimate the cosines of the vectors at these places from the query's floats and their signs.

        Half as far off as by the signs of both: of the nearest 500, the best 200 by it hold .998 of the ten nearest.
        """
        signs = np.ascontiguousarray(self.data[_HEAD:, places].T).view(np.uint8)
        ones = np.unpackbits(signs, axis=1, count=self.dimensions).astype(np.float32)
        # The signs of a vector have a cosine of about sqrt(2/pi) with it.
        return np.asarray((2 * (ones @ query) - query.sum()) / math.sqrt(self.dimensions * 2 / math.pi))

    def estimates(self, query: Vectors, memories: Sequence[int]) -> dict[int, float]:
        """Estimate the cosines of these memories."""
        places = np.flatnonzero(np.isin(self.memories, np.array(memories, dtype=np.uint64)))
        return dict(zip(self.memories[places].tolist(), self.cosines(query, places).tolist(), strict=True))


def check_of(content_hash: str) -> int:
    """Return 64 bits of a content hash, or of the SHA-256 of any other text."""
    try:
        return int(content_hash[:16], 16)
    except ValueError:
        return int(hashlib.sha256(content_hash.encode()).hexdigest()[:16], 16)


_lock = threading.Lock()
_current: dict[str, BinaryIndex] = {}


def current(model: EmbeddingModel, newest: int, content_hash: str = "") -> BinaryIndex:
    """Return the index as the database is now; `newest` is the highest embedding id, with its `content_hash`.

    Without the hash it is read. Not cached in a transaction.
    """
    key, note = _made_from(model), ""
    with _lock:
        index = _current.get(key)
        if index is None:
            index, note = _from_file(model)
            index = _proven(model, index, newest)
        elif index.last != newest or not _same_last(model, index, content_hash):
            index = index.copy() if connection.in_atomic_block else index
            if connection.vendor != "sqlite" or not _continued(model, index, newest):
                index = _proven(model, index, newest)
        index.note = note or index.note
        if connection.in_atomic_block:
            return index
        if len(index) > GROWTH * index.live + LOOK_BACK:
            index = _compacted(model, index)
            if len(index) >= FILE_FROM:
                _write_file(model, index)
            index.note = note
        _current.clear()  # no other model is searched any more
        _current[key] = index
    return index


def forget() -> None:
    with _lock:
        _current.clear()


def _proven(model: EmbeddingModel, index: BinaryIndex, newest: int) -> BinaryIndex:
    """Return the index with all rows of the table; rebuild it when its newest rows differ from the table's.

    A restored backup, or another database of the same name, has other content with the same ids.
    """
    if newest < index.last:
        index = index.keep(index.embeddings <= newest)
    if len(index):
        window = index.data[:_HEAD, max(0, index.count - LOOK_BACK) : index.count]
        checks = dict(zip(window[0].tolist(), window[2].tolist(), strict=True))
        stored = _rows(model, "id, content_hash", "id BETWEEN %s AND %s", min(checks), index.last)
        same = [checks[pk] == check_of(content_hash) for pk, content_hash in stored if pk in checks]
        if not all(same) or not any(same):
            index = BinaryIndex.empty(model.dimensions)
        elif late := [pk for pk, _ in stored if pk not in checks]:
            marks = ", ".join(["%s"] * len(late))
            index.add(_rows(model, COLUMNS, f"id IN ({marks})", *late))
    fresh = not len(index)
    while index.last < newest and (rows := _rows(model, COLUMNS, "id > %s", index.last, limit=PAGE)):
        index.add(rows)
    if fresh:
        index.live = 0  # compacts the index, which writes the file
    return index


def _continued(model: EmbeddingModel, index: BinaryIndex, newest: int) -> bool:
    """Add the rows after the last one, if that is still the same: SQLite commits rows in the order of their ids."""
    rows = _rows(model, COLUMNS, "id >= %s", index.last, limit=PAGE)
    same = bool(rows) and rows[0][0] == index.last and _check(index) == [check_of(rows[0][2])]
    if same and rows[1:]:
        index.add(rows[1:])
    return same and index.last >= newest


def _check(index: BinaryIndex) -> list[int]:
    """Return the check of the last row; empty where it was left out for its length."""
    return index.data[2, : index.count][index.embeddings == index.last].tolist()


def _same_last(model: EmbeddingModel, index: BinaryIndex, content_hash: str) -> bool:
    checks = _check(index)
    stored = [(content_hash,)] if content_hash else _rows(model, "content_hash", "id = %s", index.last)
    return not checks or [check_of(stored_hash) for (stored_hash,) in stored] == checks


def _rows(model: EmbeddingModel, columns: str, condition: str, *params: int, limit: int = -1) -> list[Any]:
    ending = f"LIMIT {limit:d}" if limit > 0 else ""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {columns} FROM embeddings WHERE model_id = %s AND {condition} ORDER BY id {ending}",  # noqa: S608
            [model.pk, *params],
        )
        return list(cursor.fetchall())


def _compacted(model: EmbeddingModel, index: BinaryIndex) -> BinaryIndex:
    there = np.fromiter((pk for (pk,) in _rows(model, "id", "id <= %s", index.last)), dtype=np.uint64)
    new_index = index.keep(np.isin(index.embeddings, there))
    new_index.last = index.last
    return new_index


def _made_from(model: EmbeddingModel) -> str:
    """Identify the vectors by database and model; `_proven` compares the rows."""
    of = connection.settings_dict
    database = "|".join(str(of[name]) for name in ("ENGINE", "HOST", "PORT", "NAME"))
    return f"{database}|{model.pk}|{model.name}|{model.dimensions}|{model.created_at.isoformat()}"


def path_of(model: EmbeddingModel) -> Path:
    name = hashlib.sha256(_made_from(model).encode()).hexdigest()[:24]
    return Path(settings.CLAUDEOPS_DATA_DIR) / "vectors" / f"{name}.bits"


class Damaged(ValueError):
    """The file does not hold what its header says. The text says in what."""


def read_file(model: EmbeddingModel) -> BinaryIndex | None:
    """Read the index from the file; None when there is none. Raises Damaged.

    The first line is the SHA-256 of all that follows: a line of JSON (what it was made from, its rows and their last
    id), then the columns. It is read, not mapped: whoever truncates a mapped file kills its readers.
    """
    try:
        content = path_of(model).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Damaged(f"it cannot be read: {error.strerror}") from error
    digest = content.find(b"\n") + 1
    if content[: digest - 1].decode("ascii", "replace") != hashlib.sha256(memoryview(content)[digest:]).hexdigest():
        raise Damaged("its content does not match its hash")
    start = content.find(b"\n", digest) + 1
    try:
        header = json.loads(content[digest:start])
        data = np.frombuffer(content, dtype="<u8", offset=start).reshape(-1, header["rows"]).astype(np.uint64)
        index = BinaryIndex(model.dimensions, data, data.shape[1], int(data[0].max()), data.shape[1])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise Damaged("its header is not of this version") from error
    if header != _header(model, index) or len(data) != len(BinaryIndex.empty(model.dimensions).data):
        raise Damaged("it was made from other vectors")
    return index


def _header(model: EmbeddingModel, index: BinaryIndex) -> dict[str, Any]:
    return {"made_from": _made_from(model), "rows": index.count, "last": index.last}


def _from_file(model: EmbeddingModel) -> tuple[BinaryIndex, str]:
    """Return the index of the file, else an empty one, and what to say. A damaged file is removed and made anew."""
    try:
        return read_file(model) or BinaryIndex.empty(model.dimensions), ""
    except Damaged as damage:
        note = f"the file of vectors was damaged ({damage}); the vectors were read from the database"
        log.warning("%s: %s", path_of(model).name, note)
        with contextlib.suppress(OSError):
            path_of(model).unlink()
        return BinaryIndex.empty(model.dimensions), note


def _write_file(model: EmbeddingModel, index: BinaryIndex) -> None:
    """Replace the file atomically. A full or read-only disk costs the cache, not the answer."""
    path = path_of(model)
    data = index.data[:, : index.count].astype("<u8").tobytes()
    header = json.dumps(_header(model, index)).encode() + b"\n"
    digest = hashlib.sha256(header)
    digest.update(data)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _remove_leftovers(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=UNFINISHED)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(digest.hexdigest().encode() + b"\n" + header)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise


def _remove_leftovers(folder: Path) -> None:
    """Remove what processes left that died while they wrote, and the files of an earlier format."""
    for path in (*folder.glob(f"{UNFINISHED}*"), *folder.glob("*.npz")):
        if time.time() - path.stat().st_mtime > LEFT_ALONE:
            path.unlink(missing_ok=True)
