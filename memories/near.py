"""Which memories of a big scope a new text is worth comparing with: the same text, those near in words, in meaning.

Reads the recall's index and its sign bits, and beside them what is not indexed yet. Cost follows neither the table
nor the scope. Judges nothing, and knows nothing of how a text is stored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from memories.embedding import Vectors
from memories.embedding.base import STORED
from memories.models import EmbeddingModel
from memories.recall import frequency, index, vectors
from memories.recall.scope import Where
from memories.recall.sketches import Matrix
from memories.recall.terms import index_terms
from memories.recall.vectors import Ahead

Ids = NDArray[np.int64]

POSTED = 3_000
"""Places in the index that are read for the rare terms of a text: half a microsecond each."""
POOL = 300
"""Memories whose terms are read, of those that hold the most of the rare ones."""
DEEPER = 4_000
"""So many are looked at where too few of the first ones lie within the scope."""
FEW = 300
"""A scope of at most so many rows is looked through itself: what they share with the text, and their stored vectors."""
MASKED = 2_500
"""A scope of at most so many rows is searched by its own ids; in a bigger one, enough of the nearest lie within it."""
NEAREST = 256
"""Of all vectors so many are looked up first."""
SHARED = 0.15
"""Less of a text's weight in common than this, and two texts are not one fact: comparing them is not worth a
millisecond."""
DUE = 1_000
"""The newest memories that are not indexed yet. Of more, the same text alone is found until they are."""
MOST_ASKED, MOST_TERMS = 64, 24
"""Terms of a long text that are looked up, and of those the rarest that count: the others tell nothing apart."""

_SAME = (
    "SELECT id FROM memories WHERE LOWER(SUBSTR(observation, 1, 100)) = LOWER(SUBSTR(CAST(%s AS text), 1, 100)) "
    "AND LOWER(observation) = LOWER(CAST(%s AS text))"
)


def in_words(scope: Scope, text: str, service: str | None, most: int) -> set[int]:
    """Ids of memories to compare `text` with: `most` by words, and those that say just this.

    `service` is the one that all of the scope have, if they do. Not every id is of the scope.
    """
    return {*same_text(text), *_by_words(scope, text, service, most)}


def sketches(scope: Scope, model: EmbeddingModel, newest: int) -> Matrix | None:
    """What `ahead` looks through; None for a scope so small that its own vectors are read. `newest`: vectors.matrix."""
    return vectors.matrix(model, newest) if scope.few is None else None


def ahead(there: Matrix, vector: Vectors) -> Ahead:
    """The nearest of all memories, found while something else is read. Asks no database."""
    return Ahead.of(there, vector, NEAREST)


def in_meaning(scope: Scope, model: EmbeddingModel, vector: Vectors, found: Ahead | None, most: int) -> list[int]:
    """Ids of the `most` memories whose meaning is the nearest. `found` is what `ahead` gave for a big scope."""
    return _nearest_of_few(scope, model, vector, most) if found is None else _by_meaning(scope, found, most)


def same_text(text: str) -> list[int]:
    """Memories of any scope that say just this, whatever the case of plain letters. Needs no index of terms."""
    return [pk for (pk,) in _rows(_SAME, [text, text])]


def given(ids: Iterable[int]) -> tuple[str, str, Any]:
    """(what stands after FROM, how to join to its `given.value`, its parameter): rows found by ids, not by scope.

    SQLite keeps the order of a CROSS JOIN; left to itself it takes the index of the scope, and reads all of that.
    """
    if connection.vendor == "postgresql":
        return "unnest(%s::bigint[]) AS given(value)", "JOIN", list(ids)
    return "json_each(%s) AS given", "CROSS JOIN", json.dumps(list(ids))


class Scope:
    """The rows that a text can be compared with: those of `within` that are `fit` for it, as one condition `where`."""

    def __init__(self, within: Where, fit: Where) -> None:
        self.within, self.fit = within, fit
        self.where = Where(f"{within.sql} AND {fit.sql}", (*within.params, *fit.params))

    @cached_property
    def few(self) -> Ids | None:
        """Its ids, in their order; None when more than FEW rows are `within`, fit or not."""
        return self._within(FEW)

    @cached_property
    def small(self) -> Ids | None:
        """The same of MASKED rows."""
        return self._within(MASKED) if self.few is None else self.few

    def _within(self, most: int) -> Ids | None:
        found = _rows(
            f"SELECT memories.id, CASE WHEN {self.fit.sql} THEN 1 ELSE 0 END FROM memories "  # noqa: S608
            f"WHERE {self.within.sql} LIMIT {most + 1}",
            (*self.fit.params, *self.within.params),
        )
        return np.sort(_ids(pk for pk, fit in found if fit)) if len(found) <= most else None

    def at_most(self, most: int) -> list[int]:
        """All of its ids when they are at most `most` of a small scope; none of more."""
        return self.small.tolist() if self.small is not None and len(self.small) <= most else []

    @cached_property
    def all(self) -> Ids:
        if self.small is not None:
            return self.small
        found = _rows(f"SELECT memories.id FROM memories WHERE {self.where.sql}", self.where.params)  # noqa: S608
        return _ids(pk for (pk,) in found)


def _ids(found: Iterable[int]) -> Ids:
    return np.fromiter(found, dtype=np.int64)


def _rows(sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def _by_meaning(scope: Scope, first: Ahead, most: int) -> list[int]:
    """The nearest, in the order of their sketches: exact but for a thousandth."""
    scan = first.scan
    found = _within(scope, first.near)
    if len(found) < most and len(first.near) < len(scan.matrix):
        if scope.small is None:
            found = _within(scope, scan.nearest(DEEPER))
        if scope.small is not None or len(found) < most:
            found = _within(scope, scan.matrix.near(scan.query, NEAREST, scope.all))
    return found[:most]


def _nearest_of_few(scope: Scope, model: EmbeddingModel, vector: Vectors, most: int) -> list[int]:
    """The nearest of a scope whose vectors are all read: exact."""
    source, join, wanted = given(scope.all.tolist())
    read = _rows(
        f"SELECT e.memory_id, e.vector FROM {source} "  # noqa: S608
        f"{join} embeddings e ON e.memory_id = given.value AND e.model_id = %s",
        [wanted, model.pk],
    )
    sound = [(pk, raw) for pk, raw in read if len(raw) == model.dimensions * STORED.itemsize]
    stored = np.frombuffer(b"".join(raw for _, raw in sound), dtype=STORED).reshape(len(sound), model.dimensions)
    cosines = stored @ vector
    return [sound[place][0] for place in np.argsort(-cosines, kind="stable")[:most].tolist()]


def _within(scope: Scope, ids: Sequence[int]) -> list[int]:
    """Those of the ids that are of the scope, in their order."""
    if not ids:
        return []
    source, join, wanted = given(ids)
    read = _rows(
        f"SELECT memories.id FROM {source} {join} memories ON memories.id = given.value WHERE {scope.where.sql}",  # noqa: S608
        [wanted, *scope.where.params],
    )
    there = {pk for (pk,) in read}
    return [pk for pk in ids if pk in there]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The terms of a text, from rare to common, with what each weighs; `service` are those that all of it hold."""

    terms: tuple[str, ...]
    weight: dict[str, float]
    places: dict[str, int]
    service: tuple[str, ...]

    def score(self, held: Iterable[str]) -> float:
        return sum(self.weight[term] for term in self.weight.keys() & held)


def _by_words(scope: Scope, text: str, service: str | None, most: int) -> list[int]:
    """Those that share most of the text's terms, rare ones counting more; not indexed ones among them."""
    due = index.due(DUE)
    asked = _asked(text, service)
    if not asked.terms:
        return []
    scores: dict[int, float] = {}
    if scope.few is not None:
        scores.update(_read(scope, asked, scope.few.tolist()))
    elif asked.places:
        posted = _posted(asked)
        scores.update(_read(scope, asked, posted[:POOL].tolist()))
        if len(scores) < most and len(posted) > POOL:
            rest = posted[POOL:]
            rest = rest[:DEEPER] if scope.small is None else rest[np.isin(rest, scope.small)][:POOL]
            scores.update(_read(scope, asked, rest.tolist()))
    if due:
        # After the index: what `catch_up` takes from the one to the other meanwhile is in either.
        source, join, wanted = given(due)
        for pk, said in _rows(
            f"SELECT memories.id, memories.observation FROM {source} {join} memories ON memories.id = given.value "  # noqa: S608
            f"WHERE {scope.where.sql}",
            [wanted, *scope.where.params],
        ):
            scores[pk] = asked.score(_terms(said))
    least = SHARED * sum(asked.weight.values())
    return [pk for pk in sorted(scores, key=lambda pk: (-scores[pk], pk))[:most] if scores[pk] > least]


def _asked(text: str, service: str | None) -> _Asked:
    named = _terms(service) if service else ()
    terms = _terms(text)
    own = [term for term in terms if term not in named][:MOST_ASKED] or terms[:MOST_ASKED]  # it may name nothing else
    size = frequency.collection().size
    counted = frequency.frequencies(sorted({*own, *named}), size)
    rare = sorted(own, key=lambda term: (counted.get(term, 0), term))[:MOST_TERMS]
    weight = {term: math.log(1 + (size + 1) / (counted.get(term, 0) + 1)) for term in rare}
    # All of a scope with a service hold its terms: the index itself leaves out what does not.
    held = tuple(term for term in named if term not in own)
    least = min((counted.get(term, 0) for term in held), default=size)
    places = {term: min(counted[term], least) for term in rare if counted.get(term)}
    return _Asked(tuple(rare), weight, places, held)


def _posted(asked: _Asked) -> Ids:
    """Memories that hold the rare terms, those that hold the most of them first; of equals the newest."""
    chosen = _selective(asked.places)
    params: list[Any] = []
    parts = []
    for number, terms in enumerate(chosen):
        if connection.vendor == "postgresql":
            part = "SELECT memory_id FROM memory_terms WHERE vector @@ %s::tsquery ORDER BY memory_id DESC"
            params.append(" & ".join(f"'{one}'" for one in (*terms, *asked.service)))
        else:
            part = "SELECT rowid FROM memory_terms_fts WHERE memory_terms_fts MATCH %s ORDER BY rowid DESC"
            params.append(" AND ".join(f'"{one}"' for one in (*terms, *asked.service)))
        parts.append(f"SELECT {number}, places.* FROM ({part} LIMIT {POSTED}) places")  # noqa: S608
    read = np.array(_rows(" UNION ALL ".join(parts), params), dtype=np.int64).reshape(-1, 2)
    ids, where = np.unique(read[:, 1], return_inverse=True)
    weights = np.array([sum(asked.weight[term] for term in terms) for terms in chosen])
    scores = np.bincount(where, weights=weights[read[:, 0]], minlength=len(ids))
    return ids[np.lexsort((-ids, -scores))]


def _selective(places: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Terms from rare to common as long as they stand in few places; where none does, the rarest ones two by two."""
    chosen: list[tuple[str, ...]] = []
    total = 0
    for term, count in places.items():
        total += count
        if total > POSTED:
            break
        chosen.append((term,))
    if chosen:
        return chosen
    rarest = list(places)[:4]
    return list(combinations(rarest, 2)) or [(rarest[0],)]


def _read(scope: Scope, asked: _Asked, ids: Sequence[int]) -> dict[int, float]:
    """What these share with the text, by all its terms, as far as they are within the scope."""
    source, join, wanted = given(ids)
    read = _rows(
        f"SELECT t.memory_id, t.terms FROM {source} {join} memory_terms t ON t.memory_id = given.value "  # noqa: S608
        f"{join} memories ON memories.id = given.value WHERE {scope.where.sql}",
        [wanted, *scope.where.params],
    )
    return {pk: asked.score(terms.split()) for pk, terms in read}


@lru_cache(maxsize=8_192)
def _terms(text: str) -> tuple[str, ...]:
    """The terms of a text, each once, in their order."""
    return tuple(dict.fromkeys(index_terms(text)))
