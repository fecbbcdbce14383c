"""Count active memories by category, and name the categories that hold far more than their share. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TIMES = 2.0
"""A category is over-represented with more than so many times an equal share of its taxonomy."""
LEAST = 20
"""Memories of a taxonomy below which nothing is said about its shares."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many memories a category of a taxonomy holds; `share` is from 0 to 1."""

    taxonomy: str
    category: str
    count: int
    share: float
    is_over: bool


def shares(counts: Mapping[tuple[str, str], int], known: Mapping[str, int]) -> list[Share]:
    """Return the shares, the biggest first. `counts` is by (taxonomy, category), `known` the categories of each."""
    totals: dict[str, int] = {}
    for (taxonomy, _), count in counts.items():
        totals[taxonomy] = totals.get(taxonomy, 0) + count
    rows = []
    for (taxonomy, category), count in counts.items():
        total = totals[taxonomy]
        share = count / total if total else 0.0
        is_over = total >= LEAST and share > TIMES / max(known.get(taxonomy, 1), 1)
        rows.append(Share(taxonomy, category, count, round(share, 4), is_over))
    return sorted(rows, key=lambda one: (-one.count, one.taxonomy, one.category))
