"""What of a ranking is given: hits that say nearly the same once, each with all that is known of it.

Knows no scope and no scores: whose hits these are, and in which order, is settled before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memories.recall import ranking, rows
from memories.recall.ranking import Candidate, Ranked
from memories.recall.rows import Row
from memories.recall.terms import STOP_WORDS, term_of, words
from memories.recall.values import Hit

NEGATIONS = frozenset({"no", "not", "never", "nor", "without", "cannot", "dont", "doesnt", "isnt", "wont", "cant"})
"""Stop words, some of them, yet two texts that differ in one do not say the same."""


def hits(ranked: Sequence[Ranked], known: Mapping[int, Row], wanted: int) -> tuple[list[Hit], int]:
    """The best `wanted` that differ from one another, and how many others these stand for."""
    compared = {one.candidate.memory_id for one in ranked[: 4 * wanted + 20]}
    said: dict[int, frozenset[str]] = {}

    def terms_of(one: Candidate) -> frozenset[str] | None:
        if one.memory_id in compared and one.memory_id not in said:
            said[one.memory_id] = _said(known[one.memory_id])
        return said.get(one.memory_id)

    kept, stands_for = ranking.collapse(ranked, lambda a, b: ranking.near_identical(terms_of(a), terms_of(b)), wanted)
    twins = sum(len(ids) for ids in stands_for.values())
    return [_hit(known[one.candidate.memory_id], one, stands_for) for one in kept], twins


def _said(row: Row) -> frozenset[str]:
    """What a hit says, for a comparison: its terms, and the negations that are no terms. Of one service only."""
    found = {f"={row.service or ''}"}
    for word in words(row.observation):
        if word not in STOP_WORDS:
            found.add(term_of(word))
        elif word in NEGATIONS:
            found.add(word)
    return frozenset(found)


def _hit(row: Row, one: Ranked, stands_for: Mapping[int, Sequence[int]]) -> Hit:
    return Hit(
        memory_id=row.pk,
        uuid=rows.uuid_of(row),
        observation=row.observation,
        service=row.service,
        category=row.category,
        taxonomy=row.taxonomy,
        confidence=row.confidence,
        score=one.score,
        parts=one.parts,
        project_id=row.project_id,
        agent=row.agent,
        verdict=row.verdict,
        tags=rows.tags_of(row),
        created_at=rows.time_of(row.created_at),
        updated_at=rows.time_of(row.confirmed_at),
        collapsed=tuple(stands_for.get(row.pk, ())),
    )
