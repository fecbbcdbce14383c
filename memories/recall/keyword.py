"""The words' side of a recall: which memories hold the query's rare terms, how much of it they cover.

Reads the index of `index.py`. A common word alone never makes it read half the table: terms are taken by how
rare they are until the candidates are few enough.
"""

from __future__ import annotations

import math
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.db import connection

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
MOST_KEPT = 10_000

_collections: dict[str, tuple[Collection, float]] = {}
_common: dict[tuple[str, str], tuple[int, float]] = {}


@dataclass(frozen=True, slots=True)
class Collection:
    """How many memories are indexed, and the mean number of their terms."""

    size: int
    mean_length: float


class Held(NamedTuple):
    """Of one memory: how many terms it has, and how often each of the query's terms is among them."""

    length: int
    times: dict[str, int]


@dataclass(slots=True)
class Words:
    """What the words found for the query's `terms`. `held` is what each candidate that was read has of them."""

    terms: tuple[str, ...] = ()
    frequency: dict[str, int] = field(default_factory=dict)
    searched: tuple[str, ...] = ()
    collection: Collection = Collection(0, 1.0)
    held: dict[int, Held] = field(default_factory=dict)
    outside: int = 0
    unindexed: int = 0
    idf: dict[str, float] = field(default_factory=dict)
    mass: float = 0.0

    def weigh(self) -> None:
        """Set the terms' idf: Robertson's, never negative. A term that no memory holds counts as the rarest."""
        size = self.collection.size
        counted = ((term, self.frequency.get(term, 0)) for term in self.terms)
        self.idf = {term: math.log(1 + max(0, size - df + 0.5) / (df + 0.5)) for term, df in counted}
        self.mass = sum(self.idf.values())

    def times(self, memory_id: int | None) -> dict[str, int]:
        """How often each of the query's terms stands in this memory; empty for one that was not read."""
        held = self.held.get(memory_id) if memory_id is not None else None
        return held.times if held else {}

    def coverage(self, memory_id: int) -> float:
        """The share (0..1) of the query's idf mass that this memory's terms cover."""
        times = self.times(memory_id)
        return sum(self.idf[term] for term in times) / self.mass if times and self.mass > 0 else 0.0

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
        held = self.held.get(memory_id)
        if not held:
            return 0.0
        norm = K1 * (1 - B + B * held.length / max(1.0, self.collection.mean_length))
        return sum(self.idf[term] * times * (K1 + 1) / (times + norm) for term, times in held.times.items())


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
    ids = _holding(chosen) if chosen else []
    tail = index.due(TAIL)
    rows = scope.within(filters)
    visible = scope.where(rows)
    read(found, ids, visible)
    found.outside = len(ids) - len(found.held)
    if len(found.held) < ENOUGH and len(chosen) < len(rare):
        small = list(rows.order_by("pk").values_list("pk", flat=True)[: SMALL_SCOPE + 1])
        read(found, small if len(small) <= SMALL_SCOPE else _holding(rare), visible)
    if tail:
        texts = rows.filter(pk__in=tail).values_list("pk", *index.TEXTS)
        _read_texts(found, texts)
        found.unindexed = len(tail)
    if filters.as_of is not None:
        edited = rows.filter(pk__in=history.edited_since(filters.as_of))
        then = history.as_of(edited, filters.as_of)
        _read_texts(found, ((row.pk, *(getattr(row, name) for name in index.TEXTS)) for row in then))
    found.weigh()
    return found


def _read_texts(found: Words, rows: Iterable[tuple[Any, ...]]) -> None:
    """Put texts that are not in the index, or were not then, beside the others: (id, and what of it is indexed)."""
    for pk, *texts in rows:
        held = _held(found.terms, index_terms(index.text_of(*texts)))
        if found.held.pop(pk, None) is None:
            found.collection = replace(found.collection, size=found.collection.size + 1)
            for term in held.times:
                found.frequency[term] = found.frequency.get(term, 0) + 1
        if held.times:
            found.held[pk] = held


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
    wanted = sorted(set(ids) - found.held.keys())
    if not wanted:
        return
    there, listed = scope.listed(wanted)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.memory_id, t.terms FROM memory_terms t JOIN memories ON memories.id = t.memory_id "  # noqa: S608
            f"WHERE t.memory_id IN ({there}) AND {visible.sql}",
            [listed, *visible.params],
        )
        for pk, terms in cursor.fetchall():
            found.held[pk] = _held(found.terms, terms.split())


def _held(asked: Sequence[str], terms: list[str]) -> Held:
    there = set(asked).intersection(terms)
    return Held(len(terms), {term: terms.count(term) for term in asked if term in there})


def collection() -> Collection:
    """Of all memories. One of more than FEW is counted once in RECOUNT seconds: that reads the whole index."""
    name = _database()
    kept = _collections.get(name)
    if kept is not None and time.monotonic() - kept[1] < RECOUNT:
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
        if count and now - at < RECOUNT:
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


def forget() -> None:
    """Let go of the kept counts: another database may stand under the same name."""
    _collections.clear()
    _common.clear()


def _database() -> str:
    of = connection.settings_dict
    return f"{of['HOST']}|{of['PORT']}|{of['NAME']}"


def _holding(terms: Sequence[str], most: int = MOST_CANDIDATES) -> list[int]:
    """Ids of memories that hold any of the terms, the newest first."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT memory_id FROM memory_terms WHERE vector @@ %s::tsquery ORDER BY memory_id DESC LIMIT %s",
                [" | ".join(f"'{term}'" for term in terms), most],
            )
        else:
            cursor.execute(
                "SELECT rowid FROM memory_terms_fts WHERE memory_terms_fts MATCH %s ORDER BY rowid DESC LIMIT %s",
                [" OR ".join(f'"{term}"' for term in terms), most],
            )
        return [pk for (pk,) in cursor.fetchall()]
