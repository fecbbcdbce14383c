"""Read the memories that matter most in a project, without a question: for the briefing of a session that starts."""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import datetime
from itertools import chain, zip_longest

from django.db import connection

from memories.injection.rows import SURE, USABLE
from memories.models import Memory
from memories.models.trust import kept_back_sql
from memories.taxonomy import KNOWLEDGE, OPS, PROJECT, Taxonomy

AGE_RATE = 0.01
"""A day: half of the weight is gone after ten weeks. (DESIGN section 5: rank decay.)"""

# A plus turns a column into an expression: the index of the confidence is read, not one of the project's memories.
OF_PROJECT, OF_ALL = "+project_id = %(project)s", "project_id IS NULL"
TOLD = "agent IS NULL AND surface = '' AND (expires_at IS NULL OR expires_at > %(at)s)"


def top_memories(project_id: int, *, most: int, without: Collection[int] = (), at: datetime) -> list[Memory]:
    """Return up to `most` memories that may be told in a project at `at` (aware UTC).

    The project's own come before the global ones; among each the taxonomies take turns, by confidence and age. Those
    with a window of time are left out: they are told while it is open.
    """
    rows: list[Memory] = []
    for whose in (OF_PROJECT, OF_ALL):
        wanted = most - len(rows)
        taxonomies = [_best(one, whose, project_id, set(without), wanted, at) for one in (KNOWLEDGE, PROJECT, OPS)]
        rows += [row for row in chain(*zip_longest(*taxonomies)) if row is not None][:wanted]
        if len(rows) == most:
            break
    return rows


def _best(policy: Taxonomy, whose: str, project_id: int, without: set[int], most: int, at: datetime) -> list[Memory]:
    sql = (
        f"SELECT id, category, service, observation, confidence, updated_at FROM memories "  # noqa: S608
        f"WHERE {USABLE} AND {SURE} AND {whose} AND {TOLD} AND NOT {kept_back_sql()} "
        f"ORDER BY confidence DESC, id LIMIT {most + len(without)}"
    )
    params = {
        "taxonomy": policy.slug,
        "threshold": policy.injected_from or 0.0,
        "project": project_id,
        "at": connection.ops.adapt_datetimefield_value(at),
    }
    rows = [row for row in Memory.objects.raw(sql, params) if row.pk not in without]
    return sorted(rows, key=lambda row: (-row.confidence * _freshness(row, at), row.pk))


def _freshness(row: Memory, at: datetime) -> float:
    """By whole days, so that sessions of one day are told the same."""
    return math.exp(-AGE_RATE * max(0, (at - row.updated_at).days))
