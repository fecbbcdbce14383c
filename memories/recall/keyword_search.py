"""Search memories by terms, from rare to common: scoring every memory with a common word takes 43 ms at 100,000."""

from __future__ import annotations

import math
from collections.abc import Collection as Some
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import combinations
from typing import Any

from django.db import connection

from memories.models import Memory
from memories.recall import as_of as history
from memories.recall import filters, keyword_index
from memories.recall.filters import Where
from memories.recall.keyword_index import Collection
from memories.recall.query import index_terms

K1, B = 0.9, 0.4
"""Measured on short texts: less weight for repetition and length than the usual 1.2 and 0.75."""


@dataclass(slots=True)
class KeywordHits:
    """The memories with any of the query's `terms`: their term counts (`held`) and numbers of terms.

    `searched`: the terms asked of the index; `outside`: hits outside the scope; `unindexed`: memories read as texts.
    """

    terms: tuple[str, ...] = ()
    collection: Collection = field(default_factory=lambda: Collection(0, 1.0))
    frequency: dict[str, int] = field(default_factory=dict)
    searched: tuple[str, ...] = ()
    outside: int = 0
    unindexed: int = 0
    held: dict[int, Mapping[str, int]] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    idf: dict[str, float] = field(default_factory=dict)
    mass: float = 0.0
    figures: dict[int, tuple[float, float]] = field(default_factory=dict)
    """(score, coverage) by memory, as far as computed."""

    def add(self, rows: Iterable[tuple[int, int, str]]) -> None:
        """Add memories: (id, number of terms, the terms separated by spaces)."""
        shared = set(self.terms).intersection
        for pk, length, text in rows:
            words = text.split(" ")
            self.held[pk] = {term: words.count(term) for term in shared(words)}
            self.lengths[pk] = length
            self.figures.pop(pk, None)

    def remove(self, memory_id: int) -> bool:
        """Remove a memory; return whether it was there."""
        self.lengths.pop(memory_id, None)
        self.figures.pop(memory_id, None)
        return self.held.pop(memory_id, None) is not None

    def weigh(self) -> None:
        """Compute the idf of the terms (Robertson's, never negative). A term that occurs nowhere counts as rarest."""
        size = self.collection.size
        counts = ((term, self.frequency.get(term, 0)) for term in self.terms)
        self.idf = {term: math.log(1 + max(0, size - count + 0.5) / (count + 0.5)) for term, count in counts}
        self.mass = sum(self.idf.values())
        self.figures.clear()

    def score(self, memory_id: int) -> float:
        """Return the bm25 score of a memory; 0 for one that was not found."""
        return (self.figures.get(memory_id) or self._figures([memory_id])[memory_id])[0]

    def coverage(self, memory_id: int) -> float:
        """Return the share (0..1) of the query's idf mass that the memory's terms cover."""
        return (self.figures.get(memory_id) or self._figures([memory_id])[memory_id])[1]

    def coverages(self, ids: Iterable[int]) -> list[float]:
        figures = self._figures(ids)
        return [figures[pk][1] for pk in ids]

    def _figures(self, ids: Iterable[int]) -> dict[int, tuple[float, float]]:
        """Return the figures by memory, after computing those of `ids` that are missing."""
        figures, terms, idfs, mass = self.figures, self.terms, self.idf, self.mass or 1.0
        least, by_length = K1 * (1 - B), K1 * B / max(1.0, self.collection.mean_length)
        for pk in ids:
            if pk in figures:
                continue
            counts, score, covered = self.held.get(pk) or {}, 0.0, 0.0
            norm = least + by_length * self.lengths.get(pk, 0)
            for term in terms if len(counts) > 1 else counts:  # in one order: equal memories get equal scores
                if term in counts:
                    idf, times = idfs[term], counts[term]
                    score += idf * times * (K1 + 1) / (times + norm)
                    covered += idf
            figures[pk] = (score, covered / mass)
        return figures

    def best(self, most: int) -> list[int]:
        """Return the memories with the highest scores, best first; of equal ones the newer first."""
        figures = self._figures(self.held)
        scored = sorted([(figures[pk][0], pk) for pk in self.held], reverse=True)
        return [pk for score, pk in scored[:most] if score > 0]

    def terms_in(self, memory_id: int | None) -> Some[str]:
        return self.held.get(memory_id, {}) if memory_id is not None else {}

    def shared_coverage(self, parts: Sequence[tuple[Some[str], float]]) -> float:
        """Compute the coverage by several texts, (its terms, their weight); a term's highest weight counts."""
        if self.mass <= 0:
            return 0.0
        covered = (
            idf * max((share for held, share in parts if term in held), default=0.0) for term, idf in self.idf.items()
        )
        return sum(covered) / self.mass


MOST_READ = 800
"""Memories (the newest) whose terms are read for one query. Above that the rarest terms decide."""
ENOUGH = 50
"""With fewer hits of rare terms within the scope, common ones are searched too."""
SMALL_SCOPE = 4_000
"""A scope of at most this many rows is then read whole."""
MOST_UNINDEXED = 200
"""Unindexed memories (the newest) that a search reads as texts."""


def search(
    terms: Sequence[str],
    scope: Where,
    limit: int = MOST_READ,
    *,
    as_of: datetime | None = None,
    unindexed: int = MOST_UNINDEXED,
    enough: int | None = None,
) -> KeywordHits:
    """Return the memories within `scope` that hold the terms, about `limit` for each step.

    With fewer than `enough` (default ENOUGH) that hold rare terms, common ones are searched. Includes the newest
    `unindexed` memories. `as_of` (aware UTC) adds those with another text then.
    """
    hits = KeywordHits(tuple(terms))
    if not terms:
        return hits
    hits.collection = keyword_index.collection()
    hits.frequency, due = keyword_index.frequencies(terms, hits.collection.size, unindexed)
    rare = sorted((term for term in terms if term in hits.frequency), key=lambda t: (hits.frequency[t], t))
    chosen = selective(rare, hits.frequency, limit)
    hits.searched = tuple(chosen)
    if chosen:
        _read_newest(hits, [(term,) for term in chosen], scope, limit)
        # When the rarest term alone exceeds the limit, not all memories with it were read.
        common = rare if hits.frequency[chosen[0]] > limit else rare[len(chosen) :]
        if common and len(hits.held) < (ENOUGH if enough is None else enough):
            _read_common(hits, common, scope, limit)
    if due:
        _add_texts(hits, _rows_in(scope).filter(pk__in=due).values_list("pk", *keyword_index.TEXTS))
        hits.unindexed = len(due)
    if as_of is not None:
        then = history.as_of(_rows_in(scope).filter(pk__in=history.edited_since(as_of)), as_of)
        _add_texts(hits, ((row.pk, *(getattr(row, name) for name in keyword_index.TEXTS)) for row in then))
    hits.weigh()
    return hits


def read(hits: KeywordHits, ids: Iterable[int], scope: Where) -> None:
    """Add the terms of these memories to `hits`, as far as they are indexed and within the scope."""
    wanted = sorted(set(ids) - hits.held.keys())
    if wanted:
        source, param = filters.listed(wanted)
        _read(hits, f"(SELECT value AS memory_id FROM {source}) f", [param], scope)  # noqa: S608


def selective(rare: Sequence[str], counts: Mapping[str, int], limit: int) -> list[str]:
    """Return terms from rare to common that occur in at most `limit` places in all; at least the rarest."""
    chosen: list[str] = []
    total = 0
    for term in rare:
        total += counts[term]
        if chosen and total > limit:
            break
        chosen.append(term)
    return chosen


def _read_common(hits: KeywordHits, common: Sequence[str], scope: Where, limit: int) -> None:
    """Read memories with two of the three rarest of these terms, then any with one."""
    everything = scope == filters.EVERYTHING and hits.collection.size > SMALL_SCOPE
    small = [] if everything else filters.ids_in(scope, SMALL_SCOPE + 1)
    if not everything and len(small) <= SMALL_SCOPE:
        read(hits, small, scope)
        return
    if len(common) > 1:
        _read_newest(hits, list(combinations(common[:3], 2)), scope, limit)
    if len(hits.held) < ENOUGH:
        _read_newest(hits, [(term,) for term in common], scope, limit)


def _read_newest(hits: KeywordHits, sets: Sequence[tuple[str, ...]], scope: Where, limit: int) -> None:
    newest, wanted = holding(sets)
    if connection.vendor == "postgresql" and len(sets[0]) == 1:
        share = sum(hits.frequency[term] for (term,) in sets) / max(1, hits.collection.size)
        if share * share * hits.collection.size > limit / 2:
            # So common that a scan from the newest row finds enough sooner than the index lists them all.
            newest = newest.replace(" OFFSET 0", "")
    _read(hits, f"({newest} ORDER BY memory_id DESC LIMIT %s) f", [wanted, limit], scope)


def holding(sets: Sequence[tuple[str, ...]]) -> tuple[str, str]:
    """Return (SQL for the `memory_id` of memories with all terms of any set, its parameter)."""
    if connection.vendor == "postgresql":  # OFFSET stops pushdown: the planner would scan all rows
        statement = (
            "SELECT memory_id FROM (SELECT memory_id FROM memory_terms WHERE vector @@ %s::tsquery OFFSET 0) held"
        )
        both, any_of, quote = " & ", " | ", "'"
    else:
        statement = "SELECT rowid AS memory_id FROM memory_terms_fts WHERE memory_terms_fts MATCH %s"
        both, any_of, quote = " AND ", " OR ", '"'
    return statement, any_of.join(f"({both.join(f'{quote}{term}{quote}' for term in terms)})" for terms in sets)


def _read(hits: KeywordHits, source: str, params: Sequence[Any], scope: Where) -> None:
    """Read the terms of the memories in `source` (a FROM item `f`), as far as they are within the scope."""
    terms, values, join = "t.terms", [], ""
    if scope != filters.EVERYTHING:
        terms, values = f"CASE WHEN {scope.sql} THEN t.terms END", [*scope.params]
        join = "CROSS JOIN memories"
    condition = "WHERE t.memory_id = f.memory_id" + (" AND memories.id = f.memory_id" if join else "")
    with connection.cursor() as cursor:
        cursor.execute(  # CROSS JOIN: SQLite keeps this order
            f"SELECT t.memory_id, t.length, {terms} FROM {source} CROSS JOIN memory_terms t {join} {condition}",  # noqa: S608
            [*values, *params],
        )
        rows = cursor.fetchall()
    inside = [row for row in rows if row[2] is not None]
    hits.outside += len(rows) - len(inside)
    hits.add(row for row in inside if row[0] not in hits.held)


def _rows_in(scope: Where) -> Any:
    return Memory.objects.extra(where=[scope.sql], params=scope.params)  # noqa: S610  (our own condition)


def _add_texts(hits: KeywordHits, rows: Iterable[tuple[Any, ...]]) -> None:
    """Add memories by their texts, (id, the indexed columns), replacing what the index returned."""
    for pk, *texts in rows:
        terms = index_terms(keyword_index.text_of(*texts))
        there = set(hits.terms).intersection(terms)
        if not hits.remove(pk):
            hits.collection = replace(hits.collection, size=hits.collection.size + 1)
            for term in there:
                hits.frequency[term] = hits.frequency.get(term, 0) + 1
        if there:
            hits.add([(pk, len(terms), " ".join(terms))])
