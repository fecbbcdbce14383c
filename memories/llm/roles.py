"""The roles that models have here, and which model a role is set to. Knows no database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from memories.llm.backends import Backend, ClaudeBackend, HttpBackend, RecordedBackend

CLAUDE, HTTP, RECORDED = "claude", "http", "recorded"
BACKENDS = (CLAUDE, HTTP, RECORDED)


@dataclass(frozen=True, slots=True)
class Role:
    """What a model is asked for. `seconds` is the time of a whole call unless the caller gives another.

    `attempts` is how often it is asked at most. An `optional` one has no model unless a person sets it. With
    `answers_a_person` the row of a call is appended after it, without waiting for the database's writer.
    """

    name: str
    purpose: str
    seconds: float
    attempts: int
    most_tokens: int
    optional: bool = False
    answers_a_person: bool = False

    @property
    def model(self) -> str:
        """The name of the setting that holds its model: "BACKEND:NAME", or the name of one of the CLI's alone."""
        return f"CLAUDEOPS_MODEL_{self.name.upper()}"


ROLES: Mapping[str, Role] = {
    role.name: role
    for role in (
        Role("observer", "distil a session into facts", 180, 3, 8_000),
        Role("classifier", "choose a category", 60, 3, 1_000),
        Role("reflector", "propose changes to the curated memory", 300, 3, 8_000),
        Role("triage", "decide on proposals", 120, 3, 4_000),
        Role("judge", "compare pairs of memories", 120, 3, 4_000, optional=True),
        Role("rewriter", "say a query in other words", 2, 1, 200, optional=True, answers_a_person=True),
    )
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The model of a role. `model` is "" when the role is switched off; `off` says so in words."""

    role: Role
    backend_name: str
    model: str
    backend: Backend

    @property
    def off(self) -> str:
        return "" if self.model else f"no model is set for the {self.role.name} ({self.role.model})"


def chosen(role: str) -> Chosen:
    """Return which model the settings name for `role`. Raises KeyError for an unknown role."""
    definition = ROLES[role]
    value: str = getattr(settings, definition.model)
    prefix, colon, rest = value.partition(":")
    name, model = (prefix, rest.strip()) if colon and prefix in BACKENDS else (CLAUDE, value)
    return Chosen(definition, name, model, _backend(name))


def _backend(name: str) -> Backend:
    if name == HTTP:
        return HttpBackend(settings.CLAUDEOPS_MODEL_URL, settings.CLAUDEOPS_MODEL_KEY)
    if name == RECORDED:
        return RecordedBackend(Path(settings.CLAUDEOPS_MODEL_RECORDINGS))
    return ClaudeBackend(
        settings.CLAUDEOPS_CLAUDE_BIN, settings.CLAUDEOPS_CLAUDE_HOME, tuple(settings.CLAUDEOPS_PASS_ENV)
    )
