"""Search memories by terms, from rare to common: scoring every memory with a common word takes 43 ms at 100,000."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import combinations
from typing import Any

from django.db import connection

from memories.models import Memory
from memories.recall import as_of as history
from memories.recall import filters, keyword_index, term_statistics
from memories.recall.bm25 import KeywordHits
from memories.recall.filters import Where
from memories.recall.terms import index_terms

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
    hits.collection = term_statistics.collection()
    hits.frequency, due = term_statistics.frequencies(terms, hits.collection.size, unindexed)
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
        source, given = filters.listed(wanted)
        _read(hits, f"(SELECT value AS memory_id FROM {source}) f", [given], scope)  # noqa: S608


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
