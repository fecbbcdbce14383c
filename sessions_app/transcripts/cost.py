"""Estimate what it costs to observe texts. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from claudeops.lib.prices import AS_OF, FAMILIES, Tokens, price_of

CHARACTERS_A_TOKEN = 4
INSTRUCTIONS, ANSWER = 2_500, 600
"""Tokens of a call beside its text: what the observer is told, and what it answers, about."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls (one a part), tokens in and out, and US dollars by the list price; None where no price is known."""

    calls: int
    tokens_in: int
    tokens_out: int
    model: str
    usd: float | None

    def __str__(self) -> str:
        if not self.model:
            return f"about {self.tokens_in:,} tokens in {_calls(self.calls)}; no model is set for the observer"
        price = "no price known" if self.usd is None else f"about ${self.usd:.2f} at list prices of {AS_OF}"
        return f"about {self.tokens_in:,} tokens in {_calls(self.calls)} of {self.model}: {price}"

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def estimate(characters: Iterable[int], parts: int, model: str) -> Estimate:
    """Estimate the observation of `parts` parts with so many `characters`."""
    tokens_in = sum(characters) // CHARACTERS_A_TOKEN + parts * INSTRUCTIONS
    tokens_out = parts * ANSWER
    has_price = any(family in model.lower() for family in FAMILIES)
    usd = price_of(model).of(Tokens(input=tokens_in, output=tokens_out)) if has_price else None
    return Estimate(parts, tokens_in, tokens_out, model, usd)


def _calls(number: int) -> str:
    return f"{number:,} call{'' if number == 1 else 's'}"
