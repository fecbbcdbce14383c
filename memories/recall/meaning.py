"""Whether a recall may search by meaning now, and the query's own vector. What is off says why, in the trace.

Knows no ranking. An embedder that fails costs the meaning of one answer, never the answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import numpy as np

from memories import embedding
from memories.embedding import Answering, Embedder, SemanticOff, TextRefused, Vectors
from memories.models import EmbeddingModel

KEPT = 256
"""Vectors of queries that a process remembers: a page that is filtered asks the same thing again."""

_lock = Lock()
_queries: OrderedDict[tuple[str, str], Vectors] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Meaning:
    """The query's vector and the model that made it, or the reason there is none.

    `newest` is the highest id of the model's rows, `waiting` how many memories have none yet.
    """

    model: EmbeddingModel | None = None
    vector: Vectors | None = None
    off: str = ""
    newest: int = 0
    waiting: int = 0

    @property
    def state(self) -> str:
        return f"off: {self.off}" if self.off else "on"


@dataclass(frozen=True, slots=True)
class Asking:
    """A query on its way to its vector: by which embedder, to be compared with which model's vectors."""

    text: str
    embedder: Embedder
    answering: Answering

    def vector(self) -> Vectors:
        """The query's vector. Asks no database. Raises what the embedder does."""
        key, model = (self.embedder.name, self.text), self.answering.model
        with _lock:
            vector = _queries.get(key)
            if vector is not None:
                _queries.move_to_end(key)
                return vector
        vector = np.asarray(self.embedder.embed([self.text])[0], dtype=np.float32)
        if vector.shape != (model.dimensions,):
            raise SemanticOff(f"the embedder gave {vector.size} dimensions, not {model.dimensions}")
        with _lock:
            _queries[key] = vector
            while len(_queries) > KEPT:
                _queries.popitem(last=False)
        return vector

    def meaning(self, vector: Callable[[], Vectors]) -> Meaning:
        """What a recall may do, `vector` giving what was made of `vector()`."""
        try:
            found = vector()
        except SemanticOff as off:
            return Meaning(off=off.reason)
        except TextRefused as refused:
            return Meaning(off=f"the model does not take this query: {refused}")
        return Meaning(self.answering.model, found, newest=self.answering.newest, waiting=self.answering.waiting)


def asking(text: str) -> Asking | Meaning:
    """By whom the meaning of a query can be had now; a Meaning that is off when by nobody."""
    try:
        embedder, answering = embedding.current_with_answering()
        model = answering.model
        if embedder.dimensions != model.dimensions or embedder.name != model.name:
            return Meaning(off=f"the embedder is {embedder.name}, the stored vectors are of {model.name}")
    except SemanticOff as off:
        return Meaning(off=off.reason)
    return Asking(text, embedder, answering)


def forget() -> None:
    """Let go of the kept vectors: between measurements."""
    with _lock:
        _queries.clear()
