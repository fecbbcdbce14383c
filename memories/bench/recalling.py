"""How often recall finds what answers: sets of memories and queries in, figures with confidence intervals out.

Memories are stored as they are, in a scratch database; each variant of the ranking orders the same candidates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from django.utils import timezone

from memories.bench.embedded import Progress
from memories.bench.sets import Asked
from memories.errors import InvalidSet
from memories.models import Memory, Project
from memories.recall import ANY_AGENT, ANY_PROJECT, Filters, fusion, query_vector
from memories.recall.fusion import Candidate, Weights
from memories.recall.service import candidates_of
from memories.recall.supersession import Likeness

AT = (1, 5, 10, 20)
RESAMPLED = 1_000
"""Resamples of the queries for a 95 % interval."""
ABLATIONS = ("meaning", "words", "phrase", "age", "newer", "speaker", "confidence", "usage")


@dataclass(frozen=True, slots=True)
class Answers:
    """Per variant and query the ids, best first; and whether meaning was on."""

    asked: tuple[Asked, ...]
    ranked: dict[str, list[list[str]]]
    semantic: str


def variants(context: bool) -> dict[str, tuple[Weights, bool]]:
    """The rankings that are compared: (weights, neighbours counted)."""
    whole = fusion.WEIGHTS
    found = {
        "recall": (whole, context),
        "words alone": (replace(fusion.without("meaning"), age=fusion.NO_AGE), False),
        "vectors alone": (replace(fusion.without("words"), age=fusion.NO_AGE), False),
    }
    found |= {f"without {name}": (fusion.without(name), context) for name in ABLATIONS}
    if context:
        found["without context"] = (whole, False)
    found["age multiplied"] = (replace(whole, age=fusion.MULTIPLIED), context)
    return found


def answer(
    asked: Sequence[Asked], keys: Mapping[str, int], *, context: bool, limit: int, progress: Progress | None = None
) -> Answers:
    """Rank each query's candidates by each variant. Needs the memories of `store`.

    A query without a project asks among all, as the command line does. Raises InvalidSet for an unknown project.
    """
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
        within = projects[one.project] if one.project else ANY_PROJECT
        filters = Filters(project=within, agent=ANY_AGENT, as_of=one.as_of)
        candidates, semantic, alike = candidates_of(one.query, filters, at=at)
        for name, (weights, beside) in compared.items():
            ranked[name].append(_order(candidates, at, weights, beside, alike, names)[:limit])
        if progress:
            progress(number, len(asked))
    query_vector.forget()
    return Answers(tuple(asked), ranked, semantic)


def _order(
    candidates: Iterable[Candidate],
    at: datetime,
    weights: Weights,
    context: bool,
    alike: Likeness,
    names: Mapping[int, str],
) -> list[str]:
    return [names[one.memory_id] for one in fusion.rank(candidates, at, weights, context, alike)]


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
    size = len(each)
    drawn = np.random.default_rng(4).integers(0, size, (RESAMPLED, size))
    found: dict[str, Any] = {"queries": size}
    for name in each[0]:
        values = np.array([one[name] for one in each])
        low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
        found[name] = {
            "mean": round(float(values.mean()), 4),
            "low": round(float(low), 4),
            "high": round(float(high), 4),
        }
    return found


def figures(answers: Answers) -> dict[str, Any]:
    """Every variant's figures, and the whole ranking's by the queries' categories, of the queries with an answer."""
    counted = [place for place, one in enumerate(answers.asked) if one.relevant]
    asked = [answers.asked[place] for place in counted]
    each = {
        name: [scores(rows[place], answers.asked[place].relevant) for place in counted]
        for name, rows in answers.ranked.items()
    }
    categories = sorted({one.category for one in asked if one.category})
    return {
        "semantic": answers.semantic,
        "counted": len(counted),
        "variants": {name: summary(rows) for name, rows in each.items()},
        "categories": {
            category: summary([row for row, one in zip(each["recall"], asked, strict=True) if one.category == category])
            for category in categories
        },
    }
