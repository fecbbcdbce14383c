"""The answer of a recall, and its candidates, read within a scope. `Candidate` is ranked, `Hit` is returned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memories.models import Memory
from memories.models.trust import kept_back, kept_back_sql
from memories.recall import filters
from memories.recall.filters import Where
from memories.recall.narratives import Narrative


@dataclass(frozen=True, slots=True)
class Trace:
    """`semantic` is "on" or "off: <reason>"; `vectors` names what compared them: pgvector, or numpy and why.

    `rewrite` is the state of the rewrite, `rewritten` its text if searched. `pending` counts missing vectors, `dropped`
    candidates by reason; `steps` are seconds by name.
    """

    semantic: str = "off: not asked"
    profile: str = "balanced"
    rewritten: str = ""
    rewrite: str = "off: not asked for"
    vectors: str = ""
    pending: int = 0
    candidates: int = 0
    terms: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()
    dropped: dict[str, int] = field(default_factory=dict)
    weights: dict[str, float | str] = field(default_factory=dict)
    steps: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        values = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values}


@dataclass(slots=True)
class Candidate:
    """A memory that a search found: its columns, then the searches' findings, then those of the ranking.

    `confirmed_at` is its `updated_at`, `priority` whether a person approved it or made it persistent. `uuid`, `tags`
    and `created_at` are as the database gives them. `unconfirmed`: CLAUDEOPS_TRUST keeps it back from prompts. `terms`
    and `length` are those of the full-text index, `vector` is the stored one. `shared` is the coverage with
    neighbouring turns; `speaker`: the query names who said it. `gentler` is what the coverage would add to the score
    with the lower power, for the thresholds that were tuned with it.
    """

    memory_id: int
    confirmed_at: datetime
    observation: str = ""
    service: str | None = None
    active: bool = True
    verdict: str = "allow"
    taxonomy: str = ""
    stale: bool = False
    confidence: float = 0.7
    recall_count: int = 0
    priority: bool = False
    sequence: str = ""
    position: int | None = None
    category: str = ""
    project_id: int | None = None
    agent: str | None = None
    uuid: Any = ""
    tags: Any = ()
    created_at: Any = ""
    unconfirmed: bool = False
    terms: str | None = None
    length: int | None = None
    vector: bytes | memoryview | None = None

    cosine: float | None = None
    vector_rank: int | None = None
    coverage: float = 0.0
    keyword_rank: int | None = None
    keyword_score: float | None = None
    shared: float = 0.0
    phrase: bool = False
    speaker: bool = False

    fused: float = 0.0
    context: float = 0.0
    gentler: float = 0.0
    raised: float = 0.0
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Asker:
    """The caller: `surface` is cli, api, mcp, page, injection, store or bench; `actor` a user name, token or agent."""

    surface: str
    actor: str = ""
    session_id: int | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a hit's score.

    Ranks count from 1; None = that search did not find it. `coverage` is the share (0..1) of the query's idf mass,
    `cosine` −1..1, `age_days` days since the last confirmation. `boosts` are the named additions; `final` is the score.
    """

    keyword_rank: int | None = None
    keyword_score: float | None = None
    coverage: float = 0.0
    vector_rank: int | None = None
    cosine: float | None = None
    phrase: bool = False
    fused: float = 0.0
    context: float = 0.0
    age_factor: float = 1.0
    age_days: float = 0.0
    boosts: dict[str, float] = field(default_factory=dict)
    stale: bool = False
    final: float = 0.0


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory that is returned (with `as_of` in its state of then). `score` is `parts.final`."""

    memory_id: int
    uuid: UUID
    observation: str
    service: str | None
    category: str
    taxonomy: str
    confidence: float
    score: float
    parts: Parts
    project_id: int | None = None
    agent: str | None = None
    verdict: str = "allow"
    tags: tuple[str, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    unconfirmed: bool = False
    collapsed: tuple[int, ...] = ()
    """Near-duplicates that are left out."""

    def as_dict(self) -> dict[str, Any]:
        return {each.name: _json(getattr(self, each.name)) for each in fields(self)}


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer: best hit first. `recall_id` is its log entry, None when it was not logged.

    `narratives` of observed sessions stand beside the hits; None when they were not asked for.
    """

    query: str
    hits: tuple[Hit, ...]
    trace: Trace
    recall_id: int | None = None
    narratives: tuple[Narrative, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        asked_for = {"narratives": [one.as_dict() for one in self.narratives]} if self.narratives is not None else {}
        return {
            "query": self.query,
            "hits": [hit.as_dict() for hit in self.hits],
            "trace": self.trace.as_dict(),
            "recall_id": self.recall_id,
            **asked_for,
        }


# On SQLite a plus turns a column into an expression, which is returned as stored: Django's conversion of two times and
# a boolean takes longer for hundreds of rows than finding them.
COLUMNS = (
    "memories.id, {plus}memories.updated_at, memories.observation, memories.service, {plus}memories.active, "
    "memories.verdict, memories.taxonomy, memories.stale_at IS NOT NULL, memories.confidence, memories.recall_count, "
    "memories.persistent OR memories.approved_at IS NOT NULL, memories.sequence, memories.position, "
    "memories.category, memories.project_id, memories.agent, memories.uuid, memories.tags, {plus}memories.created_at, "
    "{unconfirmed}, "
    "t.terms, t.length, e.vector"
)

Row = tuple[Any, ...]
"""The columns of a candidate as the database gives them: the memory's id is the first, its vector the last."""


def read(ids: Sequence[int], scope: Where, model: int = 0) -> list[Row]:
    """Read those of these memories, each named once, that are within the scope, with their vectors by `model`."""
    if not ids:
        return []
    source, param = filters.listed(ids)
    # CROSS JOIN: SQLite keeps this order. With a taxonomy in the scope it would read all memories of the taxonomy.
    return _read(f"{source} CROSS JOIN memories", [param], "memories.id = given.value", [], scope, model)


def read_neighbours(candidates: Iterable[Candidate], scope: Where, model: int = 0) -> list[Row]:
    """Read the memories before and after these in their sequences, within the scope."""
    places = {(one.sequence, one.position) for one in candidates if one.sequence and one.position is not None}
    around = {(name, place + step) for name, place in places if place is not None for step in (-1, 1)} - places
    if not around:
        return []
    marks = ", ".join(["(%s, %s)"] * len(around))
    # The second condition is the index's own: without it SQLite scans the table.
    which = f"(memories.sequence, memories.position) IN (VALUES {marks}) AND NOT (memories.sequence = '')"
    return _read("memories", [], which, [value for pair in sorted(around) for value in pair], scope, model)


def candidate(row: Row) -> Candidate:
    pk, at, *rest = row
    return Candidate(pk, _time_of(at), *rest)


def candidate_of(memory: Memory, vector: bytes | memoryview | None) -> Candidate:
    same = ("observation", "service", "active", "verdict", "taxonomy", "confidence", "recall_count", "sequence")
    more = ("position", "category", "project_id", "agent", "uuid", "tags", "created_at")
    return Candidate(
        memory.pk,
        memory.updated_at,
        stale=memory.stale_at is not None,
        priority=memory.persistent or memory.approved_at is not None,
        unconfirmed=bool(kept_back(memory)),
        vector=vector,
        **{name: getattr(memory, name) for name in (*same, *more)},
    )


def hit_of(one: Candidate, parts: Parts, collapsed: Sequence[int]) -> Hit:
    tags = json.loads(one.tags) if isinstance(one.tags, str) else one.tags
    return Hit(
        memory_id=one.memory_id,
        uuid=one.uuid if isinstance(one.uuid, UUID) else UUID(one.uuid),
        observation=one.observation,
        service=one.service,
        category=one.category,
        taxonomy=one.taxonomy,
        confidence=one.confidence,
        score=one.score,
        parts=parts,
        project_id=one.project_id,
        agent=one.agent,
        verdict=one.verdict,
        tags=tuple(str(tag) for tag in tags or ()),
        created_at=_time_of(one.created_at),
        updated_at=one.confirmed_at,
        unconfirmed=bool(one.unconfirmed),
        collapsed=tuple(collapsed),
    )


def _read(source: str, params: Sequence[Any], which: str, values: Sequence[Any], scope: Where, model: int) -> list[Row]:
    columns = COLUMNS.format(plus="+" if connection.vendor == "sqlite" else "", unconfirmed=kept_back_sql())
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {columns} FROM {source} LEFT JOIN memory_terms t ON t.memory_id = memories.id "  # noqa: S608
            f"LEFT JOIN embeddings e ON e.memory_id = memories.id AND e.model_id = %s WHERE {which} AND {scope.sql}",
            [*params, model, *values, *scope.params],
        )
        rows: list[Row] = cursor.fetchall()
    return rows


def _time_of(value: datetime | str) -> datetime:
    """Convert a database time; SQLite's is text without a zone, in UTC."""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, tuple):
        return list(value)
    return asdict(value) if isinstance(value, Parts) else value
