"""The block of memories in a prompt: `memories/injection/budget.py`. No database."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.injection.budget import Line, choose, cut, header, shown, tokens

texts = st.text(st.characters(), min_size=1, max_size=120)
lines = st.builds(
    Line,
    memory_id=st.integers(1, 10_000),
    service=st.none() | st.sampled_from(["caddy", "jellyfin", "adguard", "general", "zz"]),
    category=st.sampled_from(["timing", "behavior"]),
    observation=texts,
    confidence=st.integers(0, 100).map(lambda value: value / 100),
)


@pytest.mark.parametrize(("length", "count"), [(0, 0), (1, 1), (4, 1), (5, 2), (8000, 2000), (8001, 2001)])
def test_a_token_is_four_characters(length, count):
    assert tokens("x" * length) == count


@pytest.mark.parametrize(
    ("confidence", "text"), [(0.9, "0.9"), (1, "1.0"), (0.75, "0.75"), (0.3, "0.3"), (0.05, "0.05"), (0.699999, "0.7")]
)
def test_confidence_has_one_decimal_or_two_where_needed(confidence, text):
    assert shown(confidence) == text


def test_headers():
    assert header(12, 18, 1847) == "## Operational Memory (12 of 18 memories, ~1,847 tokens)"
    assert header(3, 3, 412) == "## Operational Memory (3 memories, ~412 tokens)"
    assert header(1, 1, 27) == "## Operational Memory (1 memory, ~27 tokens)"


def test_a_cut_is_shown():
    assert cut("x" * 600) == "x" * 600
    assert cut("x" * 601) == "x" * 598 + " …"


@given(st.lists(lines, max_size=40), st.integers(0, 1500), st.integers(0, 5))
def test_every_block_keeps_its_promises(given_lines, budget, more):
    eligible = len(given_lines) + more
    chosen = choose(iter(given_lines), budget, eligible=eligible)
    # A strict beginning, and the first that did not fit is the next.
    count = len(chosen.included)
    assert list(chosen.included) == given_lines[:count]
    assert list(chosen.left_out) == given_lines[count : count + 1]
    assert chosen.why == (f"the budget of {budget:,} tokens is full" if chosen.left_out else "")
    assert tokens(chosen.text) == chosen.tokens <= budget or chosen.text == ""
    if not chosen.included:
        assert (chosen.text, chosen.tokens) == ("", 0)
        return
    rows = chosen.text.split("\n")
    assert len(chosen.text.splitlines()) == len(rows)
    assert rows[0] == header(count, eligible, chosen.tokens)
    headings = [row for row in rows if row.startswith("### ")]
    assert [row for row in rows if row.startswith("#")] == [rows[0], *headings]
    names = [heading.removeprefix("### ") for heading in headings]
    assert names == sorted(set(names), key=lambda name: (name == "general", name))
    items = [row for row in rows if row.startswith("- [")]
    assert len(items) == count
    assert all(re.fullmatch(r"- \[\w+\] .* \(confidence: \d\.\d\d?\)", item) for item in items)
    assert len(rows) == 1 + count + 2 * len(headings)
    assert "```" not in chosen.text
    assert "~~~" not in chosen.text


@given(st.lists(lines, min_size=1, max_size=40), st.integers(0, 800))
def test_a_larger_budget_never_takes_fewer(given_lines, budget):
    few = choose(given_lines, budget, eligible=len(given_lines))
    many = choose(given_lines, budget + 25, eligible=len(given_lines))
    assert few.included == many.included[: len(few.included)]


def test_no_more_is_read_than_the_first_that_does_not_fit():
    read = []

    def reading():
        for number in range(1000):
            read.append(number)
            yield Line(number, "caddy", "timing", "x" * 100, 0.7)

    chosen = choose(reading(), 200, eligible=1000)
    assert len(read) == len(chosen.included) + 1


def test_tokens_in_the_header_count_themselves():
    """Around 1,000 tokens the number grows by two characters, which it must count."""
    for length in range(3700, 4000):
        only = [Line(n, "s", "timing", "x" * (length // 10), 0.7) for n in range(9)]
        last = Line(9, "s", "timing", "x" * (length - 9 * (length // 10)), 0.7)
        chosen = choose([*only, last], 5000, eligible=10)
        assert chosen.tokens == tokens(chosen.text)
        assert f"~{chosen.tokens:,} tokens" in chosen.text
