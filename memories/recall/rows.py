"""The candidates' rows as plain tuples: a recall looks at hundreds of memories and gives ten of them.

Read in one statement each, within a scope; Django's objects for them cost more than finding them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from memories.models import Memory
from memories.recall import scope


class Row(NamedTuple):
    """What ranking and a hit need of a memory. The last three are as the database gives
    them, for `uuid_of`, `tags_of` and `time_of`: ten of hundreds are asked for.

    `confirmed_at` is its `updated_at` (aware UTC).
    """

    pk: int
    observation: str
    service: str | None
    active: bool
    verdict: str
    taxonomy: str
    stale: bool
    confirmed_at: datetime
    confidence: float
    recall_count: int
    priority: bool
    sequence: str
    position: int | None
    category: str
    project_id: int | None
    agent: str | None
    uuid: Any
    tags: Any
    created_at: Any


COLUMNS = (
    "memories.id, memories.observation, memories.service, memories.active, memories.verdict, memories.taxonomy, "
    "memories.stale_at IS NOT NULL, memories.updated_at, memories.confidence, memories.recall_count, "
    "memories.persistent OR memories.approved_at IS NOT NULL, memories.sequence, memories.position, "
    "memories.category, memories.project_id, memories.agent, memories.uuid, memories.tags, memories.created_at"
)
STALE, CONFIRMED, PRIORITY = (Row._fields.index(name) for name in ("stale", "confirmed_at", "priority"))


def read(visible: scope.Where, ids: Sequence[int]) -> list[Row]:
    """Those of these memories that are within the scope, in no order."""
    if not ids:
        return []
    there, listed = scope.listed(ids)
    return _read(f"memories.id IN ({there})", [listed], visible)


def beside(rows: Iterable[Row], visible: scope.Where) -> list[Row]:
    """The rows before and after these in their sequences, as far as the scope lets them through."""
    known = {(row.sequence, row.position) for row in rows if row.sequence and row.position is not None}
    around = {(name, place + step) for name, place in known if place is not None for step in (-1, 1)} - known
    if not around:
        return []
    marks = ", ".join(["(%s, %s)"] * len(around))
    # The second condition is the index's own: without it SQLite reads the whole table.
    which = f"(memories.sequence, memories.position) IN (VALUES {marks}) AND NOT (memories.sequence = '')"
    return _read(which, [value for pair in sorted(around) for value in pair], visible)


def of(memory: Memory) -> Row:
    """A memory that is at hand, for instance as it was at an earlier time."""
    return Row(
        pk=memory.pk,
        observation=memory.observation,
        service=memory.service,
        active=memory.active,
        verdict=memory.verdict,
        taxonomy=memory.taxonomy,
        stale=memory.stale_at is not None,
        confirmed_at=memory.updated_at,
        confidence=memory.confidence,
        recall_count=memory.recall_count,
        priority=memory.persistent or memory.approved_at is not None,
        sequence=memory.sequence,
        position=memory.position,
        category=memory.category,
        project_id=memory.project_id,
        agent=memory.agent,
        uuid=memory.uuid,
        tags=memory.tags,
        created_at=memory.created_at,
    )


def uuid_of(row: Row) -> UUID:
    return row.uuid if isinstance(row.uuid, UUID) else UUID(row.uuid)


def tags_of(row: Row) -> tuple[str, ...]:
    found = json.loads(row.tags) if isinstance(row.tags, str) else row.tags
    return tuple(str(tag) for tag in found or ())


def time_of(value: datetime) -> datetime:
    """A time as the database gives it: SQLite's has no zone, and is UTC."""
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _read(which: str, values: Sequence[Any], visible: scope.Where) -> list[Row]:
    with connection.cursor() as cursor:
        # The statement is of constants; what was asked for is in the parameters.
        cursor.execute(
            f"SELECT {COLUMNS} FROM memories WHERE {which} AND {visible.sql}",  # noqa: S608
            [*values, *visible.params],
        )
        found = cursor.fetchall()
    return [_row(values) for values in found]


def _row(values: Sequence[Any]) -> Row:
    """A row of COLUMNS. What SQLite leaves open is settled: a condition is 0 or 1 there, a time has no zone."""
    row = list(values)
    row[STALE], row[PRIORITY], row[CONFIRMED] = bool(row[STALE]), bool(row[PRIORITY]), time_of(row[CONFIRMED])
    return Row._make(row)
