"""Request and response schemas of the memories API; the OpenAPI document is made from them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Schema
from pydantic import Field, StrictBool

from claudeops.lib.api_errors import AwareMoment, Given, Id, Moment, Number, Whole
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.taxonomy import TAXONOMIES

MOST_IDS = 10_000
SURFACE = 'The window of time in which it is told, such as "first monday"; empty = by its rank.'

CATEGORIES = sorted({category for one in TAXONOMIES.values() for category in one.categories})

# The document names what is allowed; the domain checks it, with an error that says what belongs together.
Category = Annotated[str, Field(json_schema_extra={"enum": CATEGORIES})]
TaxonomyName = Annotated[str, Field(json_schema_extra={"enum": sorted(TAXONOMIES)})]


class MemoryOut(Schema):
    """One memory. `project` is a slug, null = global; `service` null = general; times are UTC.

    `exposure` is what its session had read before it said this: nothing, house or outside; `exposed_to` names the
    outside sources.
    """

    id: int
    uuid: UUID
    project: str | None
    agent: str | None
    taxonomy: str
    service: str | None
    category: str
    observation: str
    confidence: float
    active: bool
    inactive_reason: str
    verdict: str
    verdict_reason: str
    provisional: str = Field(description="Why it needs a confirmation; empty = it needs none.")
    confirmed_at: datetime | None
    unconfirmed: bool = Field(description="Whether CLAUDEOPS_TRUST keeps it out of prompts until it is confirmed.")
    persistent: bool
    tier: int
    source: str
    exposure: str
    exposed_to: list[str]
    support: str = Field(description="Who supports its words: person, house, outside or nobody; empty: not known.")
    trust: str = Field(description="The least trusted of its lineage: operator, session, imported or external.")
    session_id: int | None
    tags: list[str]
    merged_count: int
    superseded_by_id: int | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    surface: str = Field(description="The window of time in which it is told; empty = by its rank.")
    decayed_until: datetime | None
    approved_at: datetime | None
    used_count: int = Field(description="Sessions that used it.")
    helped_count: int = Field(description="Sessions that used it and completed.")


class ChangeOut(Schema):
    """One change. Send the `id` of the latest as `seen`."""

    id: int
    kind: str
    at: datetime
    actor: str
    session_id: int | None
    reason: str
    before: dict[str, Any]
    after: dict[str, Any]


class Page(Schema):
    limit: int = Field(50, ge=1, le=500)
    offset: int = Field(0, ge=0, le=2**31 - 1)


class ChangesOut(Schema):
    changes: list[ChangeOut]
    total: int = Field(description="How many there are, on all pages.")


class MemoryWithHistory(MemoryOut):
    history: list[ChangeOut]


class MemoriesOut(Schema):
    """A page; `next` is the `after` of the next page, empty on the last one."""

    memories: list[MemoryOut]
    next: str


class MemoryIn(Given):
    observation: str = Field(description="What was observed, in one sentence.")
    category: Category = Field(description="One of the taxonomy's; of ops: timing, dependency, behavior, …")
    service: str | None = Field(None, description="One word; null = general.")
    taxonomy: TaxonomyName = "ops"
    project: str | None = Field(None, description="A slug; null = global, or the token's own project.")
    agent: str | None = Field(None, max_length=64)
    confidence: Number | None = Field(None, description="0 to 1; counts only where the taxonomy has no first one.")
    tags: list[str] = []
    surface: str = Field("", max_length=200, description=SURFACE)


class Stored(Schema):
    """The outcome: created, reinforced, duplicate (this voice said so before), held for review or discarded."""

    outcome: str
    reason: str
    contradicted: list[int] = Field(description="Known memories that it contradicts.")
    memory: MemoryOut | None


class MemoryChangeIn(Given):
    """Fields that are not sent do not change."""

    observation: str | None = None
    category: Category | None = None
    service: str | None = Field(None, description='"" or "general" = no service.')
    confidence: Number | None = None
    tags: list[str] | None = None
    expires_at: Moment | None = Field(None, description="With a zone; null = never.")
    surface: str | None = Field(None, max_length=200, description=SURFACE)
    persistent: StrictBool | None = None
    active: StrictBool | None = None
    reason: str = Field("", max_length=500, description="Recorded in the history.")
    seen: Whole | None = Field(
        None,
        ge=0,
        le=2**63 - 1,
        description="Id of the latest change you know (0: none); 409 when there is a later one.",
    )


class BulkIn(Given):
    """Either `ids` or `filter`; an empty filter means everything that the token may change."""

    action: Annotated[str, Field(json_schema_extra={"enum": list(BULK_ACTIONS)})]
    ids: list[Id] | None = Field(None, max_length=MOST_IDS)
    filter: dict[str, str] | None = Field(None, description="The parameters of GET /api/memories, by name.")
    confidence: Number | None = None
    target: Id | None = Field(None, description="merge: the memory that stays.")
    observation: str | None = Field(None, description="merge: the text of the merged memory.")
    service: str | None = Field(None, max_length=64, description="reassign: one word; general = none.")
    category: str | None = Field(None, max_length=32, description="reassign: one of the memories' taxonomy.")
    reason: str = Field("", max_length=500)


class BulkDeleteIn(Given):
    ids: list[Id] | None = Field(None, max_length=MOST_IDS)
    filter: dict[str, str] | None = None
    reason: str = Field("", max_length=500)


class BulkOut(Schema):
    changed: int
    unchanged: int
    message: str


class Asked(Given):
    """What a recall takes beside the query; all of it narrows."""

    project: str | None = Field(None, max_length=64, description="A slug (it and what is global), or global alone.")
    agent: str | None = Field(None, max_length=64, description="An agent's slug: its own memories and those of none.")
    service: str | None = Field(None, max_length=64, description="One word; general = none.")
    category: Category | None = None
    taxonomy: TaxonomyName | None = None
    tags: list[str] = Field([], description="All of these.")
    limit: Whole | None = Field(None, ge=1, le=100, description="How many, instead of what the profile gives.")
    profile: Literal["lean", "balanced", "deep", "auto"] = "balanced"
    as_of: AwareMoment | None = Field(None, description="What was known then; with a zone.")
    include_hold: StrictBool = Field(False, description="Also what waits for review; needs the scope review.")
    include: list[Literal["narratives"]] = Field(
        [], description="Also the narratives of observed sessions, beside the hits; needs the scope review."
    )


class RecallIn(Asked):
    query: str = Field(max_length=100_000)


class SearchIn(Asked):
    q: str = Field(max_length=10_000, description="The query.")
    limit: int | None = Field(None, ge=1, le=100, description="How many, instead of what the profile gives.")
    include_hold: bool = Field(False, description="Also what waits for review; needs the scope review.")


class HitOut(Schema):
    """One memory that answers; `parts` are what its score is made of."""

    memory_id: int
    uuid: UUID
    observation: str
    service: str | None
    category: str
    taxonomy: str
    project: str | None
    agent: str | None
    confidence: float
    verdict: str
    tags: list[str]
    created_at: datetime | None
    updated_at: datetime | None
    unconfirmed: bool
    score: float
    parts: dict[str, Any]
    collapsed: list[int] = Field(description="Memories that say nearly the same and are left out beside it.")


class NarrativeOut(Schema):
    """What happened in a part of an observed session, as a model told it: `source` names the session and the part."""

    segment: int
    number: int
    transcript: int
    source: str
    narrative: str
    at: datetime
    score: float


class RecallOut(Schema):
    """Best hit first. The trace says what was dropped and why; `semantic` is on, or off with the reason."""

    query: str
    hits: list[HitOut]
    trace: dict[str, Any]
    narratives: list[NarrativeOut] | None = Field(None, description="Null unless they were asked for.")
    recall_id: int | None
