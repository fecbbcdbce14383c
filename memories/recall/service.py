"""The door of recall: `recall` searches within filters, `ask` within a caller's access. Logs after the answer."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import numpy as np
from django.utils import timezone

from memories.access import Access, project_of
from memories.capture import fields
from memories.capture.text import fold
from memories.embedding import Vectors
from memories.errors import AccessDenied
from memories.models import Memory, Project, Scope
from memories.recall import (
    as_of,
    filters,
    fusion,
    keyword_search,
    log,
    narratives,
    rerank,
    results,
    supersession,
    trust,
    vector_search,
)
from memories.recall.filters import ANY_AGENT, Filters, InvalidRecall
from memories.recall.fusion import Weights
from memories.recall.keyword_search import KeywordHits
from memories.recall.query import LONGEST_QUERY, Query, read_query, said_by, stands_whole
from memories.recall.query_vector import QueryVector, start_query_vector
from memories.recall.results import Asker, Candidate, Hit, Recall, Trace
from memories.recall.rewrite import Rewritten
from memories.recall.rewrite import rewritten as rewrite_query
from memories.recall.supersession import Likeness
from memories.taxonomy import TAXONOMIES

CANDIDATES = 60
"""Candidates of each search. On 1,000 facts, 40 and 100 give the same figures."""
CANDIDATES_OF_TURNS = 100
"""The same for turns of a conversation, which lend each other part of their score."""
MORE_THAN_ASKED = 40
"""Candidates beyond the requested hits: some are held, inactive or near-duplicates."""

GLOBAL, NARRATIVES = "global", "narratives"


@dataclass(frozen=True, slots=True)
class Question:
    """A query by names: `project` a slug or `global`, `service` one word or `general`, `as_of` aware UTC.

    `include` names what else is wanted: NARRATIVES of observed sessions, which nobody reviewed.
    """

    query: str
    project: str | None = None
    agent: str | None = None
    service: str | None = None
    category: str | None = None
    taxonomy: str | None = None
    tags: tuple[str, ...] = ()
    limit: int | None = None
    profile: str = "balanced"
    as_of: datetime | None = None
    include_hold: bool = False
    include: tuple[str, ...] = ()


def ask(access: Access, question: Question, surface: str) -> Recall:
    """Answer within what `access` may see, and log it.

    A confined caller is not told what other projects have. Raises InvalidRecall, InvalidMemory for an impossible
    service, AccessDenied, ProjectNotFound.
    """
    asker = Asker(surface, access.actor, access.session_id)
    filters = filters_of(access, question)
    answer = recall(question.query, filters, profile=question.profile, limit=question.limit, asked_by=asker)
    if NARRATIVES in question.include:
        answer = replace(answer, narratives=narratives.search(question.query, filters))
    if access.confined and trust.OTHER_SCOPE in answer.trace.dropped:
        dropped = {reason: count for reason, count in answer.trace.dropped.items() if reason != trust.OTHER_SCOPE}
        answer = replace(answer, trace=replace(answer.trace, dropped=dropped))
    return answer


def by_person(name: str) -> Access:
    """Return the access of a signed-in member of staff: everything, as on every page."""
    return Access(name, frozenset({Scope.REVIEW.value}))


def as_data(found: Recall) -> dict[str, Any]:
    """Serialise the answer, each hit with its project's slug."""
    data = found.as_dict()
    slugs = dict(Project.objects.filter(pk__in={hit.project_id for hit in found.hits}).values_list("pk", "slug"))
    for hit in data["hits"]:
        hit["project"] = slugs.get(hit.pop("project_id"))
    return data


def filters_of(access: Access, question: Question) -> Filters:
    """Resolve the question's names to filters. Raises as `ask` does."""
    if question.category and not any(question.category in one.categories for one in TAXONOMIES.values()):
        categories = sorted({category for one in TAXONOMIES.values() for category in one.categories})
        raise InvalidRecall(f"category is {question.category!r}; allowed are {', '.join(categories)}.")
    if unknown := sorted(set(question.include) - {NARRATIVES}):
        raise InvalidRecall(f"include is {unknown[0]!r}; allowed is {NARRATIVES}.")
    if question.include_hold or question.include:
        access.require(Scope.REVIEW)
    return Filters(
        project=_project(access, question.project),
        agent=_agent(access, question.agent),
        services=(fields.checked_service(question.service),) if question.service else None,
        taxonomy=question.taxonomy or None,
        categories=(question.category,) if question.category else None,
        tags=tuple(question.tags),
        include_hold=question.include_hold,
        trusted_only=not access.may(Scope.REVIEW),
        as_of=question.as_of,
    ).checked()


def _project(access: Access, slug: str | None) -> int | Literal["any"] | None:
    if slug == GLOBAL and not Project.objects.filter(slug=GLOBAL).exists():
        return None  # everybody may see global memories
    project = project_of(access, slug)
    return access.project if access.confined or project is None else project.pk


def _agent(access: Access, slug: str | None) -> str | None:
    if not slug or slug == access.agent:
        return access.agent
    if access.agent != ANY_AGENT:
        raise AccessDenied(f"{access.actor} asks for its own agent only.", "Leave the agent out.")
    return slug


def recall(
    query: str,
    where: Filters,
    *,
    profile: str = "balanced",
    limit: int | None = None,
    at: datetime | None = None,
    asked_by: Asker | None = None,
    weights: Weights | None = None,
    rewrite: bool = True,
    worded: bool = False,
) -> Recall:
    """Return the memories that answer `query` within `where`, best first.

    `profile` is lean, balanced, deep or auto; `limit` (1..100) overrides how many it returns. Ages count to `at` (aware
    UTC, default as_of, else now). With `asked_by` the answer is logged. `weights` replaces the configured ranking
    (benchmarks). `rewrite` also searches a rewritten query, when profile and settings allow it. `worded`: only memories
    that share a word with the query, a rare one if any does; their meaning counts too. A third of the time, for a
    caller who takes strong matches alone. Raises InvalidRecall.
    """
    weights = weights or fusion.configured()
    most = max(CANDIDATES, (limit or 0) + MORE_THAN_ASKED)
    search = _Search(where.checked(), weights, at or where.as_of or timezone.now(), most, worded=worded)
    parsed_query = read_query(query)
    chosen = rerank.profile_named(profile, parsed_query)
    rerank.hits_to_return(chosen, limit, [])
    if parsed_query.terms:
        search.run(parsed_query, fold(query[:LONGEST_QUERY]))
        if rewrite:
            search.run_rewritten(query, parsed_query, chosen)
    hits = tuple(search.hits(chosen, limit))
    trace = search.trace(parsed_query, chosen.name)
    entry = log.add(query, where, hits, asked_by, timezone.now(), search.other.text) if asked_by else None
    return Recall(query, hits, trace, entry)


def candidates_of(query: str, where: Filters, *, at: datetime) -> tuple[list[Candidate], str, Likeness]:
    """Return (unranked candidates, the state of semantic search, their likeness), for benchmarks."""
    search = _Search(where.checked(), fusion.WEIGHTS, at, CANDIDATES)
    parsed_query = read_query(query)
    if parsed_query.terms:
        search.run(parsed_query, fold(query[:LONGEST_QUERY]))
    return list(search.candidates.values()), search.semantic, search.likeness


class _Search:
    def __init__(self, where: Filters, weights: Weights, at: datetime, most: int, *, worded: bool = False) -> None:
        self.worded = worded
        self.filters, self.weights, self.at, self.most = where, weights, at, most
        self.scope = filters.scope_of(where)
        self.asked = read_query("")
        self.vector: QueryVector | str = "nothing was asked"
        self.vectors_by = ""
        self.words = KeywordHits()
        self.cosines: dict[int, float] = {}
        self.candidates: dict[int, Candidate] = {}
        self.ranked: list[Candidate] = []
        self.dropped: Counter[str] = Counter()
        self.steps: defaultdict[str, float] = defaultdict(float)
        self.notes: list[str] = []
        self.other = Rewritten("off: not asked for")
        self.searched: tuple[str, ...] = ()

    @property
    def semantic(self) -> str:
        return f"off: {self.vector}" if isinstance(self.vector, str) else "on"

    def run(self, asked: Query, text: str) -> None:
        self.asked = asked
        vector = start_query_vector(text)
        with self.timed("words"):
            self.words = keyword_search.search(
                asked.terms, self.scope, as_of=self.filters.as_of, enough=1 if self.worded else None
            )
            self.dropped[trust.OTHER_SCOPE] += self.words.outside
            by_words: Sequence[int] = self.words.best(keyword_search.MOST_READ)
        with self.timed("embedding"):
            self.vector = vector()
        with self.timed("rows"):
            near, by_vector = self.read(by_words)
        self.dropped[trust.OTHER_SCOPE] += near.outside
        if near.broken:
            self.notes.append(f"{near.broken} stored vectors have another size or no numbers and were passed over")
        with self.timed("ranking"):
            self.complete(by_words, by_vector)
            ranked = fusion.rank(self.candidates.values(), self.at, self.weights, likeness=self.likeness)
            self.ranked = rerank.above_minimum(ranked, self.weights, isinstance(self.vector, str), self.dropped)

    def run_rewritten(self, query: str, asked: Query, profile: rerank.Profile) -> None:
        """Search the rewritten query as well; a memory's score is the better of the two."""
        if not profile.rewrite:
            self.other = Rewritten(f"off: not in the profile {profile.name}")
            return
        with self.timed("rewrite"):
            self.other = rewrite_query(query, asked)
        if not self.other.text:
            return
        beside = _Search(self.filters, self.weights, self.at, self.most)
        beside.run(read_query(self.other.text), self.other.text)
        self.candidates |= beside.candidates
        best: dict[int, Candidate] = {}
        for one in (*self.ranked, *beside.ranked):
            if one.memory_id not in best or one.score > best[one.memory_id].score:
                best[one.memory_id] = one
        self.ranked = fusion.in_order(best.values())
        self.dropped |= beside.dropped  # the larger count of each: most are the same memories
        for name, seconds in beside.steps.items():
            self.steps[name] += seconds
        self.notes += [note for note in beside.notes if note not in self.notes]
        self.searched = tuple(dict.fromkeys((*self.words.searched, *beside.words.searched)))

    def read(self, by_words: Sequence[int]) -> tuple[vector_search.Nearest, list[int]]:
        """Search vectors and read the candidates of both searches, by one query where numpy searches.

        Returns (the nearest, those of them that are candidates, best first).
        """
        near, search, model = vector_search.Nearest(), None, 0
        if not isinstance(self.vector, str):
            search, model = vector_search.VectorSearch(self.vector), self.vector.model.pk
        estimates = search.estimates(by_words) if search and len(by_words) > self.most else {}
        chosen = self.chosen(by_words, estimates)
        rows: dict[int, results.Row | None] = {}

        def read(ids: Iterable[int]) -> None:
            missing = dict.fromkeys(pk for pk in ids if pk not in rows)
            rows.update(missing)
            rows.update((row[0], row) for row in results.read(list(missing), self.scope, model))

        def vectors_of(ids: Sequence[int]) -> vector_search.Stored:
            read([*ids, *chosen])
            return [(pk, row[-1]) for pk in ids if (row := rows[pk]) and row[-1] is not None]

        if search and not self.worded:
            near = search.nearest(self.scope, vector_search.FOR_RECALL, vectors_of)
        by_vector = sorted(near.cosines, key=lambda pk: (-near.cosines[pk], -pk))
        while True:
            ids = list(dict.fromkeys([*chosen, *by_vector[: self.most]]))
            read(ids)  # what the search did not
            candidates = [results.candidate(row) for pk in ids if (row := rows[pk])]
            if self.most >= CANDIDATES_OF_TURNS or not any(one.sequence for one in candidates):
                break
            self.most = CANDIDATES_OF_TURNS
            chosen = self.chosen(by_words, {**estimates, **near.cosines})
        there = self.as_it_was(candidates)
        self.dropped[trust.OTHER_SCOPE] += len(ids) - len(there)
        self.judge(there)
        around = results.read_neighbours(self.candidates.values(), self.scope, model)
        self.judge(self.as_it_was([results.candidate(row) for row in around]))
        self.cosines, self.vectors_by = dict(near.cosines), near.by if search else ""
        return near, by_vector[: self.most]

    def chosen(self, by_words: Sequence[int], cosines: Mapping[int, float]) -> list[int]:
        """Select, of the memories found by words, those with the best scores including cosines, in their order."""
        if isinstance(self.vector, str):
            return list(by_words[: max(self.most, CANDIDATES_OF_TURNS)])
        if not cosines or len(by_words) <= self.most:
            return list(by_words[: self.most])
        covered = np.array(self.words.coverages(by_words))
        near = np.array([cosines.get(pk, 0.0) for pk in by_words])
        scores = fusion.both(near, covered, self.weights)
        return [by_words[place] for place in np.sort(np.argsort(-scores, kind="stable")[: self.most])]

    def judge(self, found: Iterable[Candidate]) -> None:
        """Add what passes the trust pass to the candidates."""
        for one in found:
            reason = trust.objection(
                one.observation,
                active=one.active,
                verdict=one.verdict,
                taxonomy=one.taxonomy,
                stale=one.stale,
                include_hold=self.filters.include_hold,
                untrusted=one.unconfirmed and self.filters.trusted_only,
            )
            if reason:
                self.dropped[reason] += 1
            else:
                self.candidates[one.memory_id] = one

    def as_it_was(self, found: Sequence[Candidate]) -> Sequence[Candidate]:
        if self.filters.as_of is None or not found:
            return found
        vectors = {one.memory_id: one.vector for one in found}
        then = {row.pk: row for row in as_of.as_of(Memory.objects.filter(pk__in=vectors), self.filters.as_of)}
        return [
            results.candidate_of(then[pk], vector)
            for pk, vector in vectors.items()
            if pk in then and as_of.passes(then[pk], self.filters)
        ]

    def complete(self, by_words: Sequence[int], by_vector: Sequence[int]) -> None:
        if self.filters.as_of is not None:  # the candidates are as they were, the index is of today
            keyword_search.read(self.words, self.candidates, self.scope)
        else:
            new = [one for pk, one in self.candidates.items() if pk not in self.words.held and one.terms is not None]
            self.words.add((one.memory_id, one.length or 0, one.terms or "") for one in new)
        if not isinstance(self.vector, str):
            rest = [(pk, one.vector) for pk, one in self.candidates.items() if pk not in self.cosines and one.vector]
            nearest = vector_search.Nearest(self.cosines)
            nearest.take(self.vector, rest)
        places = {pk: place for place, pk in enumerate(by_words, 1)}
        near = {pk: place for place, pk in enumerate(by_vector, 1)}
        turns = {(one.sequence, one.position): pk for pk, one in self.candidates.items() if one.sequence}
        sequence_terms: defaultdict[str, set[str]] = defaultdict(set)
        for (sequence, _), pk in turns.items():
            sequence_terms[sequence].update(self.words.terms_in(pk))
        for pk, one in self.candidates.items():
            one.cosine, one.vector_rank = self.cosines.get(pk), near.get(pk)
            one.coverage, one.keyword_rank = self.words.coverage(pk), places.get(pk)
            one.keyword_score = self.words.score(pk) if pk in places else None
            one.phrase = stands_whole(self.asked.wholes, one.observation)
            if one.sequence:
                one.shared = self.shared(one, turns, sequence_terms[one.sequence])
                one.speaker = said_by(one.observation, self.asked.terms)

    def shared(self, one: Candidate, turns: Mapping[tuple[str, int | None], int], by_others: Collection[str]) -> float:
        """Return how much of the query a turn covers together with its neighbours."""
        parts: list[tuple[Collection[str], float]] = [(self.words.terms_in(one.memory_id), 1.0)]
        if one.position is not None:
            for step, share in ((-1, fusion.SHARED_PREVIOUS), (1, fusion.SHARED_NEXT)):
                parts.append((self.words.terms_in(turns.get((one.sequence, one.position + step))), share))
        return self.words.shared_coverage([*parts, (by_others, fusion.SHARED_SEQUENCE)])

    def likeness(self, ids: Sequence[int]) -> Vectors:
        """Return how likely each candidate supersedes another one, in the order of the ids."""
        if isinstance(self.vector, str):
            return np.zeros((len(ids), len(ids)), dtype=np.float32)
        stored = [self.candidates[pk].vector for pk in ids]
        cosines = vector_search.between(stored, self.vector.model.dimensions)
        return supersession.likely(cosines, [self.candidates[pk] for pk in ids], self.asked)

    def hits(self, profile: rerank.Profile, limit: int | None) -> list[Hit]:
        wanted = rerank.hits_to_return(profile, limit, [one.score for one in self.ranked])
        best, collapsed = rerank.select(self.ranked, wanted)
        twins = sum(map(len, collapsed.values()))
        self.dropped[trust.NEAR_IDENTICAL] += twins
        self.dropped[trust.BEYOND] += len(self.ranked) - len(best) - twins
        return [
            results.hit_of(one, fusion.parts_of(one, self.at, self.weights), collapsed.get(one.memory_id, ()))
            for one in best
        ]

    def trace(self, asked: Query, profile: str) -> Trace:
        if self.words.unindexed:
            self.notes.append(f"{self.words.unindexed} memories are read as they are, not indexed yet")
        return Trace(
            semantic=self.semantic,
            profile=profile,
            vectors=self.vectors_by,
            pending=0 if isinstance(self.vector, str) else self.vector.waiting,
            candidates=len(self.candidates),
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
            self.steps[step] += time.perf_counter() - begun
