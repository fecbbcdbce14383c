"""Estimate what a message of a model cost, from the table `prices.toml`. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

_TABLE: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("prices.toml").read_text(encoding="utf-8"))

AS_OF: str = _TABLE["as_of"].isoformat()
SOURCE: str = _TABLE["source"]
FAMILIES = ("fable", "mythos", "opus", "sonnet", "haiku")

# What stands around a name at a provider, such as us.anthropic.claude-sonnet-4-5-20250929-v1:0 or claude-opus-5[1m].
_PREFIX = re.compile(r"^.*(?=claude-)")
_SUFFIX = re.compile(r"(\[[^\]]*\]|[-@](20\d{6}|latest|default)|-v\d+(:\d+)?)+$")


@dataclass(slots=True)
class Tokens:
    """The tokens of one message. `write_5m` and `write_1h`: written to the cache, `read`: read from it."""

    input: int = 0
    output: int = 0
    write_5m: int = 0
    write_1h: int = 0
    read: int = 0

    @property
    def prompt(self) -> int:
        return self.input + self.write_5m + self.write_1h + self.read


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. `known` is False for a model that the table does not name."""

    row: Mapping[str, Any]
    known: bool = True

    def of(self, tokens: Tokens) -> float:
        """Return the US dollars for one message."""
        row, long = self.row, self.row.get("long_prompt")
        if long and tokens.prompt > long["above"]:
            row = long
        prompt = tokens.write_5m * row["write_5m"] + tokens.write_1h * row["write_1h"] + tokens.read * row["read"]
        return float((tokens.input * row["input"] + tokens.output * row["output"] + prompt) / 1_000_000)


@lru_cache(maxsize=64)
def price_of(model: str) -> Price:
    """Return the price of a model; of an unknown one the dearest of its family, of an unknown family the dearest."""
    rows: Mapping[str, Mapping[str, Any]] = _TABLE["models"]
    name = plain_name(model)
    if name in rows:
        return Price(rows[name])
    family = next((word for word in FAMILIES if word in name), "")
    return Price(max((row for model_name, row in rows.items() if family in model_name), key=_dearness), known=False)


@lru_cache(maxsize=64)
def plain_name(model: str) -> str:
    """Return a model's name without provider, region, date and context suffix."""
    return _SUFFIX.sub("", _PREFIX.sub("", model.lower()))


def _dearness(row: Mapping[str, Any]) -> float:
    row = row.get("long_prompt") or row
    return float(row["input"] + row["output"])
