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

    The names of its settings: `model` ("BACKEND:NAME", or a name alone for the backend `plain`), `url` and `key`.
    `attempts` is how often it is asked at most. With `answers_a_person` the row of a call is appended after it, without
    waiting for the database's writer.
    """

    name: str
    purpose: str
    model: str
    seconds: float
    attempts: int
    most_tokens: int
    plain: str = CLAUDE
    url: str = "CLAUDEOPS_MODEL_URL"
    key: str = "CLAUDEOPS_MODEL_KEY"
    answers_a_person: bool = False


ROLES: Mapping[str, Role] = {
    role.name: role
    for role in (
        Role("observer", "distil a session into facts", "CLAUDEOPS_MODEL_OBSERVER", 180, 3, 8_000),
        Role("classifier", "choose a category", "CLAUDEOPS_MODEL_CLASSIFIER", 60, 3, 1_000),
        Role("reflector", "propose changes to the curated memory", "CLAUDEOPS_MODEL_REFLECTOR", 300, 3, 8_000),
        Role("triage", "decide on proposals", "CLAUDEOPS_MODEL_TRIAGE", 120, 3, 4_000),
        Role(
            "judge",
            "compare pairs of memories",
            "CLAUDEOPS_MATCHING_JUDGE_MODEL",
            120,
            3,
            4_000,
            HTTP,
            "CLAUDEOPS_MATCHING_JUDGE_URL",
            "CLAUDEOPS_MATCHING_JUDGE_KEY",
        ),
        Role(
            "rewriter",
            "say a query in other words",
            "CLAUDEOPS_RECALL_REWRITE_MODEL",
            2,
            1,
            200,
            HTTP,
            "CLAUDEOPS_RECALL_REWRITE_URL",
            "CLAUDEOPS_RECALL_REWRITE_KEY",
            answers_a_person=True,
        ),
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
    found = ROLES[role]
    value: str = getattr(settings, found.model)
    prefix, colon, rest = value.partition(":")
    name, model = (prefix, rest.strip()) if colon and prefix in BACKENDS else (found.plain, value)
    if found.plain == HTTP and name == HTTP and not getattr(settings, found.url):
        model = ""  # the judge and the rewriter are off without an address, too
    return Chosen(found, name, model, _backend(found, name))


def _backend(role: Role, name: str) -> Backend:
    if name == HTTP:
        return HttpBackend(getattr(settings, role.url), getattr(settings, role.key))
    if name == RECORDED:
        return RecordedBackend(Path(settings.CLAUDEOPS_MODEL_RECORDINGS))
    return ClaudeBackend(
        settings.CLAUDEOPS_CLAUDE_BIN, settings.CLAUDEOPS_CLAUDE_HOME, tuple(settings.CLAUDEOPS_PASS_ENV)
    )
