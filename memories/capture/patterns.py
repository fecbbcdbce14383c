"""Read the tables of patterns that the gate looks for: TOML files beside this module, for a person to review. Pure.

A table names each pattern. A text is words between spaces, one of which is there (`_` is a space). A list is
alternatives: a text is a regular expression, a list within it whole words. `{name}` stands for a pattern above it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import re2

from claudeops.lib.lookaround import without_lookaround

Name = TypeVar("Name")

_ANY_CASE = re2.Options()
_ANY_CASE.case_sensitive = False
_NAME = re.compile(r"\{([a-z_]+)\}")


def read_table(name: str) -> dict[str, Any]:
    """Return what `name`.toml holds."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


def expressions(table: Mapping[str, Any]) -> dict[str, str]:
    """Return the regular expressions of a table by their names. KeyError: a name in one that none above it has."""
    patterns: dict[str, str] = {}
    for name, value in table.items():
        patterns[name] = _NAME.sub(lambda match: f"(?:{patterns[match[1]]})", _alternatives(value))
    return patterns


def _alternatives(value: Any) -> str:
    if isinstance(value, str):
        return "|".join(part.replace("_", " ") for part in value.split())
    return "|".join(one if isinstance(one, str) else rf"\b(?:{_alternatives(' '.join(one))})\b" for one in value)


class Rule(NamedTuple, Generic[Name]):
    """A pattern with its name; `first` is RE2's form of it, which says no a hundred times as fast."""

    name: Name
    pattern: re.Pattern[str]
    first: Any


def rule(name: Name, pattern: str) -> Rule[Name]:
    """Return the rule of a pattern that stands in any letter case."""
    return Rule(name, re.compile(pattern, re.IGNORECASE), re2.compile(f"(?m){without_lookaround(pattern)}", _ANY_CASE))


def names_found(rules: Iterable[Rule[Name]], readings: Iterable[str]) -> list[Name]:
    """Return the names of the rules that one of the readings of a text fits, in the order of the rules."""
    read = list(dict.fromkeys(readings))
    plain = [reading for reading in read if reading.isascii() and reading.isprintable()]
    others = [reading for reading in read if reading not in plain]  # RE2 reads these in its own way
    joined = "\n".join(plain).encode()
    return [
        one.name
        for one in rules
        if any(one.pattern.search(reading) for reading in (read if one.first.search(joined) else others))
    ]
