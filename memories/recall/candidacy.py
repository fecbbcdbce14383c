"""What is known of each memory that was found, in the form the ranking takes: the two sides' figures, its row.

Pure: reads no database, and gives no scores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from memories.recall import ranking
from memories.recall.keyword import Words
from memories.recall.ranking import Candidate
from memories.recall.rows import Row, time_of
from memories.recall.terms import Query, said_by, stands_whole

Turns = Mapping[tuple[str, int | None], int]


def candidates(
    asked: Query,
    rows: Mapping[int, Row],
    words: Words,
    cosines: Mapping[int, float],
    by_words: Sequence[int],
    by_meaning: Sequence[int],
) -> list[Candidate]:
    """A candidate for each of `rows`; `by_words` and `by_meaning` are the sides' own, best first."""
    places = {pk: place for place, pk in enumerate(by_words, 1)}
    near = {pk: place for place, pk in enumerate(by_meaning, 1)}
    turns = {(row.sequence, row.position): pk for pk, row in rows.items() if row.sequence}
    around = _said_around(turns, words)
    wholes, covered, scores = asked.wholes, words.coverage, words.bm25
    found = []
    for pk, row in rows.items():
        place, sequence = places.get(pk), row.sequence
        found.append(
            Candidate(
                pk,
                time_of(row.confirmed_at),
                row.confidence,
                cosines.get(pk),
                near.get(pk),
                covered(pk),
                place,
                scores(pk) if place else None,
                _shared(row, turns, around, words) if sequence else 0.0,
                stands_whole(wholes, row.observation),
                bool(row.stale),
                row.recall_count,
                bool(row.priority),
                sequence,
                row.position,
                row.service or "",
                bool(sequence) and said_by(row.observation, asked.terms),
            )
        )
    return found


def _said_around(turns: Turns, words: Words) -> dict[str, set[str]]:
    """By sequence, which of the query's terms its turns say."""
    said: defaultdict[str, set[str]] = defaultdict(set)
    for (sequence, _), pk in turns.items():
        said[sequence] |= words.times(pk)
    return said


def _shared(row: Row, turns: Turns, around: Mapping[str, set[str]], words: Words) -> float:
    """How much of the query a turn covers together with those around it."""
    parts: list[tuple[Collection[str], float]] = [(words.times(row.pk), 1.0)]
    if row.position is not None:
        for step, share in ((-1, ranking.SHARED_PREVIOUS), (1, ranking.SHARED_NEXT)):
            parts.append((words.times(turns.get((row.sequence, row.position + step))), share))
    parts.append((around[row.sequence], ranking.SHARED_SEQUENCE))
    return words.shared(parts)
