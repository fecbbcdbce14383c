"""Select and relate the candidates of a statement: the known memories to compare it with. Writes index terms alone.

It is related to them before the transaction; what changed since is related again under the store's lock.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Protocol

import numpy as np
from django.db import connection
from django.db.models import Q

from claudeops.lib import threads
from memories.embedding import (
    Answering,
    Embedder,
    SemanticOff,
    TextRefused,
    Vectors,
    current_with_answering,
    embedded_text,
)
from memories.embedding.base import STORED
from memories.embedding.state import answering
from memories.matching import Kind, Relation, may_be_one, read_ahead, relation
from memories.models import Embedding, EmbeddingModel, Inactive, Memory
from memories.models.memory import MemoryQuerySet
from memories.recall import filters, keyword_index, keyword_search, vector_search
from memories.recall.filters import EVERYTHING, Where, where
from memories.recall.query import index_terms
from memories.recall.query_vector import QueryVector

FEW = 300
"""A scope of at most this many rows is read whole."""
SHARED = 0.15
"""Minimum share of the new text's idf mass in a candidate, since comparing two texts takes a millisecond."""
MOST_TERMS = 64
UNINDEXED = 1_000
"""Newest unindexed memories that are read as texts. When more are unindexed, those of the scope are indexed first."""
MOST_INDEXED = 5_000
"""Memories that are indexed for one statement (about a second); of the others only equal texts are found."""

_SAME = (
    "SELECT id FROM memories WHERE LOWER(SUBSTR(observation, 1, 100)) = LOWER(SUBSTR(CAST(%s AS text), 1, 100)) "
    "AND LOWER(observation) = LOWER(CAST(%s AS text))"
)


class Scope:
    """The rows that a statement can be compared with: `within` its scope, `fit` for comparison, `where` both."""

    def __init__(self, within: Where, fit: Where) -> None:
        self.within, self.fit = within, fit
        self.where = Where(f"{within.sql} AND {fit.sql}", (*within.params, *fit.params))

    @cached_property
    def few(self) -> list[int] | None:
        """The ids, ascending; None when more than FEW rows are `within`, fit or not."""
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT memories.id, CASE WHEN {self.fit.sql} THEN 1 ELSE 0 END FROM memories "  # noqa: S608
                f"WHERE {self.within.sql} LIMIT {FEW + 1}",
                (*self.fit.params, *self.within.params),
            )
            rows = cursor.fetchall()
        return sorted(pk for pk, fit in rows if fit) if len(rows) <= FEW else None


def _index_pending(scope: Scope) -> None:
    """Index what a bulk insert left unindexed in the scope, the newest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT memories.id FROM memories WHERE {scope.where.sql} "  # noqa: S608
            "AND EXISTS (SELECT 1 FROM memory_terms_due d WHERE d.memory_id = memories.id) "
            f"ORDER BY memories.id DESC LIMIT {MOST_INDEXED}",
            scope.where.params,
        )
        pending = [pk for (pk,) in cursor.fetchall()]
    keyword_index.index(pending)


def in_words(scope: Scope, text: str, service: str | None, most: int) -> set[int]:
    """Return the `most` memories with the largest idf-weighted overlap, and equal texts of any scope."""
    terms = list(dict.fromkeys(index_terms(text)))
    named = index_terms(service) if service else ()  # every memory of the scope has these
    own = [term for term in terms if term not in named] or terms
    hits = keyword_search.search(own[:MOST_TERMS], scope.where, unindexed=UNINDEXED + 1)
    if hits.unindexed > UNINDEXED:
        _index_pending(scope)
        hits = keyword_search.search(own[:MOST_TERMS], scope.where, unindexed=UNINDEXED)
    near = heapq.nlargest(most, ((share, -pk) for share, pk in zip(hits.coverages(hits.held), hits.held, strict=True)))
    return {*same_text(text), *(-pk for share, pk in near if share > SHARED)}


def in_meaning(scope: Scope, vector: QueryVector, most: int) -> list[int]:
    """Return the `most` memories with the nearest vectors."""
    if scope.few is not None:
        cosines = vector_search.cosines(vector, scope.few, EVERYTHING)
    else:
        cosines = vector_search.nearest(vector, scope.where, most).cosines
    return heapq.nlargest(most, cosines, key=lambda pk: (cosines[pk], -pk))


def same_text(text: str) -> list[int]:
    """Return memories of any scope with this text, ignoring the case of ASCII letters. Uses no index of terms."""
    with connection.cursor() as cursor:
        cursor.execute(_SAME, [text, text])
        return [pk for (pk,) in cursor.fetchall()]


logger = logging.getLogger(__name__)

SCANNED = 40
"""A scope of at most this many memories is compared whole; a text outside the parser cache takes 1 ms."""

CHOSEN = 6
"""Candidates from each search (keywords, vectors) of a bigger scope; the first five hold all restatements."""

_ENDED = (Inactive.EXPIRED, Inactive.SUPERSEDED)


class Text(Protocol):
    @property
    def observation(self) -> str: ...

    @property
    def service(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """The result of comparing a statement before the transaction.

    `seen` is the id of the latest change at that time. `found` are the relations by memory id, with the text that was
    compared. `vector` (float32, length 1) is the statement's by `model`; without one, `off` says why.
    """

    seen: int = 0
    found: Mapping[int, tuple[str, Relation]] = field(default_factory=dict)
    vector: Vectors | None = None
    model: EmbeddingModel | None = None
    off: str = ""


def prepare(within: Where, new: Text, *, of_service: bool = True) -> Prepared:
    """Compare `new` with its scope's memories; index those that a bulk insert left unindexed, write nothing else.

    `of_service`: the scope is limited to its service.
    """
    latest = latest_change()
    scope, service = _scope(within), new.service if of_service else None
    model, embedding = _start_embedding(new)
    whole, rows = _first(scope, new, service, model)
    read_ahead([new.observation, *(text for _, text, _ in rows)])
    vector, off = embedding()
    if not whole:
        wanted = in_meaning(scope, vector, CHOSEN) if vector else []
        rows += _of(set(wanted).difference(pk for pk, _, _ in rows), scope, model)
    floats = vector.floats if vector else None
    by_id = _with_cosines(rows, model, floats)
    return Prepared(latest, _related(by_id, new), floats, model, off)


def current_relations(prepared: Prepared, within: Where, new: Text) -> dict[int, Relation]:
    """Return the relations that still hold, and those of memories changed since. Call under the store's lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT memory_id FROM memory_changes WHERE id > %s AND memory_id IS NOT NULL", [prepared.seen]
        )
        changed = {pk for (pk,) in cursor.fetchall()}
    standing = {pk: link for pk, (_, link) in prepared.found.items() if pk not in changed}
    by_id: _Known = {}
    if changed:
        by_id = _with_cosines(_of(changed, _scope(within), prepared.model), prepared.model, prepared.vector)
    # An unchanged text keeps its relation.
    same = {pk: prepared.found[pk][1] for pk, one in by_id.items() if prepared.found.get(pk, ("",))[0] == one[0]}
    judged = _related({pk: one for pk, one in by_id.items() if pk not in same}, new)
    return standing | same | {pk: link for pk, (_, link) in judged.items()}


def latest_change() -> int:
    """Return the id of the latest change of any memory, or 0. Writers are one at a time, so it only grows."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM memory_changes ORDER BY id DESC LIMIT 1")
        row = cursor.fetchone()
    return row[0] if row else 0


def comparable(rows: MemoryQuerySet) -> MemoryQuerySet:
    """Filter to the rows that a statement is compared with: inactive ones too, since a decayed memory can be confirmed.

    Held and ended ones (expired, superseded, merged into a deleted one) are excluded: to repeat those is new.
    """
    return rows.allowed().exclude(
        Q(inactive_reason__in=_ENDED) | Q(inactive_reason=Inactive.MERGED, superseded_by=None)
    )


_Embedding = Callable[[], tuple[QueryVector | None, str]]
"""Waits for (the vector of a text, or why there is none)."""


def _start_embedding(new: Text) -> tuple[EmbeddingModel | None, _Embedding]:
    """Start to embed a text in a thread; never inside a transaction."""
    if connection.in_atomic_block:
        return None, lambda: (None, "no model is asked inside a transaction")
    try:
        embedder, active = current_with_answering()
    except SemanticOff as error:
        off = str(error)
        return None, lambda: (None, off)
    except Exception as error:  # a broken model must not lose an observation
        off = _failed(error)
        return None, lambda: (None, off)
    if active.model.name != embedder.name:
        return None, lambda: (None, "the model is being changed")
    return active.model, threads.start(_embedded, embedder, active, new)


def _embedded(embedder: Embedder, active: Answering, new: Text) -> tuple[QueryVector | None, str]:
    try:
        return QueryVector(
            active.model, embedder.embed([embedded_text(new)])[0], active.newest, active.content_hash
        ), ""
    except (SemanticOff, TextRefused) as off:
        return None, str(off)
    except Exception as error:
        return None, _failed(error)


def _failed(error: Exception) -> str:
    logger.exception("an observation could not be embedded; it is matched by words alone")
    return f"the model failed: {type(error).__name__}"


_Rows = list[tuple[int, str, bytes | memoryview | None]]
"""(memory, its text, its stored vector)."""

_Known = dict[int, tuple[str, float | None]]
"""Texts by memory, the older first, with their cosine where both have a vector."""


def _scope(within: Where) -> Scope:
    return Scope(within, _comparable(connection.vendor))


@cache
def _comparable(vendor: str) -> Where:
    return where(comparable(Memory.objects.all()))


def _first(scope: Scope, new: Text, service: str | None, model: EmbeddingModel | None) -> tuple[bool, _Rows]:
    """Return (whether these are the whole scope, the candidates found without a vector)."""
    few = scope.few
    if few is not None and len(few) <= SCANNED:
        return True, _of(few, scope, model)
    return False, _of(in_words(scope, new.observation, service, CHOSEN), scope, model)


def _of(ids: Collection[int], scope: Scope, model: EmbeddingModel | None) -> _Rows:
    if not ids:
        return []
    source, wanted = filters.listed(ids)
    with connection.cursor() as cursor:
        cursor.execute(  # CROSS JOIN: SQLite keeps this order
            f"SELECT memories.id, memories.observation, e.vector FROM {source} CROSS JOIN memories "  # noqa: S608
            "LEFT JOIN embeddings e ON e.memory_id = memories.id AND e.model_id = %s "
            f"WHERE memories.id = given.value AND {scope.where.sql}",
            [wanted, model.pk if model else 0, *scope.where.params],
        )
        return list(cursor.fetchall())


def _with_cosines(rows: _Rows, model: EmbeddingModel | None, vector: Vectors | None) -> _Known:
    """Add cosines and sort by age, oldest first; a vector of another length than the model's is ignored."""
    size = model.dimensions * STORED.itemsize if model else 0
    by_id: _Known = {}
    for pk, text, raw in sorted(rows, key=lambda row: row[0]):
        cosine = None
        if raw is not None and vector is not None and len(raw) == size:
            cosine = float(np.frombuffer(raw, dtype=STORED) @ vector)
        by_id[pk] = (text, cosine)
    return by_id


def _related(by_id: _Known, new: Text) -> dict[int, tuple[str, Relation]]:
    return {
        pk: (text, relation(text, new.observation, about=new.service, cosine=cosine))
        for pk, (text, cosine) in by_id.items()
    }


def nearest_unsure(found: Iterable[tuple[int, Relation]]) -> int | None:
    """Return the nearest distinct memory that may be the same fact."""
    unsure = [
        (one.evidence.get("cosine", one.score), -pk)
        for pk, one in found
        if one.kind == Kind.DISTINCT and may_be_one(one.evidence)
    ]
    return -max(unsure)[1] if unsure else None


def like_known(memory: Memory, within: Where, fit: Where) -> dict[int, tuple[str, Relation]]:
    """Relate a stored memory to the others `within` its scope that are `fit` (its id is not): (text, relation) by id.

    Its stored vector is used, where it has one; no model is asked.
    """
    scope, service = Scope(within, fit), memory.service
    few = scope.few
    active = answering()
    model, floats = (active.model if active else None), None
    if model is not None:
        raw = Embedding.objects.filter(memory=memory, model=model).values_list("vector", flat=True).first()
        if raw is not None and len(raw) == model.dimensions * STORED.itemsize:
            floats = np.frombuffer(raw, dtype=STORED)
    if few is not None and len(few) <= SCANNED:
        wanted = set(few)
    else:
        wanted = in_words(scope, memory.observation, service, CHOSEN)
        if active is not None and floats is not None:
            wanted |= set(
                in_meaning(scope, QueryVector(active.model, floats, active.newest, active.content_hash), CHOSEN)
            )
    rows = _of(wanted - {memory.pk}, scope, model)
    read_ahead([memory.observation, *(text for _, text, _ in rows)])
    return _related(_with_cosines(rows, model, floats), memory)
