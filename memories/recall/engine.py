"""`recall()`: the steps of a search in their order, each timed for the trace.

Reads; what is recorded of it is appended after the answer is made. Knows no surface.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import numpy as np
from django.conf import settings
from django.utils import timezone

from memories.capture.text import fold
from memories.embedding import Vectors
from memories.recall import (
    aside,
    keyword,
    meaning,
    profiles,
    ranking,
    record,
    replaced,
    scope,
    shown,
    trust,
    vectors,
)
from memories.recall.candidacy import candidates
from memories.recall.meaning import Meaning
from memories.recall.newer import Likeness
from memories.recall.ranking import Candidate, Ranked, Weights
from memories.recall.reading import Reading
from memories.recall.rewrite import Rewritten
from memories.recall.rewrite import rewritten as rewrite_query
from memories.recall.terms import LONGEST_QUERY, Query, read_query
from memories.recall.values import Asker, Filters, Hit, Recall, Trace

CANDIDATES = 60
"""Candidates that each side puts forward. On 1,000 facts the figures are those of 100, and of 40."""
CANDIDATES_OF_TURNS = 100
"""So many where turns of a conversation are among them: these lend each other part of their score."""
MORE_THAN_ASKED = 40
"""And so many more than are to be given: some are held, inactive or another's twin."""
NOT_REWRITTEN = Rewritten("off: not asked for")
NOTHING_ASKED = Meaning(off="nothing was asked")


def recall(
    query: str,
    where: Filters = Filters(),  # noqa: B008  (frozen)
    *,
    profile: str = "balanced",
    limit: int | None = None,
    at: datetime | None = None,
    asked_by: Asker | None = None,
    weights: Weights | None = None,
    rewrite: bool = True,
) -> Recall:
    """The memories that answer `query`, best first.

    `profile` is lean, balanced, deep or auto; `limit` (1..100) overrides how many it gives. `at` (aware UTC,
    default as_of, else now) is the time ages are counted to. With `asked_by` the answer is recorded.
    `weights` is another ranking than the configured one (the bench's). `rewrite`: whether the query may also be
    searched in other words, when the profile has it and the settings name a model. Raises InvalidRecall.
    """
    run = _Run(
        where.checked(),
        weights or ranking.configured(settings.CLAUDEOPS_RECALL_AGE),
        at or where.as_of or timezone.now(),
        max(CANDIDATES, (limit or 0) + MORE_THAN_ASKED),
    )
    asked = read_query(query)
    chosen = profiles.chosen(profile, asked)
    profiles.how_many(chosen, limit, [])
    if asked.terms:
        run.find(asked, fold(query[:LONGEST_QUERY]))
        if rewrite:
            run.find_beside(query, asked, chosen)
    hits = tuple(run.hits(chosen, limit))
    trace = run.trace(asked, chosen.name)
    kept = record.answered(query, where, hits, asked_by, timezone.now(), run.other.text) if asked_by else None
    return Recall(query, hits, trace, kept)


def pool(query: str, where: Filters, *, at: datetime) -> tuple[list[Candidate], str, Likeness]:
    """Every candidate of a query before it is ranked, the state of semantic search, and how alike
    candidates are: for the bench."""
    run = _Run(where.checked(), ranking.WEIGHTS, at)
    asked = read_query(query)
    if asked.terms:
        run.find(asked, fold(query[:LONGEST_QUERY]))
    return run.pool, run.meaning.state, run.likeness


@dataclass(slots=True)
class _Run:
    """One search on its way: what was read so far, what was dropped, how long each step took."""

    filters: Filters
    weights: Weights
    at: datetime
    most: int = CANDIDATES
    asked: Query | None = None
    meaning: Meaning = NOTHING_ASKED
    cosines: dict[int, float] = field(default_factory=dict)
    ahead: vectors.Ahead | None = None
    pending: int = 0
    vectors_by: str = ""
    words: keyword.Words = field(default_factory=keyword.Words)
    found: Reading = field(default_factory=Reading)
    pool: list[Candidate] = field(default_factory=list)
    ranked: list[Ranked] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    steps: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    other: Rewritten = NOT_REWRITTEN
    searched: tuple[str, ...] = ()

    def find(self, asked: Query, text: str) -> None:
        self.asked = asked
        with self.timed("embedding"):
            by_vector = self.begin(text)
        self.found = Reading(self.filters, scope.of(self.filters), self.dropped)
        with self.timed("words"):
            by_words = self.by_words(asked)
        with self.timed("embedding"):  # what is left of it
            self.meaning = by_vector()
        with self.timed("vectors"):
            chosen, by_meaning = self.by_meaning(by_words)
        with self.timed("rows"):
            self.found.judge([*chosen, *by_meaning])
            self.complete(set(chosen))
        with self.timed("ranking"):
            self.pool = candidates(asked, self.found.rows, self.words, self.cosines, by_words, by_meaning)
            ranked = ranking.rank(self.pool, self.at, self.weights, likeness=self.likeness)
            self.ranked = trust.above_minimum(ranked, self.weights, self.meaning.off != "", self.dropped)

    def find_beside(self, query: str, asked: Query, profile: profiles.Profile) -> None:
        """Search the query in other words as well. A memory's score is the better of the two, so none loses any."""
        if not profile.rewrite:
            self.other = Rewritten(f"off: not in the profile {profile.name}")
            return
        with self.timed("rewrite"):
            self.other = rewrite_query(query, asked)
        if not self.other.text:
            return
        beside = _Run(self.filters, self.weights, self.at, self.most)
        beside.find(read_query(self.other.text), self.other.text)
        self.found.rows |= beside.found.rows
        best: dict[int, Ranked] = {}
        for one in (*self.ranked, *beside.ranked):
            held = best.get(one.candidate.memory_id)
            if held is None or one.score > held.score:
                best[one.candidate.memory_id] = one
        self.ranked = ranking.in_order(best.values())
        self.dropped |= beside.dropped  # the larger count of each: most are the same memories
        for name, seconds in beside.steps.items():
            self.steps[name] = self.steps.get(name, 0.0) + seconds
        self.notes += [note for note in beside.notes if note not in self.notes]
        self.searched = tuple(dict.fromkeys((*self.words.searched, *beside.words.searched)))

    def begin(self, text: str) -> Callable[[], Meaning]:
        """Begin to look for what the query means, beside what its words find; what is returned waits for it."""
        asking = meaning.asking(text)
        if isinstance(asking, Meaning):
            return lambda: asking
        there = vectors.ready(asking.answering.model, asking.answering.newest)

        def work() -> Vectors:
            vector = asking.vector()
            if there is not None:
                self.ahead = vectors.Ahead.of(there, vector)
            return vector

        return partial(asking.meaning, aside.begin(work))

    def by_words(self, asked: Query) -> list[int]:
        """The best candidates by bm25, best first."""
        self.words = keyword.search(asked.terms, self.filters)
        self.dropped[trust.OTHER_SCOPE] += self.words.outside
        return self.words.best(keyword.MOST_CANDIDATES)

    def by_meaning(self, by_words: Sequence[int]) -> tuple[list[int], list[int]]:
        """(of `by_words` those to go on with, the best candidates by cosine), each best first.

        The words found hundreds, and many hold as much of the query: their sketches say which are near it as well.
        """
        model, vector = self.meaning.model, self.meaning.vector
        if model is None or vector is None:
            return list(by_words[: max(self.most, CANDIDATES_OF_TURNS)]), []
        search, read = (
            vectors.Search(model, vector, self.found.visible, ahead=self.ahead),
            self.found.with_vectors(model.pk),
        )
        cosines = search.about(by_words)
        chosen = self.chosen(by_words, cosines)
        near = search.near(chosen, read, self.most)
        if self.most < CANDIDATES_OF_TURNS and any(row.sequence for row in self.found.read.values()):
            self.most = CANDIDATES_OF_TURNS
            chosen = self.chosen(by_words, cosines)
            near = search.near(chosen, read, self.most)
        self.dropped[trust.OTHER_SCOPE] += near.outside
        if near.broken:
            self.notes.append(f"{near.broken} stored vectors have another size or no numbers and were passed over")
        self.cosines, self.vectors_by = near.cosines, near.by
        best = heapq.nlargest(self.most, ((cosine, pk) for pk, cosine in near.cosines.items()))
        return chosen, [pk for _, pk in best]

    def chosen(self, by_words: Sequence[int], cosines: Vectors | None) -> list[int]:
        """Those with the most of both, or by words alone, in the order of the words."""
        if cosines is None or len(by_words) <= self.most:
            return list(by_words[: self.most])
        covered = np.array([self.words.coverage(pk) for pk in by_words])
        scores = ranking.both(np.nan_to_num(cosines), covered, self.weights)
        return [by_words[place] for place in np.sort(np.argsort(-scores, kind="stable")[: self.most])]

    def complete(self, looked_up: Collection[int]) -> None:
        """What one side alone found gets the other side's figures, and the neighbours of a sequence come along."""
        self.found.judge_beside()
        self.read_terms()
        model, vector = self.meaning.model, self.meaning.vector
        if model is not None and vector is not None:
            missing = [pk for pk in self.found.rows if pk not in self.cosines and pk not in looked_up]
            self.cosines.update(vectors.cosines(model, vector, missing, self.found.visible))
            self.pending = self.meaning.waiting

    def read_terms(self) -> None:
        """The terms of what the words did not find: they came with the rows."""
        new = [row for pk, row in self.found.rows.items() if pk not in self.words.places]
        if self.filters.as_of is not None:  # its rows are as they were, the index is of today
            keyword.read(self.words, [row.pk for row in new], self.found.visible)
        else:
            self.words.take([(row.pk, row.length or 0, row.terms) for row in new if row.terms is not None])
        self.words.weigh()

    def likeness(self, ids: Sequence[int]) -> Vectors:
        """How likely each candidate says anew what an earlier one said: for what replaced what."""
        model = self.meaning.model
        if model is None or self.asked is None:
            return np.zeros((len(ids), len(ids)), dtype=np.float32)
        found = [self.found.rows[pk] for pk in ids]
        floats: dict[int, bytes | memoryview | None] = {row.pk: row.vector for row in found if row.vector is not None}
        floats |= vectors.stored(model, [pk for pk in ids if pk not in floats], self.found.visible)
        cosines = vectors.between([floats.get(pk) for pk in ids], model.dimensions)
        return replaced.likely(cosines, found, self.asked)

    def hits(self, profile: profiles.Profile, limit: int | None) -> list[Hit]:
        wanted = profiles.how_many(profile, limit, [one.score for one in self.ranked])
        found, twins = shown.hits(self.ranked, self.found.rows, wanted)
        self.dropped[trust.NEAR_IDENTICAL] += twins
        self.dropped[trust.BEYOND] += len(self.ranked) - len(found) - twins
        return found

    def trace(self, asked: Query, profile: str) -> Trace:
        if self.words.unindexed:
            self.notes.append(f"{self.words.unindexed} memories are read as they are, not indexed yet")
        return Trace(
            semantic=self.meaning.state,
            profile=profile,
            vectors=self.vectors_by,
            pending=self.pending,
            candidates=len(self.found.rows),
            terms=asked.terms,
            rewritten=self.other.text,
            rewrite=self.other.state,
            searched=self.searched or self.words.searched,
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
