"""Evaluate recall on a set by several rankings. Stores into the connected database: use `scratch_database()`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.utils import timezone

from memories import embedding
from memories.embedding import SemanticOff, content_hash, embedded_text, to_bytes
from memories.models import Embedding, EmbeddingModel, Memory, ModelState, PendingEmbedding, Project
from memories.recall import ANY_AGENT, ANY_PROJECT, Filters, fusion, keyword_index, pgvector
from memories.recall.fusion import Weights
from memories.recall.service import candidates_of
from tests.benchmarks.evaluation.metrics import means_with_intervals, ranking_metrics
from tests.benchmarks.evaluation.sets import InvalidSet, MemoryLine, QueryLine
from tests.benchmarks.evaluation.vectors import Progress, embed_cached

SIGNALS: dict[str, dict[str, Any]] = {
    "meaning": {"cosine": 0.0},
    "words": {"coverage": 0.0, "phrase": 0.0, "sequence_coverage": 0.0, "speaker": 0.0},
    "phrase": {"phrase": 0.0},
    "age": {"age": fusion.NO_AGE},
    "newer": {"newer_lead": 0.0},
    "speaker": {"speaker": 0.0},
    "confidence": {"confidence": 0.0},
    "usage": {"usage": 0.0, "priority": 0.0},
}
"""Signals of the ranking that are left out one at a time, by the weights that are changed for it."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The memories of a set in the database: the set's ids by primary key, and the state of semantic search."""

    names: Mapping[int, str]
    semantic: str


def store(lines: Sequence[MemoryLine], cache: Path, progress: Progress | None = None) -> Stored:
    """Store memories as they are, unmerged, with their index terms and vectors (kept in `cache`)."""
    slugs = sorted({one.project for one in lines if one.project})
    projects = {one.slug: one for one in Project.objects.bulk_create(Project(slug=slug) for slug in slugs)}
    now = timezone.now()
    rows = Memory.objects.bulk_create(
        (
            Memory(
                observation=one.text,
                service=one.service or None,
                category=one.category or "behavior",
                project=projects.get(one.project),
                sequence=one.sequence,
                position=one.position,
                created_at=one.created_at or now,
                updated_at=one.updated_at or one.created_at or now,
            )
            for one in lines
        ),
        batch_size=1_000,
    )
    keyword_index.catch_up()
    names = {row.pk: one.id for row, one in zip(rows, lines, strict=True)}
    return Stored(names, _embed(rows, cache, progress))


def _embed(memories: Sequence[Memory], cache: Path, progress: Progress | None) -> str:
    texts = [embedded_text(row) for row in memories]
    try:
        embedder = embedding.wanted()
        vectors = embed_cached(embedder, texts, cache, progress)
    except SemanticOff as off:
        return f"off: {off.reason}"
    model = EmbeddingModel.objects.create(
        name=embedder.name, dimensions=embedder.dimensions, state=ModelState.ACTIVE, filled_to=None
    )
    Embedding.objects.bulk_create(
        (
            Embedding(model=model, memory=row, vector=to_bytes(vector), content_hash=content_hash(text))
            for row, vector, text in zip(memories, vectors, texts, strict=True)
        ),
        batch_size=1_000,
    )
    PendingEmbedding.objects.all().delete()
    pgvector.ensure()
    return f"on ({embedder.name})"


def rankings(context: bool) -> dict[str, tuple[Weights, bool]]:
    """Return the rankings to compare, by name: (weights, whether neighbours in a sequence count)."""
    whole = fusion.WEIGHTS
    found = {
        "recall": (whole, context),
        "words alone": (replace(whole, **SIGNALS["meaning"], age=fusion.NO_AGE), False),
        "vectors alone": (replace(whole, **SIGNALS["words"], age=fusion.NO_AGE), False),
        **{f"without {signal}": (replace(whole, **weights), context) for signal, weights in SIGNALS.items()},
    }
    if context:
        found["without context"] = (whole, False)
    return found | {"age multiplied": (replace(whole, age=fusion.MULTIPLIED), context)}


def rank(
    queries: Sequence[QueryLine], stored: Stored, *, context: bool, limit: int, progress: Progress | None = None
) -> tuple[dict[str, list[list[str]]], str]:
    """Return (ids by ranking and query, state of semantic search). Raises InvalidSet for an unknown project."""
    projects = dict(Project.objects.values_list("slug", "pk"))
    latest = Memory.objects.latest("created_at").created_at
    compared = rankings(context)
    ranked: dict[str, list[list[str]]] = {name: [] for name in compared}
    state = "on"
    for number, one in enumerate(queries, 1):
        if one.project and one.project not in projects:
            raise InvalidSet(f"Query {one.id}: no memory has the project {one.project!r}.")
        at = one.as_of or latest
        project = projects[one.project] if one.project else ANY_PROJECT
        filters = Filters(project=project, agent=ANY_AGENT, as_of=one.as_of)
        candidates, state, likeness = candidates_of(one.query, filters, at=at)
        for name, (weights, neighbours) in compared.items():
            found = fusion.rank(candidates, at, weights, neighbours, likeness)
            ranked[name].append([stored.names[hit.memory_id] for hit in found[:limit]])
        if progress:
            progress(number, len(queries))
    return ranked, stored.semantic if state == "on" else state


def figures(queries: Sequence[QueryLine], ranked: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, Any]:
    """Compute metrics of every ranking, and of the whole one by category, over queries with a relevant memory."""
    measured = {
        name: [
            (one.category, ranking_metrics(ids, one.relevant))
            for one, ids in zip(queries, lists, strict=True)
            if one.relevant
        ]
        for name, lists in ranked.items()
    }
    categories = sorted({category for category, _ in measured["recall"] if category})
    return {
        "counted": len(measured["recall"]),
        "variants": {name: means_with_intervals([found for _, found in rows]) for name, rows in measured.items()},
        "categories": {
            category: means_with_intervals([found for one, found in measured["recall"] if one == category])
            for category in categories
        },
    }
