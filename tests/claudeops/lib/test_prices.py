"""What a message of a model costs, by the table of prices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claudeops.lib import prices
from claudeops.lib.prices import Tokens, price_of

STREAMS = Path(__file__).parents[2] / "data" / "streams"


def test_the_table_says_when_and_where_its_prices_are_from():
    assert prices.AS_OF >= "2026-10-24"
    assert prices.SOURCE.startswith("https://platform.claude.com/")


@pytest.mark.parametrize("name", ["stream", "background", "thinking", "ratelimit"])
def test_it_gives_what_the_cli_charged(name):
    result = json.loads((STREAMS / f"{name}.jsonl").read_text().splitlines()[-1])
    model, used = next(iter(result["modelUsage"].items()))
    assert price_of(model).of(Tokens(used["inputTokens"], used["outputTokens"])) == pytest.approx(used["costUSD"])


def test_each_kind_of_token_has_its_price():
    each = Tokens(input=1_000_000, output=1_000_000, write_5m=1_000_000, write_1h=1_000_000, read=1_000_000)
    assert price_of("claude-opus-5").of(each) == pytest.approx(5 + 25 + 6.25 + 10 + 0.5)


def test_a_long_prompt_has_its_own_price():
    price = price_of("claude-haiku-5-5")
    assert price.of(Tokens(input=100_000, output=1_000)) == pytest.approx(0.0105)
    assert price.of(Tokens(input=60_000, read=50_000, output=1_000)) == pytest.approx(0.03 + 0.0025 + 0.0025)


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4-5-20250929",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "claude-sonnet-4-5@20250929",
        "claude-sonnet-4-5[1m]",
        "Claude-Sonnet-4-5",
    ],
)
def test_a_model_is_known_by_any_of_its_names(name):
    price = price_of(name)
    assert (price.known, price.row["input"]) == (True, 3)


@pytest.mark.parametrize(("name", "output"), [("claude-opus-9", 75), ("claude-haiku-9-9", 5), ("gpt-x", 75), ("", 75)])
def test_an_unknown_model_costs_as_the_dearest_of_its_family(name, output):
    price = price_of(name)
    assert (price.known, price.row["output"]) == (False, output)
