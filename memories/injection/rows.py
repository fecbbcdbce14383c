"""Read the memories of an injection by confidence, no further than needed, and count them by indexes.

The SQL repeats the condition of the partial index memories_injection literally: otherwise SQLite does not use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection

from memories.models import Memory
from memories.models.trust import kept_back_sql
from memories.taxonomy import OPS

FIRST_CHUNK = 64
LARGEST_CHUNK = 2048

USABLE = "taxonomy = %(taxonomy)s AND active AND verdict = 'allow'"
SURE = "confidence >= %(threshold)s"
COLUMNS = (
    "id, uuid, service, category, observation, confidence, inactive_reason, verdict, verdict_reason, provisional, "
    "confirmed_at"
)


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of ops memories; each memory is in exactly one."""

    eligible: int
    unconfirmed: int
    below_threshold: int
    other_project: int
    inactive: int
    held: int


def visible(project_id: int | None) -> str:
    return "project_id IS NULL" if project_id is None else "(project_id IS NULL OR project_id = %(project)s)"


def parameters(project_id: int | None) -> dict[str, Any]:
    return {"taxonomy": OPS.slug, "threshold": OPS.injected_from, "project": project_id}


def count(project_id: int | None) -> Counts:
    """Count all ops memories. Held and inactive ones are counted whatever their project."""
    params = parameters(project_id)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*), count(*) FILTER (WHERE {visible(project_id)}), "  # noqa: S608
            f"count(*) FILTER (WHERE {visible(project_id)} AND {SURE}), "
            f"count(*) FILTER (WHERE {visible(project_id)} AND {SURE} AND {kept_back_sql()}) "
            f"FROM memories WHERE {USABLE}",
            params,
        )
        usable, visible_count, sure, unconfirmed = cursor.fetchone()
        # FILTER keeps SQLite from the index on taxonomy, which would read every row.
        cursor.execute(
            "SELECT count(*) FILTER (WHERE taxonomy = %(taxonomy)s) FROM memories WHERE verdict = 'hold'", params
        )
        held = cursor.fetchone()[0]
        cursor.execute("SELECT count(*) FROM memories WHERE taxonomy = %(taxonomy)s", params)
        total = cursor.fetchone()[0]
    return Counts(
        sure - unconfirmed,
        unconfirmed,
        visible_count - sure,
        usable - visible_count,
        max(0, total - usable - held),
        held,
    )


def surest_first(project_id: int | None) -> Iterator[Memory]:
    """Eligible memories by confidence, then id, in growing chunks: a small budget reads a small chunk.

    Without those that have a window of time: their window decides, not their confidence.
    """
    params = parameters(project_id)
    size, after = FIRST_CHUNK, ""
    while True:
        chunk = list(
            Memory.objects.raw(
                f"SELECT {COLUMNS} FROM memories WHERE {USABLE} AND {SURE} AND {visible(project_id)} "  # noqa: S608
                f"AND surface = '' AND NOT {kept_back_sql()} {after} ORDER BY confidence DESC, id LIMIT {size}",
                params,
            )
        )
        yield from chunk
        if len(chunk) < size:
            return
        after = "AND confidence <= %(confidence)s AND (confidence < %(confidence)s OR id > %(last)s)"
        params |= {"confidence": chunk[-1].confidence, "last": chunk[-1].pk}
        size = min(2 * size, LARGEST_CHUNK)


def held(project_id: int | None, limit: int) -> list[Memory]:
    return _some(f"verdict = 'hold' AND taxonomy = %(taxonomy)s AND {visible(project_id)}", project_id, limit)


def inactive(project_id: int | None, limit: int) -> list[Memory]:
    """Inactive memories, the last confirmed first."""
    where = f"NOT active AND verdict = 'allow' AND taxonomy = %(taxonomy)s AND {visible(project_id)}"
    return _some(where, project_id, limit)


def unconfirmed(project_id: int | None, limit: int) -> list[Memory]:
    """Return what would be injected but for CLAUDEOPS_TRUST."""
    where = f"{USABLE} AND {SURE} AND {visible(project_id)} AND {kept_back_sql()}"
    return _some(where, project_id, limit, order="confidence DESC, id")


def below_threshold(project_id: int | None, limit: int) -> list[Memory]:
    where = f"{USABLE} AND confidence < %(threshold)s AND {visible(project_id)}"
    return _some(where, project_id, limit, order="confidence DESC, id")


def _some(where: str, project_id: int | None, limit: int, order: str = "updated_at DESC, id DESC") -> list[Memory]:
    sql = f"SELECT {COLUMNS} FROM memories WHERE {where} ORDER BY {order} LIMIT {int(limit)}"  # noqa: S608
    return list(Memory.objects.raw(sql, parameters(project_id)))
