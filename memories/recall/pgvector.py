"""PostgreSQL's own search by meaning: pgvector's HNSW index, the scope inside the statement, rescored by the caller.

Says for each model whether it can serve, and why not: then the sign bits of `vectors.py` do. Knows no ranking;
the table it reads is kept by `pgvector_index.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from memories.embedding import Vectors
from memories.models import EmbeddingModel
from memories.recall import scope
from memories.recall.scope import Where

NEAREST = 120
"""Memories that the index brings. The half-precise cosines it orders by are off by 0.0005 at most, so the best
hundred, which a recall goes on with, are among them."""
EF_SEARCH = ((200_000, 400), (None, 1_000))
"""Candidates that a walk through the index keeps, by how many vectors there are (up to): recall@10 against the exact
search is above .99 with them (docs/recall.md). 1,000 is pgvector's most."""
NARROW = 5_000
"""A scope of so many rows by the planner's estimate is searched row by row: about as soon as the index finds its way.
(Of 10,000 the index found the nearest in two thirds of the time, and all of them.)"""
NARROW_SHARE = 0.2
"""So is one of a smaller share of all: the index is no quicker there, and its rows come in no strict order, so that
the nearest are missed (of 100,000, recall@10 was .995 in a fifth, .96 in a tenth, .91 in a fiftieth)."""
FRESH = 500
"""Vectors that are not in the index yet are compared one by one up to here; with more of them numpy answers."""
SCANNED = 20_000
"""Rows of the index that one search looks at before it is given up and the scope is searched row by row."""
LOOKED = 30.0
"""Seconds for which a process believes what it saw of the index. An index that is gone meanwhile makes a search
slow, a table that is gone sends it to numpy: neither costs a hit."""

TABLE, DUE = "embedding_vectors", "embedding_vectors_due"
TRIGGERS = ("embedding_vectors_added", "embedding_vectors_changed", "embedding_vectors_removed",
            "embedding_vectors_emptied")  # fmt: skip
OLDEST = (0, 7)
"""The first pgvector with half precision."""
ITERATIVE = (0, 8)
"""The first one whose index goes on until enough rows are inside the filter."""
SQLITE = "the database is SQLite"
MOST_DIMENSIONS = 4_000
"""More than these no HNSW index takes, at half precision."""


@dataclass(frozen=True, slots=True)
class Extension:
    """pgvector as this database has it: its version, and the schema its types are in."""

    version: tuple[int, ...]
    schema: str

    def type(self, dimensions: int | None = None) -> str:
        size = "" if dimensions is None else f"({dimensions})"
        return f"{connection.ops.quote_name(self.schema)}.halfvec{size}"

    @property
    def inner_product(self) -> str:
        """The operator whose smallest value is the greatest cosine of normalised vectors."""
        return f"OPERATOR({connection.ops.quote_name(self.schema)}.<#>)"


@dataclass(frozen=True, slots=True)
class State:
    """Whether pgvector serves a model. `reason` is why it does not, empty when it does. `rows` is an estimate."""

    reason: str = ""
    extension: Extension | None = None
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """(memory id, stored vector) of what is near, or None when numpy is to answer. `by` says who serves, and why."""

    by: str
    rows: Sequence[tuple[int, bytes | memoryview]] | None = None


_lock = Lock()
_looked: dict[tuple[str, int], tuple[float, State]] = {}


def index_name(model: EmbeddingModel) -> str:
    return f"{TABLE}_hnsw_{model.pk}_{model.dimensions}"


def extension() -> Extension | None:
    """pgvector, when this database has it."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT x.extversion, n.nspname FROM pg_extension x JOIN pg_namespace n ON n.oid = x.extnamespace "
            "WHERE x.extname = 'vector'"
        )
        found = cursor.fetchone()
    return Extension(_version(found[0]), found[1]) if found else None


def unfit(model: EmbeddingModel, found: Extension | None) -> str:
    """Why no index can be made for this model here; empty when one can."""
    if connection.vendor != "postgresql":
        return SQLITE
    if settings.CLAUDEOPS_VECTOR_SEARCH == "numpy":
        return "CLAUDEOPS_VECTOR_SEARCH is numpy"
    if found is None:
        return "this database has no extension pgvector"
    if found.version < OLDEST:
        return f"pgvector is {'.'.join(map(str, found.version))}, and 0.7 is the oldest that serves"
    if model.dimensions > MOST_DIMENSIONS:
        return f"an HNSW index takes {MOST_DIMENSIONS:,} dimensions at most, and {model.name} has {model.dimensions:,}"
    return ""


def state(model: EmbeddingModel) -> State:
    """Whether pgvector serves `model` now: looked up again after LOOKED seconds."""
    if connection.vendor != "postgresql" or settings.CLAUDEOPS_VECTOR_SEARCH == "numpy":
        return State(unfit(model, None))
    key = (str(connection.settings_dict["NAME"]), model.pk)
    with _lock:
        at, known = _looked.get(key, (0.0, None))
    if known is None or time.monotonic() - at > LOOKED:
        known = _look(model)
        with _lock:
            _looked[key] = (time.monotonic(), known)
    return known


def forget() -> None:
    """Look at the database again: after the index was made or dropped."""
    with _lock:
        _looked.clear()


def served_by(model: EmbeddingModel) -> str:
    """Who searches this model's vectors, and why: "pgvector 0.8.5 (HNSW)", "numpy: …", on SQLite "numpy"."""
    return _named(state(model))


def nearest(model: EmbeddingModel, query: Vectors, visible: Where, beside: Sequence[int] = ()) -> Answer:
    """The vectors nearest to `query` (one normalised vector) within `visible`, or that numpy is to find them.

    Those of the memories in `beside` come along, as far as they are visible.

    Never raises for what is wrong with the extension, the table or the index.
    """
    now = state(model)
    if now.reason or now.extension is None:
        return Answer(_named(now))
    try:
        with transaction.atomic():
            rows = _Search(model, now.extension, now.rows, query, visible, beside).rows()
    except DatabaseError as error:
        forget()
        return Answer(f"numpy: pgvector failed ({str(error).splitlines()[0][:200]})")
    if rows is None:
        return Answer(f"numpy: more than {FRESH} vectors are new and not in pgvector's index yet")
    return Answer(_named(now), rows)


@dataclass(frozen=True, slots=True)
class _Search:
    model: EmbeddingModel
    extension: Extension
    total: int
    query: Vectors
    visible: Where
    beside: Sequence[int] = ()

    def rows(self) -> list[tuple[int, bytes | memoryview]] | None:
        """What is near; None when too much is not in the index yet."""
        if self.prepared() > FRESH:
            return None
        if not self.narrow():
            found = self.run(*self.by_index())
            if sum(indexed for _, _, indexed in found) >= NEAREST:
                return [(pk, raw) for pk, raw, _ in found]
        # The index ended before there were enough, or is not asked: nothing in the scope is passed over.
        return [(pk, raw) for pk, raw, _ in self.run(*self.row_by_row())]

    def prepared(self) -> int:
        """Set what this transaction searches with. Returns how many vectors are not copied yet, up to FRESH + 1."""
        ef_search = next(ef for most, ef in EF_SEARCH if most is None or self.total <= most)
        wanted = {"hnsw.ef_search": str(ef_search), "jit": "off"}
        if self.extension.version >= ITERATIVE:
            wanted |= {"hnsw.iterative_scan": "relaxed_order", "hnsw.max_scan_tuples": str(SCANNED)}
        chosen = ", ".join("set_config(%s, %s, true)" for _ in wanted)
        due = f"SELECT 1 FROM {DUE} WHERE model_id = {self.model.pk:d} LIMIT {FRESH + 1}"  # noqa: S608
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT (SELECT count(*) FROM ({due}) d), {chosen}",  # noqa: S608
                [part for pair in wanted.items() for part in pair],
            )
            return int(cursor.fetchone()[0])

    def narrow(self) -> bool:
        """Whether the planner thinks that few rows are inside the scope. Wrong costs time, never a hit."""
        if self.total <= NARROW:
            return True
        if self.visible.sql == "1 = 1":
            return False
        with connection.cursor() as cursor:
            cursor.execute(
                f"EXPLAIN (FORMAT JSON) SELECT 1 FROM memories WHERE {self.visible.sql}",  # noqa: S608
                self.visible.params,
            )
            return bool(cursor.fetchone()[0][0]["Plan"]["Plan Rows"] <= max(NARROW, NARROW_SHARE * self.total))

    @property
    def distance(self) -> str:
        size = self.model.dimensions
        return f"(v.vector::{self.extension.type(size)}) {self.extension.inner_product} %s::{self.extension.type(size)}"

    @property
    def vector(self) -> str:
        return f"[{','.join(map('{:.6g}'.format, self.query.tolist()))}]"

    def by_index(self) -> tuple[str, list[Any]]:
        """The scope as a condition of each row that the walk meets, so that the order stays the index's."""
        inside = f"(SELECT {self.visible.sql} FROM memories WHERE memories.id = v.memory_id)"  # noqa: S608
        return (
            f"SELECT v.embedding_id FROM {TABLE} v WHERE v.model_id = {self.model.pk:d} AND {inside} "  # noqa: S608
            f"ORDER BY {self.distance} LIMIT {NEAREST}",
            [*self.visible.params, self.vector],
        )

    def row_by_row(self) -> tuple[str, list[Any]]:
        """Every row of the scope compared. (The sum keeps the index away.)"""
        return (
            f"SELECT v.embedding_id FROM memories JOIN {TABLE} v "  # noqa: S608
            f"ON v.memory_id = memories.id AND v.model_id = {self.model.pk:d} "
            f"WHERE {self.visible.sql} ORDER BY ({self.distance}) + 0 LIMIT {NEAREST}",
            [*self.visible.params, self.vector],
        )

    def run(self, near: str, params: list[Any]) -> list[tuple[int, bytes | memoryview, bool]]:
        """(memory id, stored vector, whether it is of `near`), with what is due and `beside`, at one moment."""
        there, listed = scope.listed(self.beside)
        more = "UNION ALL SELECT e.memory_id, e.vector, false FROM {0} JOIN memories ON memories.id = e.memory_id "
        with connection.cursor() as cursor:
            cursor.execute(
                f"WITH near AS MATERIALIZED ({near}) "  # noqa: S608
                "SELECT e.memory_id, e.vector, true FROM near JOIN embeddings e ON e.id = near.embedding_id "
                f"{more.format(f'{DUE} d JOIN embeddings e ON e.id = d.embedding_id')} "
                f"WHERE d.model_id = {self.model.pk:d} AND {self.visible.sql} "
                f"{more.format('embeddings e')} "
                f"WHERE e.memory_id IN ({there}) AND e.model_id = {self.model.pk:d} AND {self.visible.sql}",
                [*params, *self.visible.params, listed, *self.visible.params],
            )
            return list(cursor.fetchall())


def _look(model: EmbeddingModel) -> State:
    found = extension()
    if reason := unfit(model, found):
        return State(reason, found)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT i.indisvalid AND i.indisready FROM pg_index i WHERE i.indexrelid = to_regclass(%s)), "
            "(SELECT c.reltuples FROM pg_class c WHERE c.oid = to_regclass(%s)), "
            "(SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass('embeddings') AND tgname = ANY(%s) "
            "AND tgenabled IN ('O', 'A'))",
            [index_name(model), index_name(model), list(TRIGGERS)],
        )
        valid, rows, triggers = cursor.fetchone()
    if triggers < len(TRIGGERS) or valid is None:
        return State("pgvector's index is not made yet", found)
    if not valid:
        return State("pgvector's index is being built", found)
    return State("", found, int(max(rows, 0)))


def _named(now: State) -> str:
    if now.reason == SQLITE:
        return "numpy"
    if now.reason or now.extension is None:
        return f"numpy: {now.reason}"
    return f"pgvector {'.'.join(map(str, now.extension.version))} (HNSW)"


def _version(text: str) -> tuple[int, ...]:
    """0.8.0-dev is 0.8.0."""
    return tuple(int(part) for part in text.partition("-")[0].split(".") if part.isdigit())
