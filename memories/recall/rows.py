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

from memories import prepared
from memories.models import Memory
from memories.recall import scope


class Row(NamedTuple):
    """What ranking and a hit need of a memory. Times, truth values, `uuid` and `tags` are as the database gives
    them (on SQLite text, 0 and 1), for `time_of`, `uuid_of` and `tags_of`: ten of hundreds are asked for.

    `confirmed_at` is its `updated_at`. `terms` are those of the index, with their number `length`; None when it is
    not indexed yet, or as it was at an earlier time. `vector`: its floats as stored, where they were read along.
    """

    pk: int
    observation: str
    service: str | None
    active: bool
    verdict: str
    taxonomy: str
    stale: bool
    confirmed_at: datetime | str
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
    terms: str | None = None
    length: int | None = None
    vector: bytes | memoryview | None = None


# A plus makes an expression of a column, which SQLite gives as it is stored: Django's conversion of two times and
# of a truth value for hundreds of rows takes longer than finding them.
COLUMNS = (
    "memories.id, memories.observation, memories.service, {plus}memories.active, memories.verdict, memories.taxonomy, "
    "memories.stale_at IS NOT NULL, {plus}memories.updated_at, memories.confidence, memories.recall_count, "
    "memories.persistent OR memories.approved_at IS NOT NULL, memories.sequence, memories.position, "
    "memories.category, memories.project_id, memories.agent, memories.uuid, memories.tags, {plus}memories.created_at, "
    "t.terms, t.length, {vector}"
)
VECTORS = "LEFT JOIN embeddings e ON e.memory_id = memories.id AND e.model_id = {:d} "


def read(visible: scope.Where, ids: Sequence[int], model_id: int | None = None) -> list[Row]:
    """Those of these memories that are within the scope, in no order; with their vectors by the model, if named."""
    if not ids:
        return []
    there, listed = scope.listed(ids)
    return _read(f"memories.id IN ({there})", [listed], visible, model_id)


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


def time_of(value: datetime | str) -> datetime:
    """A time as the database gives it: SQLite's is text without a zone, and is UTC."""
    if not isinstance(value, str):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    try:  # hundreds pass here: to name the zone in the text takes a quarter of the time of putting it in behind
        found = datetime.fromisoformat(f"{value}+00:00")
    except ValueError:  # another program's, with a zone of its own
        found = datetime.fromisoformat(value)
    return found if found.tzinfo else found.replace(tzinfo=UTC)  # of a date alone it reads the zone as the hour


def _read(which: str, values: Sequence[Any], visible: scope.Where, model_id: int | None = None) -> list[Row]:
    vector, joined = ("NULL", "") if model_id is None else ("e.vector", VECTORS.format(model_id))
    columns = COLUMNS.format(plus="+" if connection.vendor == "sqlite" else "", vector=vector)
    with prepared.cursor() as cursor:
        # The statement is of constants; what was asked for is in the parameters.
        cursor.execute(
            f"SELECT {columns} FROM memories LEFT JOIN memory_terms t ON t.memory_id = memories.id {joined}"  # noqa: S608
            f"WHERE {which} AND {visible.sql}",
            [*values, *visible.params],
        )
        return list(map(Row._make, cursor.fetchall()))
