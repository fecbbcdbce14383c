"""1,000 facts that are near in words, and 1,000 restatements and contradictions of them, made from 40 sentences.

Each sentence is written three times, as a fact, in other words, and against it, with a thing and a number to fill in.
A scope holds the facts of two sentences about a dozen things each, so that all of it looks alike. Knows no test.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path


def words(text: str) -> list[str]:
    return text.split()


THINGS = words(
    """orders billing search mail media audit staging archive metrics stock export report invoice photo warehouse
    session catalog payroll backup ticket sensor garden kitchen office lab"""
)

WORDS = words("zero one two three four five six seven eight nine ten eleven twelve")

SENTENCES = Path(__file__).parent.parent / "data" / "near_facts.txt"
"""A line each: the fact | the same in other words | what cannot hold beside it."""


@dataclass(frozen=True, slots=True)
class Near:
    """A fact with what says the same and what says otherwise, and the scope it is in."""

    scope: int
    fact: str
    same: str
    against: str


def near_facts() -> list[Near]:
    """1,000 of them, in 40 scopes of 25: 13 facts of one sentence and 12 of the next."""
    sentences = [line.split(" | ") for line in SENTENCES.read_text().splitlines()]
    found = []
    for number, ((fact, same, against), following) in enumerate(pairwise([*sentences, sentences[0]])):
        for at, thing in enumerate(THINGS):
            shapes = (fact, same, against) if at % 2 == 0 else following
            count = 2 + (number * 7 + at * 5) % 11
            values = {
                "t": thing, "n": count, "w": WORDS[count], "o": count + 3 + at % 4, "h": 24 * count,
                "s": 60 * count, "mb": 1024 * count,
            }  # fmt: skip
            found.append(Near(number, *(shape.format(**values) for shape in shapes)))
    return found
