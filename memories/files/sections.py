"""Which sections an agent's file has, and to which of them a type of memory goes: `sections.toml` as data. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

TABLE = Path(__file__).with_name("sections.toml")
RECENT = "Recent Learnings"
"""Where a type without a section goes; what must leave a file leaves this one first."""
OTHER_TYPE = "learning"
"""The type of what stands in a section that no type goes to."""


@dataclass(frozen=True, slots=True)
class SectionSet:
    """The sections of one agent's file, in order, and the section of each type."""

    names: tuple[str, ...]
    required: tuple[str, ...]
    by_type: Mapping[str, str]

    def section_of(self, category: str) -> str:
        return self.by_type.get(category, RECENT)

    def type_of(self, section: str) -> str:
        """Return the type of an entry that a person wrote into a section; OTHER_TYPE where none goes there."""
        wanted = section.casefold()
        return next((kind for kind, name in self.by_type.items() if name.casefold() == wanted), OTHER_TYPE)


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def sections_for(agent: str, own: Mapping[str, Sequence[str]] = MappingProxyType({})) -> SectionSet:
    """Return the sections of an agent, by its normalised id; `own` are those that a project defines, by agent.

    A set of its own stands in place of the standard sections that are neither required nor Recent Learnings. A type
    whose section is not in the set goes to Recent Learnings.
    """
    table = _table()["section"]
    required = tuple(row["name"] for row in table if row.get("required"))
    by_type = {kind: row["name"] for row in table for kind in row.get("types", ())}
    agent_table = _table().get("agent", {}).get(agent, {})
    further = own.get(agent) or agent_table.get("sections")
    if not further:
        return SectionSet(tuple(row["name"] for row in table), required, MappingProxyType(by_type))
    names = tuple(dict.fromkeys([*required, *further, RECENT]))
    moved = by_type | dict(agent_table.get("types", {}))
    section_by_type = {kind: name for kind, name in moved.items() if name in names}
    return SectionSet(names, required, MappingProxyType(section_by_type))
