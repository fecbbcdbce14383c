"""The trace of a recall: how it searched, what it dropped, how long each step took."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


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
