"""Schemas of `/api/projects`, in camelCase; the rest of the API has snake_case."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from django.core.exceptions import ValidationError
from ninja import Schema
from pydantic import AfterValidator, ConfigDict, Field, StrictBool
from pydantic.alias_generators import to_camel

from claudeops.lib.api_errors import AwareMoment, Given, Id, Number, Whole
from memories.api.shapes import ChangeOut, Page
from memories.capture.fields import LONGEST_OBSERVATION, LONGEST_TAG, MOST_TAGS
from memories.models.project import (
    FILES_FOLDER,
    FILES_PATTERN,
    LARGEST_BUDGET,
    LONGEST_LIFETIME,
    LONGEST_PATH,
    MOST_IN_PROMPT,
    UsedMeans,
    checked_folder,
    checked_memory_path,
    checked_pattern,
    checked_section_sets,
)

Kind = Literal["pattern", "warning", "learning", "context"]
"""The type of a project's memory: a category of the project taxonomy."""

Content = Annotated[str, Field(min_length=1, max_length=LONGEST_OBSERVATION, description="One thing, in a sentence.")]
Tags = Annotated[list[Annotated[str, Field(max_length=LONGEST_TAG)]], Field(max_length=MOST_TAGS)]
Share = Annotated[Number, Field(ge=0, le=1)]
Days = Annotated[Whole, Field(ge=1, le=LONGEST_LIFETIME)]


class Out(Schema):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class In(Given):
    model_config = ConfigDict(alias_generator=to_camel)


def without_defaults(schema: dict[str, Any]) -> None:
    """Leave out of the document the defaults of a partial change: what is not sent does not change."""
    for field in schema["properties"].values():
        field.pop("default", None)


class Change(In):
    """Fields that are not sent do not change."""

    model_config = ConfigDict(json_schema_extra=without_defaults)


class Expiry(In):
    """Days by type after which a memory expires; null: never. A type that is missing has the default."""

    pattern: Days | None = None
    warning: Days | None = None
    learning: Days | None = None
    context: Days | None = None


class MemorySettings(In):
    default_expiry: Expiry = Expiry()


class MemorySettingsOut(Out):
    default_expiry: dict[str, int | None]


def checked_by(check: Callable[[Any], None]) -> AfterValidator:
    """Return a validator that asks a check of the model's field."""

    def asked(value: Any) -> Any:
        try:
            check(value)
        except ValidationError as error:
            raise ValueError(" ".join(error.messages)) from None
        return value

    return AfterValidator(asked)


class FileLimits(In):
    """Limits of an agent's memory file that differ from the defaults."""

    kilobytes: Annotated[Whole, Field(ge=1, le=256)] | None = None
    sections: Annotated[Whole, Field(ge=1, le=50)] | None = None
    items: Annotated[Whole, Field(ge=1, le=200)] | None = None
    line: Annotated[Whole, Field(ge=40, le=500)] | None = None


def _checked_memory_path(value: str) -> None:
    if value:
        checked_memory_path(value)


class AgentMemory(In):
    """The memory files of the project's agents: where they are, their limits, and sections by agent."""

    folder: Annotated[str, checked_by(checked_folder)] = Field(
        default=FILES_FOLDER, max_length=200, description="Below the repository path."
    )
    pattern: Annotated[str, checked_by(checked_pattern)] = Field(
        default=FILES_PATTERN, max_length=200, description="The file's name, with {agent} once."
    )
    limits: FileLimits = FileLimits()
    sections: Annotated[dict[str, list[str]], checked_by(checked_section_sets)] = Field(
        default={}, description="Sections by the id of an agent, beside the required ones."
    )
    phrases: StrictBool = Field(
        default=False, description="Learn also from the legacy phrases, such as `Best practice:`."
    )


OF_FILES = {
    "folder": "files_folder",
    "pattern": "files_pattern",
    "limits": "files_limits",
    "sections": "files_sections",
    "phrases": "takes_phrases",
}
"""The names of `agentMemory` and the settings of the project that they are."""


class AgentMemoryOut(Out):
    folder: str
    pattern: str
    limits: dict[str, int]
    sections: dict[str, list[str]]
    phrases: bool


class ProjectOut(Out):
    """One project. `memory.defaultExpiry` has the days by type that differ from the defaults; null: never."""

    id: int
    slug: str
    name: str
    path: str
    memory_path: str = Field(description="Its MEMORY.md below `path`; empty: it is kept in the data folder.")
    description: str
    memories_in_prompt: int
    memory_budget: int = Field(description="Tokens of a prompt for its memories.")
    used_means: str = Field(description="What counts as a use of a memory: named or injected.")
    observed: bool = Field(description="Whether memories are learned from its whole sessions.")
    memory: MemorySettingsOut
    agent_memory: AgentMemoryOut
    created_at: datetime


class ProjectsOut(Out):
    projects: list[ProjectOut]
    total: int


class Settings(In):
    name: str = Field("", max_length=200)
    path: str = Field("", max_length=LONGEST_PATH, description="The path of its repository.")
    memory_path: Annotated[str, checked_by(_checked_memory_path)] = Field(
        "", max_length=200, description="Its MEMORY.md below `path`, such as docs/MEMORY.md; empty: in the data folder."
    )
    description: str = Field("", max_length=100_000)
    memories_in_prompt: Annotated[Whole, Field(ge=1, le=MOST_IN_PROMPT)] = 10
    memory_budget: Annotated[Whole, Field(ge=0, le=LARGEST_BUDGET)] = 500
    used_means: UsedMeans = UsedMeans.NAMED
    observed: StrictBool = Field(True, description="Learn from its whole sessions.")
    memory: MemorySettings = MemorySettings()
    agent_memory: AgentMemory = AgentMemory()

    def settings(self) -> dict[str, Any]:
        """Return what was sent, by the names of `lifecycle.projects.SETTINGS`."""
        fields = self.model_dump(exclude_unset=True, exclude={"slug"})
        if memory := fields.pop("memory", None):
            fields |= memory
        if files := fields.pop("agent_memory", None):
            if "limits" in files:
                files["limits"] = {name: number for name, number in files["limits"].items() if number is not None}
            fields |= {OF_FILES[name]: value for name, value in files.items()}
        return fields


class ProjectIn(Settings):
    slug: str = Field(
        max_length=64,
        pattern=r"^[-a-zA-Z0-9_]*[-a-zA-Z_][-a-zA-Z0-9_]*$",
        description="Letters, digits, hyphens and underscores; not only digits.",
    )


class ProjectChangeIn(Settings, Change):
    """Fields that are not sent do not change; `memory.defaultExpiry` is replaced as a whole."""


class ProjectMemoryOut(Out):
    """One memory of a project. A memory that is held for review is not active. Times are UTC."""

    id: int
    project_id: int
    type: str
    content: str
    source: str = Field(description="human, run, learning or import.")
    source_run_id: int | None = Field(description="The session that it comes from.")
    tags: list[str]
    relevance_score: float | None
    confidence: float
    active: bool
    expires_at: datetime | None = Field(description="null: never.")
    approved_by: str | None = Field(description="An account, or `token NAME`.")
    approved_at: datetime | None
    created_at: datetime
    updated_at: datetime
    used_count: int = Field(description="Sessions that used it.")
    helped_count: int = Field(description="Sessions that used it and completed.")


class ProjectMemoriesOut(Out):
    memories: list[ProjectMemoryOut]
    total: int = Field(description="How many match, on all pages.")


class ProjectMemoryChangeOut(ChangeOut, Out):
    """One change; `before` and `after` have what changed, in the names of a memory here."""


class ProjectMemoryChangesOut(Out):
    changes: list[ProjectMemoryChangeOut]
    total: int = Field(description="How many there are, on all pages.")


class MemoriesAsked(Page, In):
    type: Kind | None = None
    active: Literal["true", "false", "all"] = Field("true", description="false: the inactive ones; all: both.")
    tags: str = Field("", max_length=1000, description="Comma-separated; memories with any of them.")


class ProjectMemoryIn(In):
    type: Kind
    content: Content
    source: Literal["human", "run", "learning"] = Field(
        "run", description="human: a person says it, by a token with the scope review."
    )
    source_run_id: Id | None = Field(None, description="The session of the project that it comes from.")
    tags: Tags = []
    relevance_score: Share | None = None
    expires_at: AwareMoment | None = Field(None, description="With a zone; null: never; left out: by its type.")


class ProjectMemoryChangeIn(Change):
    type: Kind = "pattern"
    content: Content = ""
    tags: Tags = []
    relevance_score: Share | None = None
    confidence: Share = 0.0
    active: StrictBool = True
    expires_at: AwareMoment | None = Field(None, description="With a zone; null: never.")


class ProjectMemoryStored(ProjectMemoryOut):
    """The memory that the statement is now part of, and the outcome: created, reinforced, duplicate or held."""

    outcome: str
    reason: str
    contradicted: list[int] = Field(description="Known memories that it contradicts.")
