"""Embed a query, or say why not. A failing embedder costs semantic search, not the answer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import numpy as np

from claudeops.lib import threads
from memories import embedding
from memories.embedding import Answering, Embedder, SemanticOff, TextRefused, Vectors
from memories.models import EmbeddingModel

KEPT = 256
"""Query vectors cached by a process: a page whose filters change repeats its query."""

_lock = Lock()
_kept: OrderedDict[tuple[str, str], Vectors] = OrderedDict()


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A normalised vector; `newest` is its model's highest embedding id with its `content_hash`, where it was read.

    `waiting` counts missing vectors.
    """

    model: EmbeddingModel
    floats: Vectors
    newest: int
    content_hash: str = ""
    waiting: int = 0


def start_query_vector(text: str) -> Callable[[], QueryVector | str]:
    """Start to embed a query (1 to 3 ms) in a thread; the result waits for the vector, or says why there is none."""
    try:
        embedder, answering = embedding.current_with_answering()
    except SemanticOff as off:
        reason = off.reason
        return lambda: reason
    model = answering.model
    if embedder.dimensions != model.dimensions or embedder.name != model.name:
        return lambda: f"the embedder is {embedder.name}, the stored vectors are of {model.name}"
    floats = threads.start(_floats, text, embedder, answering)

    def collect() -> QueryVector | str:
        try:
            return QueryVector(model, floats(), answering.newest, answering.content_hash, answering.waiting)
        except SemanticOff as off:
            return off.reason
        except TextRefused as refused:
            return f"the model does not take this query: {refused}"

    return collect


def _floats(text: str, embedder: Embedder, answering: Answering) -> Vectors:
    key = (embedder.name, text)
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    floats = np.asarray(embedder.embed([text])[0], dtype=np.float32)
    if floats.shape != (answering.model.dimensions,):
        raise SemanticOff(f"the embedder gave {floats.size} dimensions, not {answering.model.dimensions}")
    with _lock:
        _kept[key] = floats
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return floats


def forget() -> None:
    with _lock:
        _kept.clear()
