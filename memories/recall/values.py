"""What goes into a recall and what comes out: small frozen values with a JSON form.

Knows no database. A surface builds `Filters` from its own scope; nobody widens them on the way down.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memories.errors import MemoriesError
from memories.taxonomy import TAXONOMIES

ANY_PROJECT: Literal["any"] = "any"
ANY_AGENT = "*"
"""Not a slug, so no agent can be called so."""


class InvalidRecall(MemoriesError):
    """A query's profile, limit or filter is not one of what is allowed."""

    code = "invalid_recall"


@dataclass(frozen=True, slots=True)
class Filters:
    """What a recall may return. Scope first: nothing outside `project` and `agent` comes back on any route.

    `project`: an id gives that project's memories and the global ones, None the global ones alone, ANY_PROJECT
    all (an operator's view). `agent`: a slug gives that agent's own memories and those of no agent, None only
    those of no agent, ANY_AGENT all. `services`: any of these, None among them = general; no tuple = all.
    `tags`: all of these. `since` and `until` bound `updated_at` (aware UTC; until exclusive). `as_of`: what was
    known at that time, as it stood then. `include_hold` also gives what waits for review.
    """

    project: int | Literal["any"] | None = None
    agent: str | None = None
    services: tuple[str | None, ...] | None = None
    taxonomy: str | None = None
    categories: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    include_hold: bool = False
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None

    def checked(self) -> Filters:
        """Itself. Raises InvalidRecall for an unknown taxonomy, a wrong project and a time without a zone."""
        if self.taxonomy is not None and self.taxonomy not in TAXONOMIES:
            raise InvalidRecall(f"taxonomy is {self.taxonomy!r}; allowed are {', '.join(TAXONOMIES)}.")
        number = isinstance(self.project, int) and not isinstance(self.project, bool)
        if not (self.project is None or self.project == ANY_PROJECT or number):
            raise InvalidRecall(f"project is {self.project!r}; allowed are an id, None (global) or {ANY_PROJECT!r}.")
        for name in ("since", "until", "as_of"):
            value = getattr(self, name)
            if value is not None and value.tzinfo is None:
                raise InvalidRecall(f"{name} needs a time zone.")
        return self


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asked: `surface` is cli, api, mcp, page, injection, store or bench; `actor` a user name, token or agent."""

    surface: str
    actor: str = ""
    session_id: int | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """How a hit's score came about. Ranks count from 1; None = that side did not find it.

    `coverage` is the share (0..1) of the query's idf mass that the memory's terms cover, `cosine` −1..1,
    `age_days` days since it was last confirmed. `boosts` are the named additions; `final` is what ranks.
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
    """One memory that answers, as it is (with `as_of`: as it was). `score` is `parts.final`."""

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
    collapsed: tuple[int, ...] = ()
    """Memories that say nearly the same and are not shown beside it."""

    def as_dict(self) -> dict[str, Any]:
        return _plain(self)


@dataclass(frozen=True, slots=True)
class Trace:
    """Why the hits are these. `semantic` is "on" or "off: <reason>"; `vectors` is who compared them: pgvector, or
    numpy and why. `pending`: memories without a vector yet.

    `rewrite` says what became of the query in other words, `rewritten` are these, empty when none were searched.
    `dropped` counts candidates that did not come back, by reason; `steps` are seconds by name.
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
        return _plain(self)


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer: best hit first. `recall_id` is the record of it, None when it was not recorded."""

    query: str
    hits: tuple[Hit, ...]
    trace: Trace
    recall_id: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "hits": [hit.as_dict() for hit in self.hits],
            "trace": self.trace.as_dict(),
            "recall_id": self.recall_id,
        }


def scope_as_dict(filters: Filters) -> dict[str, Any]:
    """What of the filters is not the default, as JSON takes it."""
    return {
        each.name: _json(getattr(filters, each.name))
        for each in fields(filters)
        if getattr(filters, each.name) != each.default
    }


def _plain(value: Any) -> Any:
    """A dataclass as JSON takes it: times in ISO 8601, UUIDs as text, tuples as lists."""
    return {each.name: _json(getattr(value, each.name)) for each in fields(value)}


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    if isinstance(value, Parts):
        return asdict(value)
    return value
