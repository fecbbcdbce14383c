"""The words' side of a recall: which memories hold the query's rare terms, how much of it they cover.

Reads the index of `index.py`. A common word alone never makes it read half the table: terms are taken by how
rare they are until the candidates are few enough.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import connection

from memories.models import MemoryTerms
from memories.models.memory import MemoryQuerySet
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
"""Frequencies up to here are asked for each time; a more common term's share hardly moves and is kept."""


@dataclass(frozen=True, slots=True)
class Collection:
    """How many memories are indexed, and the mean number of their terms."""

    size: int
    mean_length: float


@dataclass(slots=True)
class Words:
    """What the words found. `terms` holds the distinct terms with their counts of each candidate that was read."""

    frequency: dict[str, int] = field(default_factory=dict)
    searched: tuple[str, ...] = ()
    collection: Collection = Collection(0, 1.0)
    terms: dict[int, dict[str, int]] = field(default_factory=dict)
    outside: int = 0
    unindexed: int = 0

    def idf(self, term: str) -> float:
        """Robertson's, never negative. A term that no memory holds counts as the rarest."""
        df = self.frequency.get(term, 0)
        return math.log(1 + (self.collection.size - df + 0.5) / (df + 0.5))

    def coverage(self, memory_id: int, terms: Sequence[str]) -> float:
        """The share (0..1) of the query's idf mass that this memory's terms cover."""
        held = self.terms.get(memory_id)
        total = sum(self.idf(term) for term in terms)
        if not held or total <= 0:
            return 0.0
        return sum(self.idf(term) for term in terms if term in held) / total

    def shared(self, parts: Sequence[tuple[Container[str], float]], terms: Sequence[str]) -> float:
        """Coverage by several texts: (their terms, what a term counts that stands there). The best one counts."""
        total = sum(self.idf(term) for term in terms)
        if total <= 0:
            return 0.0
        shares = ((term, max((share for held, share in parts if term in held), default=0.0)) for term in terms)
        return sum(self.idf(term) * share for term, share in shares) / total

    def bm25(self, memory_id: int, terms: Sequence[str]) -> float:
        held = self.terms.get(memory_id)
        if not held:
            return 0.0
        length = sum(held.values()) / max(1.0, self.collection.mean_length)
        score = 0.0
        for term in terms:
            times = held.get(term, 0)
            if times:
                score += self.idf(term) * times * (K1 + 1) / (times + K1 * (1 - B + B * length))
        return score


def search(terms: Sequence[str], filters: Filters) -> Words:
    """The candidates of a query's terms within the filters' scope, those not indexed yet among them."""
    found = Words()
    if not terms:
        return found
    found.collection = collection()
    found.frequency = frequencies(terms)
    rare = sorted((term for term in terms if found.frequency.get(term)), key=lambda t: (found.frequency[t], t))
    chosen = selective(rare, found.frequency)
    found.searched = tuple(chosen)
    ids = _holding(chosen) if chosen else []
    tail = index.due(TAIL)
    visible = scope.within(filters)
    seen = set(_within(visible, ids))
    found.outside = len(ids) - len(seen)
    if len(seen) < ENOUGH and len(chosen) < len(rare):
        small = list(visible.order_by("pk").values_list("pk", flat=True)[: SMALL_SCOPE + 1])
        seen |= set(small if len(small) <= SMALL_SCOPE else _within(visible, _holding(rare)))
    read(found, seen)
    if tail:
        rows = visible.filter(pk__in=tail).values_list("pk", *index.TEXTS)
        _read_texts(found, rows, set(terms))
        found.unindexed = len(tail)
    if filters.as_of is not None:
        edited = visible.filter(pk__in=history.edited_since(filters.as_of))
        then = history.as_of(edited, filters.as_of)
        _read_texts(found, ((row.pk, *(getattr(row, name) for name in index.TEXTS)) for row in then), set(terms))
    return found


def _read_texts(found: Words, rows: Iterable[tuple[Any, ...]], wanted: set[str]) -> None:
    """Put texts that are not in the index, or were not then, beside the others: (id, and what of it is indexed)."""
    for pk, *texts in rows:
        counted = _counted(index_terms(index.text_of(*texts)))
        if found.terms.pop(pk, None) is None:
            found.collection = replace(found.collection, size=found.collection.size + 1)
            for term in wanted & counted.keys():
                found.frequency[term] = found.frequency.get(term, 0) + 1
        if wanted & counted.keys():
            found.terms[pk] = counted


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


def read(found: Words, ids: Iterable[int]) -> None:
    """Put the terms of these memories into `found`, as far as they are indexed."""
    wanted = sorted(set(ids) - found.terms.keys())
    for pk, terms in MemoryTerms.objects.filter(scope.among(wanted)).values_list("pk", "terms"):
        found.terms[pk] = _counted(terms.split())


def _counted(terms: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for term in terms:
        counts[term] = counts.get(term, 0) + 1
    return counts


def _within(visible: MemoryQuerySet, ids: Sequence[int]) -> list[int]:
    return list(visible.filter(scope.among(ids)).order_by().values_list("pk", flat=True)) if ids else []


def collection() -> Collection:
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), AVG(length) FROM memory_terms")
        size, mean = cursor.fetchone()
    return Collection(size, float(mean or 1.0))


def frequencies(terms: Sequence[str]) -> dict[str, int]:
    """In how many memories each term stands."""
    if not terms:
        return {}
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            found: dict[str, int] = {}
            for term in terms:
                cursor.execute("SELECT count(*) FROM memory_terms WHERE vector @@ %s::tsquery", [f"'{term}'"])
                if count := cursor.fetchone()[0]:
                    found[term] = count
            return found
        marks = ", ".join(["%s"] * len(terms))
        cursor.execute(f"SELECT term, doc FROM memory_terms_vocabulary WHERE term IN ({marks})", list(terms))  # noqa: S608
        return dict(cursor.fetchall())


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
