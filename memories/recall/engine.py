"""`recall()`: the steps of a search in their order, each timed for the trace.

Reads; what is recorded of it is appended after the answer is made. Knows no surface.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from memories.capture.text import fold
from memories.embedding.state import waiting
from memories.models import Memory
from memories.recall import history, keyword, meaning, profiles, ranking, record, scope, trust, vectors
from memories.recall.meaning import Meaning
from memories.recall.ranking import Candidate, Ranked, Weights
from memories.recall.terms import LONGEST_QUERY, Query, index_terms, read_query, stands_whole, words
from memories.recall.values import Asker, Filters, Hit, Recall, Trace

BY_WORDS = 100
"""Candidates that the words' side puts forward: the best by bm25."""
BY_MEANING = 100
"""Candidates that the meaning's side puts forward: the best by cosine."""
NOTHING_ASKED = Meaning(off="nothing was asked")
NEGATIONS = frozenset({"no", "not", "never", "nor", "without", "cannot", "dont", "doesnt", "isnt", "wont", "cant"})
"""Stop words, some of them, yet two texts that differ in one do not say the same."""


def recall(
    query: str,
    where: Filters = Filters(),  # noqa: B008  (frozen)
    *,
    profile: str = "balanced",
    limit: int | None = None,
    at: datetime | None = None,
    asked_by: Asker | None = None,
    weights: Weights | None = None,
) -> Recall:
    """The memories that answer `query`, best first.

    `profile` is lean, balanced, deep or auto; `limit` (1..100) overrides how many it gives. `at` (aware UTC,
    default as_of, else now) is the time ages are counted to. With `asked_by` the answer is recorded.
    `weights` is another ranking than the configured one (the bench's). Raises InvalidRecall.
    """
    run = _Run(
        where.checked(),
        weights or ranking.configured(settings.CLAUDEOPS_RECALL_AGE),
        at or where.as_of or timezone.now(),
    )
    asked = read_query(query)
    chosen = profiles.chosen(profile, asked)
    profiles.how_many(chosen, limit, [])
    if asked.terms:
        run.find(asked, fold(query[:LONGEST_QUERY]))
    hits = tuple(run.hits(chosen, limit))
    trace = run.trace(asked, chosen.name)
    kept = record.answered(query, where, hits, asked_by, timezone.now()) if asked_by else None
    return Recall(query, hits, trace, kept)


def pool(query: str, where: Filters, *, at: datetime) -> tuple[list[Candidate], str]:
    """Every candidate of a query before it is ranked, and the state of semantic search: for the bench."""
    run = _Run(where.checked(), ranking.WEIGHTS, at)
    asked = read_query(query)
    if asked.terms:
        run.find(asked, fold(query[:LONGEST_QUERY]))
    return run.pool, run.meaning.state


@dataclass(slots=True)
class _Run:
    """One search on its way: what was found so far, what was dropped, how long each step took."""

    filters: Filters
    weights: Weights
    at: datetime
    meaning: Meaning = NOTHING_ASKED
    cosines: dict[int, float] = field(default_factory=dict)
    pending: int = 0
    words: keyword.Words = field(default_factory=keyword.Words)
    rows: dict[int, Memory] = field(default_factory=dict)
    pool: list[Candidate] = field(default_factory=list)
    ranked: list[Ranked] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    steps: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def find(self, asked: Query, text: str) -> None:
        with self.timed("embedding"):
            self.meaning = meaning.of(text)
        with self.timed("words"):
            by_words = self.by_words(asked)
        with self.timed("vectors"):
            by_meaning = self.by_meaning()
        with self.timed("rows"):
            self.load([*by_words, *by_meaning])
            self.complete()
        with self.timed("ranking"):
            self.pool = self.candidates(asked, by_words, by_meaning)
            ranked = ranking.rank(self.pool, self.at, self.weights)
            self.ranked = trust.above_minimum(ranked, self.weights, self.meaning.off != "", self.dropped)

    def by_words(self, asked: Query) -> list[int]:
        """The best candidates by bm25, best first."""
        self.words = keyword.search(asked.terms, self.filters)
        self.dropped[trust.OTHER_SCOPE] += self.words.outside
        scored = [(self.words.bm25(pk, asked.terms), pk) for pk in self.words.terms]
        return [pk for score, pk in sorted(scored, key=lambda pair: (-pair[0], -pair[1])) if score > 0][:BY_WORDS]

    def by_meaning(self) -> list[int]:
        """The best candidates by cosine, best first."""
        model, vector = self.meaning.model, self.meaning.vector
        if model is None or vector is None:
            return []
        near = vectors.search(model, vector, scope.within(self.filters))
        self.dropped[trust.OTHER_SCOPE] += near.outside
        if near.broken:
            self.notes.append(f"{near.broken} stored vectors are of another size and were passed over")
        self.cosines = near.cosines
        return sorted(near.cosines, key=lambda pk: (-near.cosines[pk], -pk))[:BY_MEANING]

    def complete(self) -> None:
        """What one side alone found gets the other side's figures, and the neighbours of a sequence come along."""
        beside = scope.beside(self.rows.values(), self.filters)
        self.load_more(beside)
        keyword.read(self.words, self.rows)
        model, vector = self.meaning.model, self.meaning.vector
        if model is not None and vector is not None:
            missing = [pk for pk in self.rows if pk not in self.cosines]
            self.cosines.update(vectors.cosines(model, vector, missing, scope.within(self.filters)))
            self.pending = waiting(model)

    def load(self, ids: Iterable[int]) -> None:
        """Read the candidates' rows within the scope, as of the time that was asked for, and judge them."""
        wanted = list(dict.fromkeys(ids))
        found = scope.within(self.filters).filter(scope.among(wanted))
        there = {row.pk: row for row in self.as_it_was(found)}
        self.dropped[trust.OTHER_SCOPE] += len(wanted) - len(there)
        self.load_more(there.values())

    def load_more(self, rows: Iterable[Memory]) -> None:
        """Take these rows in, as far as the trust pass has nothing against them."""
        for row in rows:
            state = trust.State(row.observation, row.active, row.verdict, row.taxonomy, row.stale_at is not None)
            reason = trust.objection(state, self.filters.include_hold)
            if reason:
                self.dropped[reason] += 1
            else:
                self.rows[row.pk] = row

    def as_it_was(self, found: Iterable[Memory]) -> Iterable[Memory]:
        if self.filters.as_of is None:
            return found
        return [row for row in history.as_of(found, self.filters.as_of) if history.fits(row, self.filters)]

    def candidates(self, asked: Query, by_words: Sequence[int], by_meaning: Sequence[int]) -> list[Candidate]:
        places = {pk: place for place, pk in enumerate(by_words, 1)}
        near = {pk: place for place, pk in enumerate(by_meaning, 1)}
        turns = {(row.sequence, row.position): pk for pk, row in self.rows.items() if row.sequence}
        of: dict[str, list[int]] = {}
        for (sequence, _), pk in turns.items():
            of.setdefault(sequence, []).append(pk)
        around = {name: {t for pk in ids for t in self.words.terms.get(pk, ())} for name, ids in of.items()}
        return [
            Candidate(
                memory_id=pk,
                confirmed_at=row.updated_at,
                confidence=row.confidence,
                cosine=self.cosines.get(pk),
                vector_rank=near.get(pk),
                coverage=self.words.coverage(pk, asked.terms),
                keyword_rank=places.get(pk),
                keyword_score=self.words.bm25(pk, asked.terms) if pk in places else None,
                shared=self.shared(row, turns, around, asked) if row.sequence else 0.0,
                phrase=stands_whole(asked.wholes, row.observation),
                stale=row.stale_at is not None,
                recall_count=row.recall_count,
                priority=row.persistent or row.approved_at is not None,
                sequence=row.sequence,
                position=row.position,
            )
            for pk, row in self.rows.items()
        ]

    def shared(
        self, row: Memory, turns: dict[tuple[str, int | None], int], around: dict[str, set[str]], asked: Query
    ) -> float:
        """How much of the query a turn covers together with those around it."""
        held = self.words.terms
        parts: list[tuple[Collection[str], float]] = [(held.get(row.pk, ()), 1.0)]
        if row.position is not None:
            for step, share in ((-1, ranking.SHARED_PREVIOUS), (1, ranking.SHARED_NEXT)):
                beside = turns.get((row.sequence, row.position + step))
                parts.append((held.get(beside, ()) if beside else (), share))
        parts.append((around[row.sequence], ranking.SHARED_SEQUENCE))
        return self.words.shared(parts, asked.terms)

    def hits(self, profile: profiles.Profile, limit: int | None) -> list[Hit]:
        wanted = profiles.how_many(profile, limit, [one.score for one in self.ranked])
        said = {one.candidate.memory_id: self.said(one) for one in self.ranked[: 4 * wanted + 20]}
        kept, stands_for = ranking.collapse(
            self.ranked,
            lambda a, b: ranking.near_identical(said.get(a.memory_id), said.get(b.memory_id)),
            wanted,
        )
        twins = sum(len(ids) for ids in stands_for.values())
        self.dropped[trust.NEAR_IDENTICAL] += twins
        self.dropped[trust.BEYOND] += len(self.ranked) - len(kept) - twins
        return [_hit(self.rows[one.candidate.memory_id], one, stands_for) for one in kept]

    def said(self, one: Ranked) -> frozenset[str]:
        """What a hit says, for a comparison: its terms, and the negations that are no terms. Of one service only."""
        row = self.rows[one.candidate.memory_id]
        found = {f"={row.service or ''}", *index_terms(row.observation)}
        return frozenset(found | (NEGATIONS & set(words(row.observation))))

    def trace(self, asked: Query, profile: str) -> Trace:
        if self.words.unindexed:
            self.notes.append(f"{self.words.unindexed} memories are read as they are, not indexed yet")
        return Trace(
            semantic=self.meaning.state,
            profile=profile,
            pending=self.pending,
            candidates=len(self.rows),
            terms=asked.terms,
            searched=self.words.searched,
            dropped={reason: count for reason, count in sorted(self.dropped.items()) if count},
            weights=self.weights.as_dict(),
            steps={name: round(seconds, 6) for name, seconds in self.steps.items()},
            notes=tuple(self.notes),
        )

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.steps[step] = self.steps.get(step, 0.0) + time.perf_counter() - begun


def _hit(row: Memory, one: Ranked, stands_for: dict[int, list[int]]) -> Hit:
    return Hit(
        memory_id=row.pk,
        uuid=row.uuid,
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
        tags=tuple(str(tag) for tag in row.tags or ()),
        created_at=row.created_at,
        updated_at=row.updated_at,
        collapsed=tuple(stands_for.get(row.pk, ())),
    )
