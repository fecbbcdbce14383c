"""Select the candidates of a statement by recall's two searches; the cost does not grow with the scope."""

from __future__ import annotations

import heapq
from functools import cached_property

from django.db import connection

from memories.recall import keyword_index, keyword_search, vector_search
from memories.recall.filters import EVERYTHING, Where
from memories.recall.query_vector import QueryVector
from memories.recall.terms import index_terms

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
            found = cursor.fetchall()
        return sorted(pk for pk, fit in found if fit) if len(found) <= FEW else None


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
