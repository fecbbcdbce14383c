"""How often recall finds what answers: sets of memories and queries in, figures with confidence intervals out.

Memories are stored as they are, in a scratch database; each variant of the ranking orders the same candidates.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memories import embedding
from memories.bench.embedded import Progress, embedded
from memories.bench.lines import read_lines, text_of
from memories.embedding import SemanticOff, embedded_text, to_bytes
from memories.errors import InvalidSet
from memories.models import Embedding, EmbeddingModel, Memory, ModelState, PendingEmbedding, Project
from memories.recall import Filters, index, meaning, ranking
from memories.recall.engine import pool
from memories.recall.ranking import Candidate, Weights

AT = (1, 5, 10, 20)
RESAMPLED = 1_000
"""Resamples of the queries for a 95 % interval."""
ABLATIONS = ("meaning", "words", "phrase", "age", "confidence", "usage")


@dataclass(frozen=True, slots=True)
class Asked:
    """One query of a set; `as_of` and `project` narrow it."""

    id: str
    query: str
    relevant: tuple[str, ...]
    category: str = ""
    project: str = ""
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """Per variant and query the ids, best first; and whether meaning was on."""

    asked: tuple[Asked, ...]
    ranked: dict[str, list[list[str]]]
    semantic: str


def read_queries(path: str | Path) -> list[Asked]:
    found = []
    for number, row in read_lines(path):
        where = f"{path}, line {number}"
        relevant = row.get("relevant")
        if not isinstance(relevant, list) or not relevant:
            raise InvalidSet(f"{where}: 'relevant' is {relevant!r}; a list of ids is needed.")
        found.append(
            Asked(
                id=text_of(row, "id", where),
                query=text_of(row, "query", where),
                relevant=tuple(str(one) for one in relevant),
                category=text_of(row, "category", where, optional=True),
                project=text_of(row, "project", where, optional=True),
                as_of=_time(row.get("as_of"), where),
            )
        )
    return found


def store(path: str | Path, cache: Path, progress: Progress | None = None) -> tuple[dict[str, int], str]:
    """Store a set's memories as they are, with their vectors. (primary key by the set's id, semantic state)."""
    projects: dict[str, Project] = {}
    rows: dict[str, Memory] = {}
    for number, row in read_lines(path):
        where = f"{path}, line {number}"
        slug = text_of(row, "project", where, optional=True)
        if slug and slug not in projects:
            projects[slug] = Project.objects.create(slug=slug)
        at = _time(row.get("created_at"), where) or timezone.now()
        name = text_of(row, "id", where)
        if name in rows:
            raise InvalidSet(f"{where}: the id {name!r} is there twice.")
        rows[name] = Memory(
            observation=text_of(row, "text", where),
            service=text_of(row, "service", where, optional=True) or None,
            category=text_of(row, "category", where, optional=True)[:32] or "behavior",
            project=projects.get(slug),
            sequence=text_of(row, "sequence", where, optional=True)[:200],
            position=row.get("position"),
            created_at=at,
            updated_at=at,
        )
    memories = list(rows.values())
    Memory.objects.bulk_create(memories, batch_size=1_000)
    index.catch_up()
    try:
        embedder = embedding.wanted()
        made = embedded(embedder, [embedded_text(row) for row in memories], cache, progress)
    except SemanticOff as off:
        return {name: row.pk for name, row in rows.items()}, f"off: {off.reason}"
    model = EmbeddingModel.objects.create(
        name=embedder.name, dimensions=embedder.dimensions, state=ModelState.ACTIVE, filled_to=None
    )
    Embedding.objects.bulk_create(
        [
            Embedding(model=model, memory=row, vector=to_bytes(vector), content_hash="-")
            for row, vector in zip(memories, made, strict=True)
        ],
        batch_size=1_000,
    )
    PendingEmbedding.objects.all().delete()
    return {name: row.pk for name, row in rows.items()}, "on"


def variants(context: bool) -> dict[str, tuple[Weights, bool]]:
    """The rankings that are compared: (weights, neighbours counted)."""
    whole = ranking.WEIGHTS
    found = {
        "recall": (whole, context),
        "words alone": (replace(ranking.without("meaning"), age=ranking.NO_AGE), False),
        "vectors alone": (replace(ranking.without("words"), age=ranking.NO_AGE), False),
    }
    found |= {f"without {name}": (ranking.without(name), context) for name in ABLATIONS}
    if context:
        found["without context"] = (whole, False)
    found["age multiplied"] = (replace(whole, age=ranking.MULTIPLIED), context)
    return found


def answer(
    asked: Sequence[Asked], keys: Mapping[str, int], *, context: bool, limit: int, progress: Progress | None = None
) -> Answers:
    """Rank each query's candidates by each variant. Needs the memories of `store`."""
    names = {pk: name for name, pk in keys.items()}
    projects = dict(Project.objects.values_list("slug", "pk"))
    compared = variants(context)
    ranked: dict[str, list[list[str]]] = {name: [] for name in compared}
    semantic = "on"
    latest = Memory.objects.order_by("-created_at").values_list("created_at", flat=True).first() or timezone.now()
    for number, one in enumerate(asked, 1):
        if one.project and one.project not in projects:
            raise InvalidSet(f"query {one.id}: no memory is of the project {one.project!r}.")
        at = one.as_of or latest
        filters = Filters(project=projects[one.project] if one.project else None, as_of=one.as_of)
        candidates, semantic = pool(one.query, filters, at=at)
        for name, (weights, beside) in compared.items():
            ranked[name].append(_order(candidates, at, weights, beside, names)[:limit])
        if progress:
            progress(number, len(asked))
    meaning.forget()
    return Answers(tuple(asked), ranked, semantic)


def _order(
    candidates: Iterable[Candidate], at: datetime, weights: Weights, context: bool, names: Mapping[int, str]
) -> list[str]:
    return [names[one.candidate.memory_id] for one in ranking.rank(candidates, at, weights, context)]


def scores(ranked: Sequence[str], relevant: Sequence[str]) -> dict[str, float]:
    """One query's figures: recall@k, hit@k, the reciprocal rank, and nDCG@10; all 0..1."""
    wanted = set(relevant)
    places = [place for place, name in enumerate(ranked, 1) if name in wanted]
    found = {f"recall@{k}": sum(p <= k for p in places) / len(wanted) for k in AT}
    found |= {f"hit@{k}": float(any(p <= k for p in places)) for k in AT}
    found["mrr"] = 1 / places[0] if places else 0.0
    ideal = sum(1 / math.log2(p + 1) for p in range(1, min(10, len(wanted)) + 1))
    found["ndcg@10"] = sum(1 / math.log2(p + 1) for p in places if p <= 10) / ideal
    return found


def summary(each: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Means over queries, and 95 % bootstrap intervals; the same for the same queries."""
    if not each:
        return {}
    drawn = random.Random(4)  # noqa: S311  (a resample, not a secret)
    size = len(each)
    samples = [[drawn.randrange(size) for _ in range(size)] for _ in range(RESAMPLED)]
    found: dict[str, Any] = {"queries": size}
    for name in each[0]:
        values = [one[name] for one in each]
        means = sorted(sum(values[i] for i in sample) / size for sample in samples)
        low, high = means[int(0.025 * RESAMPLED)], means[int(0.975 * RESAMPLED) - 1]
        found[name] = {"mean": round(sum(values) / size, 4), "low": round(low, 4), "high": round(high, 4)}
    return found


def figures(answers: Answers) -> dict[str, Any]:
    """Every variant's figures, and the whole ranking's by the queries' categories."""
    each = {
        name: [scores(ranked, one.relevant) for ranked, one in zip(rows, answers.asked, strict=True)]
        for name, rows in answers.ranked.items()
    }
    categories = sorted({one.category for one in answers.asked if one.category})
    return {
        "semantic": answers.semantic,
        "variants": {name: summary(rows) for name, rows in each.items()},
        "categories": {
            category: summary(
                [row for row, one in zip(each["recall"], answers.asked, strict=True) if one.category == category]
            )
            for category in categories
        },
    }


def _time(value: object, where: str) -> datetime | None:
    if value in (None, ""):
        return None
    found = parse_datetime(value) if isinstance(value, str) else None
    if found is None:
        raise InvalidSet(f"{where}: {value!r} is no time; ISO 8601 is needed.")
    return found if found.tzinfo else found.replace(tzinfo=UTC)
