"""The words' side of a recall: which memories hold the query's rare terms, how much of it they cover.

Reads the index of `index.py`. A common word alone never makes it read half the table: terms are taken by how
rare they are until the candidates are few enough.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from memories.recall import history, index, scope
from memories.recall.terms import index_terms
from memories.recall.values import Filters

MOST_CANDIDATES = 800
"""Rows whose terms are read for one query. Past that the rarest terms decide, and the vectors carry the rest."""
SMALL_SCOPE = 4_000
"""A scope of at most so many rows is read whole when the rare terms found too little in it."""
ENOUGH = 50
TAIL = 200
"""Memories not indexed yet that a recall reads itself, the newest first."""
K1, B = 0.9, 0.4
"""bm25 for short texts, as measured: less weight on repetition and length than the usual 1.2 and 0.75."""
FEW = 5_000
"""Counts up to here are asked for each time; a larger one hardly moves and is kept for a moment."""
RECOUNT = 30.0
"""Seconds after which a kept count is asked for again."""
SLOWER = 20_000
"""A count above this is kept longer, in proportion: it takes longer, and a memory more says less."""
MOST_KEPT = 10_000

_collections: dict[str, tuple[Collection, float]] = {}
_common: dict[tuple[str, str], tuple[int, float]] = {}


@dataclass(frozen=True, slots=True)
class Collection:
    """How many memories are indexed, and the mean number of their terms."""

    size: int
    mean_length: float


Numbers = NDArray[np.float64]


@dataclass(slots=True)
class Words:
    """What the words found for the query's `terms`, a row of `counts` for each memory that was read.

    `counts` says how often each term stands there, `lengths` how many terms there are in all; `scores` (bm25) and
    `covered` (0..1, the share of the query's idf mass) follow by `weigh`.
    """

    terms: tuple[str, ...] = ()
    frequency: dict[str, int] = field(default_factory=dict)
    searched: tuple[str, ...] = ()
    collection: Collection = Collection(0, 1.0)
    outside: int = 0
    unindexed: int = 0
    idf: dict[str, float] = field(default_factory=dict)
    mass: float = 0.0
    places: dict[int, int] = field(default_factory=dict)
    counts: Numbers = field(default_factory=lambda: np.zeros((0, 0)))
    lengths: Numbers = field(default_factory=lambda: np.zeros(0))
    scores: list[float] = field(default_factory=list)
    covered: list[float] = field(default_factory=list)

    def take(self, rows: Sequence[tuple[int, int, str]]) -> None:
        """Read memories that were not read before: (id, how many terms it has, these, separated by spaces)."""
        if not rows:
            return
        found = counted(self.terms, [terms for _, _, terms in rows])
        known = len(self.lengths)
        self.places.update((pk, place) for place, (pk, _, _) in enumerate(rows, known))
        self.counts = np.concatenate([self.counts, found]) if known else found
        self.lengths = np.concatenate([self.lengths, np.array([length for _, length, _ in rows], dtype=np.float64)])

    def drop(self, memory_id: int) -> bool:
        """Forget what was read of a memory; whether there was something."""
        place = self.places.pop(memory_id, None)
        if place is not None:
            self.counts[place] = 0.0
        return place is not None

    def weigh(self) -> None:
        """Set the terms' idf (Robertson's, never negative), then each memory's score and coverage.

        A term that no memory holds counts as the rarest.
        """
        size = self.collection.size
        counted_in = ((term, self.frequency.get(term, 0)) for term in self.terms)
        self.idf = {term: math.log(1 + max(0, size - df + 0.5) / (df + 0.5)) for term, df in counted_in}
        self.mass = sum(self.idf.values())
        norms = K1 * (1 - B + B * self.lengths / max(1.0, self.collection.mean_length))
        scores, covered = np.zeros(len(norms)), np.zeros(len(norms))
        # Term by term, so that two memories that hold the same have the same to the last bit.
        for column, idf in enumerate(self.idf.values() if len(norms) else ()):
            times = self.counts[:, column]
            scores += idf * times * (K1 + 1) / (times + norms)
            covered += idf * (times > 0)
        self.scores = scores.tolist()
        self.covered = (covered / self.mass).tolist() if self.mass > 0 else [0.0] * len(norms)

    def best(self, most: int) -> list[int]:
        """The memories with the highest scores, best first; of equal ones the newer first."""
        scored = [(self.scores[place], pk) for pk, place in self.places.items() if self.scores[place] > 0]
        return [pk for _, pk in heapq.nlargest(most, scored)]

    def times(self, memory_id: int | None) -> set[str]:
        """Which of the query's terms stand in this memory; none in one that was not read."""
        place = self.places.get(memory_id) if memory_id is not None else None
        if place is None:
            return set()
        return {self.terms[column] for column in np.flatnonzero(self.counts[place]).tolist()}

    def coverage(self, memory_id: int) -> float:
        """The share (0..1) of the query's idf mass that this memory's terms cover."""
        place = self.places.get(memory_id)
        return self.covered[place] if place is not None else 0.0

    def shared(self, parts: Sequence[tuple[Container[str], float]]) -> float:
        """Coverage by several texts: (their terms, what a term counts that stands there). The best one counts."""
        if self.mass <= 0:
            return 0.0
        covered = 0.0
        for term, idf in self.idf.items():
            best = 0.0
            for held, share in parts:
                if share > best and term in held:
                    best = share
            covered += idf * best
        return covered / self.mass

    def bm25(self, memory_id: int) -> float:
        place = self.places.get(memory_id)
        return self.scores[place] if place is not None else 0.0


def counted(terms: Sequence[str], texts: Sequence[str]) -> Numbers:
    """How often each term (a column) stands in each text (a row), by one look through all texts for each term."""
    counts = np.zeros((len(texts), len(terms)))
    # Each term between spaces of its own, so that a look may go on behind the one it found.
    doubled = [text.replace(" ", "  ") for text in texts]
    joined = " " + " \n ".join(doubled) + " "
    ends = np.cumsum(np.fromiter(map(len, doubled), dtype=np.int64, count=len(texts)) + len(" \n "))
    for column, term in enumerate(terms):
        wanted = f" {term} "
        between = joined.split(wanted)
        if len(between) > 1:
            before = np.fromiter(map(len, between), dtype=np.int64, count=len(between))[:-1]
            at = np.cumsum(before + len(wanted)) - len(wanted)
            counts[:, column] = np.bincount(np.searchsorted(ends, at, side="right"), minlength=len(texts))
    return counts


def search(terms: Sequence[str], filters: Filters) -> Words:
    """The candidates of a query's terms within the filters' scope, those not indexed yet among them."""
    found = Words(tuple(terms))
    if not terms:
        return found
    found.collection = collection()
    found.frequency = frequencies(terms)
    rare = sorted((term for term in terms if found.frequency.get(term)), key=lambda t: (found.frequency[t], t))
    chosen = selective(rare, found.frequency)
    found.searched = tuple(chosen)
    visible = scope.of(filters)
    if chosen:
        found.outside = _read_holding(found, chosen, visible)
    if len(found.places) < ENOUGH and len(chosen) < len(rare):
        small = scope.ids(visible, SMALL_SCOPE + 1)
        if len(small) <= SMALL_SCOPE:
            read(found, small, visible)
        else:
            _read_holding(found, rare, visible)
    if tail := index.due(TAIL):
        rows = scope.within(filters)
        texts = rows.filter(pk__in=tail).values_list("pk", *index.TEXTS)
        _read_texts(found, texts)
        found.unindexed = len(tail)
    if filters.as_of is not None:
        edited = scope.within(filters).filter(pk__in=history.edited_since(filters.as_of))
        then = history.as_of(edited, filters.as_of)
        _read_texts(found, ((row.pk, *(getattr(row, name) for name in index.TEXTS)) for row in then))
    found.weigh()
    return found


def _read_texts(found: Words, rows: Iterable[tuple[Any, ...]]) -> None:
    """Put texts that are not in the index, or were not then, beside the others: (id, and what of it is indexed)."""
    new: dict[int, list[str]] = {}
    for pk, *texts in rows:
        terms = index_terms(index.text_of(*texts))
        there = set(found.terms).intersection(terms)
        if not found.drop(pk):
            found.collection = replace(found.collection, size=found.collection.size + 1)
            for term in there:
                found.frequency[term] = found.frequency.get(term, 0) + 1
        if there:
            new[pk] = terms
    found.take([(pk, len(terms), " ".join(terms)) for pk, terms in new.items()])


def selective(rare: Sequence[str], frequency: Mapping[str, int]) -> list[str]:
    """Of terms from rare to common, as many as keep the candidates few: the rarest one at least."""
    chosen: list[str] = []
    total = 0
    for term in rare:
        total += frequency[term]
        if chosen and total > MOST_CANDIDATES:
            break
        chosen.append(term)
    return chosen


def read(found: Words, ids: Iterable[int], visible: scope.Where) -> None:
    """Put the terms of these memories into `found`, as far as they are indexed and visible."""
    wanted = sorted(set(ids) - found.places.keys())
    if not wanted:
        return
    there, listed = scope.listed(wanted)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.memory_id, t.length, t.terms FROM memory_terms t JOIN memories ON memories.id = t.memory_id "  # noqa: S608
            f"WHERE t.memory_id IN ({there}) AND {visible.sql}",
            [listed, *visible.params],
        )
        rows = cursor.fetchall()
    found.take(rows)


def collection() -> Collection:
    """Of all memories. One of more than FEW is counted once in RECOUNT seconds: that reads the whole index."""
    name = _database()
    kept = _collections.get(name)
    if kept is not None and time.monotonic() - kept[1] < _holds(kept[0].size):
        return kept[0]
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), AVG(length) FROM memory_terms")
        size, mean = cursor.fetchone()
    found = Collection(size, float(mean or 1.0))
    if size > FEW and not connection.in_atomic_block:
        _collections[name] = (found, time.monotonic())
    return found


def frequencies(terms: Sequence[str]) -> dict[str, int]:
    """In how many memories each term stands. A count above FEW is kept for RECOUNT seconds."""
    name = _database()
    now = time.monotonic()
    found: dict[str, int] = {}
    for term in terms:
        count, at = _common.get((name, term), (0, 0.0))
        if count and now - at < _holds(count):
            found[term] = count
    missing = [term for term in terms if term not in found]
    if not missing:
        return found
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            each = " UNION ALL ".join(
                ["SELECT %s::text, count(*) FROM memory_terms WHERE vector @@ %s::tsquery"] * len(missing)
            )
            cursor.execute(each, [value for term in missing for value in (term, f"'{term}'")])
        else:
            marks = ", ".join(["%s"] * len(missing))
            cursor.execute(f"SELECT term, doc FROM memory_terms_vocabulary WHERE term IN ({marks})", missing)  # noqa: S608
        counted = {term: count for term, count in cursor.fetchall() if count}
    if not connection.in_atomic_block:
        if len(_common) > MOST_KEPT:
            _common.clear()
        _common.update({(name, term): (count, now) for term, count in counted.items() if count > FEW})
    return found | counted


def _holds(count: int) -> float:
    """For how many seconds a count is kept."""
    return RECOUNT * max(1.0, count / SLOWER)


def forget() -> None:
    """Let go of the kept counts: another database may stand under the same name."""
    _collections.clear()
    _common.clear()


def _database() -> str:
    of = connection.settings_dict
    return f"{of['HOST']}|{of['PORT']}|{of['NAME']}"


def _read_holding(found: Words, terms: Sequence[str], visible: scope.Where) -> int:
    """Read the newest MOST_CANDIDATES memories that hold any of the terms. Returns how many are not visible."""
    if connection.vendor == "postgresql":
        newest = (
            "SELECT memory_id AS id, length, terms FROM memory_terms WHERE vector @@ %s::tsquery "
            "ORDER BY memory_id DESC LIMIT %s"
        )
        source = f"({newest}) t JOIN memories ON memories.id = t.id"
        wanted = " | ".join(f"'{term}'" for term in terms)
    else:
        newest = "SELECT rowid AS id FROM memory_terms_fts WHERE memory_terms_fts MATCH %s ORDER BY rowid DESC LIMIT %s"
        source = (
            f"({newest}) f CROSS JOIN memory_terms t ON t.memory_id = f.id CROSS JOIN memories ON memories.id = f.id"
        )
        wanted = " OR ".join(f'"{term}"' for term in terms)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT memories.id, t.length, CASE WHEN {visible.sql} THEN t.terms END FROM {source}",  # noqa: S608
            [*visible.params, wanted, MOST_CANDIDATES],
        )
        rows = cursor.fetchall()
    inside = [row for row in rows if row[2] is not None and row[0] not in found.places]
    found.take(inside)
    return sum(row[2] is None for row in rows)
