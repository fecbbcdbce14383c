"""Read the memories that matter most in a project, without a question: for the briefing of a session that starts."""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import datetime
from itertools import chain, zip_longest

from memories.injection.rows import SURE, USABLE, visible
from memories.models import Memory
from memories.models.trust import kept_back_sql
from memories.taxonomy import KNOWLEDGE, OPS, PROJECT, Taxonomy

READ = 64
"""Memories of a taxonomy that are read, those of the highest confidence."""
AGE_RATE = 0.01
"""A day: half of the weight is gone after ten weeks. (DESIGN section 5: rank decay.)"""

COLUMNS = (
    "id, uuid, taxonomy, project_id, agent, category, service, observation, confidence, updated_at, expires_at, surface"
)


def foremost(project_id: int, *, most: int, without: Collection[int] = (), at: datetime) -> list[Memory]:
    """Return up to `most` memories that may be told in a project at `at` (aware UTC).

    The project's own come before the global ones; among each the taxonomies take turns, by confidence and age. Those
    with a window of time are left out: they are told while it is open.
    """
    by_taxonomy = [_best(policy, project_id, set(without), at) for policy in (KNOWLEDGE, PROJECT, OPS)]
    own = zip_longest(*([row for row in rows if row.project_id] for rows in by_taxonomy))
    of_all = zip_longest(*([row for row in rows if not row.project_id] for rows in by_taxonomy))
    return [row for row in chain(*own, *of_all) if row is not None][:most]


def _best(policy: Taxonomy, project_id: int, without: set[int], at: datetime) -> list[Memory]:
    sql = (
        f"SELECT {COLUMNS} FROM memories WHERE {USABLE} AND {SURE} AND {visible(project_id)} "  # noqa: S608
        f"AND NOT {kept_back_sql()} ORDER BY confidence DESC, id LIMIT {READ}"
    )
    params = {"taxonomy": policy.slug, "threshold": policy.injected_from or 0.0, "project": project_id}
    rows = [row for row in Memory.objects.raw(sql, params) if row.pk not in without and _may_be_told(row, at)]
    return sorted(rows, key=lambda row: (-row.confidence * _freshness(row, at), row.pk))


def _may_be_told(row: Memory, at: datetime) -> bool:
    return not row.agent and not row.surface and (row.expires_at is None or row.expires_at > at)


def _freshness(row: Memory, at: datetime) -> float:
    """By whole days, so that sessions of one day are told the same."""
    return math.exp(-AGE_RATE * max(0, (at - row.updated_at).days))
