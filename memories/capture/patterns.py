"""Read the tables of patterns that the gate looks for: TOML files beside this module, for a person to review. Pure.

A table names each pattern. A text is words between spaces, one of which is there (`_` is a space). A list is
alternatives: a text is a regular expression, a list within it whole words. `{name}` stands for a pattern above it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
