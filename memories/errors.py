"""Errors of the memory store."""

from __future__ import annotations

from typing import Any

from claudeops.lib.domain_error import DomainError


class MemoriesError(DomainError):
    code = "memories_error"


class InvalidMemory(MemoriesError):
    """A field of a memory cannot be stored as given."""

    code = "invalid_memory"


class InvalidProposal(InvalidMemory):
    """A change of the curated memory that cannot be stored or decided as given."""

    code = "invalid_proposal"


class TextHeld(InvalidMemory):
    """The gate does not allow a text that no person typed."""

    code = "text_held"


class InvalidEntry(MemoriesError):
    """A field of a journal's entry, or a word of its vocabulary, cannot be taken as given."""

    code = "invalid_entry"


class EntryNotFound(MemoriesError):
    code = "entry_not_found"


class InvalidDecision(MemoriesError):
    """A decision record cannot be written as given."""

    code = "invalid_decision"


class DecisionNotFound(MemoriesError):
    code = "decision_not_found"


class Conflict(MemoriesError):
    """Somebody changed it since it was read. `current` and `change` (its latest) are None when deleted."""

    code = "conflict"

    def __init__(self, message: str, fix: str = "", *, current: Any = None, change: Any = None) -> None:
        super().__init__(message, fix)
        self.current = current
        self.change = change


class MemoryNotFound(MemoriesError):
    code = "memory_not_found"


class ProposalNotFound(MemoriesError):
    code = "proposal_not_found"


class AccessDenied(MemoriesError):
    code = "forbidden"


class ProjectNotFound(MemoriesError):
    code = "project_not_found"


class InvalidProject(MemoriesError):
    """Fields of a project cannot be stored as given; `fields` has what is wrong, by name."""

    code = "invalid_project"

    def __init__(self, fields: dict[str, list[str]]) -> None:
        by_field = {name: " ".join(messages) for name, messages in fields.items()}
        super().__init__(" ".join(f"{name}: {text}" for name, text in by_field.items()))
        self.fields = by_field


class InvalidToken(MemoriesError):
    code = "invalid_token"


class TokenNotFound(MemoriesError):
    code = "token_not_found"
