"""Select the candidate memories to compare a statement with: the same text, near in words, near in meaning.

Built on recall's two searches within the scope, so the cost grows with neither the table nor the scope.
"""

from __future__ import annotations

import heapq
from functools import cached_property

from django.db import connection

from memories.recall import keyword_search, vector_search
from memories.recall.filters import EVERYTHING, Where
from memories.recall.query_vector import QueryVector
from memories.recall.terms import index_terms

FEW = 300
"""A scope of at most this many rows is read itself."""
SHARED = 0.15
"""Two texts that share less than this part of the new one's idf mass are not one fact: comparing them takes a
millisecond."""
MOST_TERMS = 64
UNINDEXED = 1_000
"""Memories not indexed yet that are read, the newest. Of more, the same text alone is found until they are indexed."""

_SAME = (
    "SELECT id FROM memories WHERE LOWER(SUBSTR(observation, 1, 100)) = LOWER(SUBSTR(CAST(%s AS text), 1, 100)) "
    "AND LOWER(observation) = LOWER(CAST(%s AS text))"
)


class Scope:
    """The rows that a statement can be compared with: `within` its scope and `fit` for comparison; `where` is both."""

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


def in_words(scope: Scope, text: str, service: str | None, most: int) -> set[int]:
    """The `most` memories that share most of the text's words, weighted by idf, and those with the same text.

    The latter may lie outside the scope. `service` is the service of the whole scope, if it has one.
    """
    terms = list(dict.fromkeys(index_terms(text)))
    named = index_terms(service) if service else ()  # these tell nothing apart
    own = [term for term in terms if term not in named] or terms
    hits = keyword_search.search(own[:MOST_TERMS], scope.where, unindexed=UNINDEXED)
    near = heapq.nsmallest(most, ((-hits.coverage(pk), pk) for pk in hits.held))
    return {*same_text(text), *(pk for coverage, pk in near if -coverage > SHARED)}


def in_meaning(scope: Scope, vector: QueryVector, most: int) -> list[int]:
    """The `most` memories with the nearest vectors."""
    if scope.few is not None:
        cosines = vector_search.cosines(vector, scope.few, EVERYTHING)
    else:
        cosines = vector_search.nearest(vector, scope.where, most).cosines
    return heapq.nlargest(most, cosines, key=lambda pk: (cosines[pk], -pk))


def same_text(text: str) -> list[int]:
    """Memories of any scope with this text, ignoring the case of ASCII letters. Uses no index of terms."""
    with connection.cursor() as cursor:
        cursor.execute(_SAME, [text, text])
        return [pk for (pk,) in cursor.fetchall()]
