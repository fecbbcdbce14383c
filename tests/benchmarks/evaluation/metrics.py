"""Metrics of ranked retrieval and of three-way classification. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memories.matching import Kind

DEPTHS = (1, 5, 10, 20)
RESAMPLES = 1_000


def ranking_metrics(ranked: Sequence[str], relevant: Iterable[str]) -> dict[str, float]:
    """Compute recall@k, hit@k, reciprocal rank and nDCG@10 of one query, each 0..1. `relevant` must not be empty."""
    wanted = set(relevant)
    places = [place for place, name in enumerate(ranked, 1) if name in wanted]
    found = {f"recall@{k}": sum(p <= k for p in places) / len(wanted) for k in DEPTHS}
    found |= {f"hit@{k}": float(any(p <= k for p in places)) for k in DEPTHS}
    found["mrr"] = 1 / places[0] if places else 0.0
    ideal = sum(1 / math.log2(p + 1) for p in range(1, min(10, len(wanted)) + 1))
    found["ndcg@10"] = sum(1 / math.log2(p + 1) for p in places if p <= 10) / ideal
    return found


def means_with_intervals(queries: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Compute each metric's mean with its 95 % bootstrap interval (fixed seed); {} without queries."""
    if not queries:
        return {}
    names = list(queries[0])
    values = np.array([[one[name] for name in names] for one in queries])
    drawn = np.random.default_rng(4).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.quantile(np.stack([values[rows].mean(axis=0) for rows in drawn]), [0.025, 0.975], axis=0)
    found = zip(names, values.mean(axis=0).tolist(), low.tolist(), high.tolist(), strict=True)
    intervals = {n: {"mean": round(m, 4), "low": round(a, 4), "high": round(b, 4)} for n, m, a, b in found}
    return {"queries": len(values), **intervals}


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often a pair of one relation (first) was judged to be of another (second)."""

    counts: Counter[tuple[Kind, Kind]]

    @classmethod
    def of(cls, pairs: Iterable[tuple[Kind | None, Kind]]) -> Confusion:
        """Count (label, judgement) pairs; those without a label are left out."""
        return cls(Counter((truth, judged) for truth, judged in pairs if truth is not None))

    @property
    def total(self) -> int:
        return self.counts.total()

    def share(self, truth: Kind, judged: Kind) -> float:
        count = sum(self.counts[truth, one] for one in Kind)
        return self.counts[truth, judged] / count if count else 0.0

    @property
    def accuracy(self) -> float:
        """The share of pairs that are judged right."""
        return sum(self.counts[kind, kind] for kind in Kind) / self.total if self.total else 0.0

    @property
    def macro_f1(self) -> float:
        """The mean of F1 over the relations that occur."""
        scores = []
        for kind in Kind:
            # Pairs of this relation plus pairs judged to be of it: true positives count in both.
            occurring = sum(self.counts[kind, one] + self.counts[one, kind] for one in Kind)
            if occurring:
                scores.append(2 * self.counts[kind, kind] / occurring)
        return sum(scores) / len(scores) if scores else 0.0

    @property
    def destructive(self) -> float:
        """The share of judgements that lose knowledge: distinct merged or superseded, contradiction merged."""
        lost = (
            (Kind.DISTINCT, Kind.REINFORCES),
            (Kind.DISTINCT, Kind.CONTRADICTS),
            (Kind.CONTRADICTS, Kind.REINFORCES),
        )
        return sum(self.counts[one] for one in lost) / self.total if self.total else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON; rates are shares of 0..1."""
        return {
            "pairs": self.total,
            "confusion": {truth: {judged: self.counts[truth, judged] for judged in Kind} for truth in Kind},
            "accuracy": round(self.accuracy, 4),
            "macro_f1": round(self.macro_f1, 4),
            "distinct_lost": round(self.share(Kind.DISTINCT, Kind.REINFORCES), 4),
            "contradictions_swallowed": round(self.share(Kind.CONTRADICTS, Kind.REINFORCES), 4),
            "restatements_merged": round(self.share(Kind.REINFORCES, Kind.REINFORCES), 4),
            "destructive": round(self.destructive, 4),
        }
