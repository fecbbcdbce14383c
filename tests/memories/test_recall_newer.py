"""Of two hits that say nearly the same, the newer comes first: in ranking; and who is named in a question said it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from memories.recall import ranking
from memories.recall.ranking import WEIGHTS, Candidate, rank
from memories.recall.terms import read_query, said_by

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OLD = Candidate(1, NOW - timedelta(days=60), cosine=0.75, coverage=0.6, service="nas")
NEW = Candidate(2, NOW - timedelta(days=3), cosine=0.65, coverage=0.6, service="nas")


def alike(cosine):
    return lambda ids: np.full((len(ids), len(ids)), cosine, dtype=np.float32)


ALIKE = alike(0.8)


def order(*candidates, likeness=ALIKE, weights=WEIGHTS):
    return [one.candidate.memory_id for one in rank(candidates, NOW, weights, likeness=likeness)]


def test_the_newer_of_two_that_say_nearly_the_same_comes_first():
    assert order(OLD, NEW, likeness=None) == [1, 2]
    assert order(OLD, NEW) == [2, 1]


def test_what_it_gained_is_among_its_parts_and_the_parts_make_its_score():
    first, second = rank([OLD, NEW], NOW, likeness=alike(0.8))
    assert first.score == second.score
    assert first.parts.boosts["newer"] > 0
    assert first.parts.fused + sum(first.parts.boosts.values()) == pytest.approx(first.score)
    assert "newer" not in second.parts.boosts


def test_of_three_that_say_nearly_the_same_the_newest_comes_first():
    between = OLD._replace(memory_id=3, confirmed_at=NOW - timedelta(days=30), cosine=0.7)
    assert order(OLD, NEW, between) == [2, 3, 1]


@pytest.mark.parametrize(
    "newer",
    [
        NEW._replace(service="printer"),
        NEW._replace(cosine=0.4),
        NEW._replace(coverage=0.45, cosine=0.7),
        NEW._replace(confirmed_at=OLD.confirmed_at - timedelta(days=1)),
        NEW._replace(sequence="talk", position=4),
    ],
    ids=["of another service", "that fits much worse", "that lacks a word of the query", "that is older", "a turn"],
)
def test_an_older_hit_does_not_yield_to_one(newer):
    assert order(OLD, newer) == [1, 2]


def test_an_older_hit_that_has_the_identifier_does_not_yield():
    assert order(OLD._replace(phrase=True, cosine=0.6), NEW) == [1, 2]


def test_an_older_hit_does_not_yield_to_one_that_says_something_else():
    assert order(OLD, NEW, likeness=alike(0.6)) == [1, 2]


@pytest.mark.parametrize("weights", [replace(WEIGHTS, newer_lead=0.0), ranking.without("age")])
def test_it_can_be_left_out(weights):
    assert order(OLD, NEW, weights=weights) == [1, 2]


def test_only_the_best_are_compared():
    seen = []

    def likeness(ids):
        seen.append(len(ids))
        return np.zeros((len(ids), len(ids)), dtype=np.float32)

    order(*(OLD._replace(memory_id=n, confirmed_at=NOW - timedelta(days=n)) for n in range(1, 90)), likeness=likeness)
    assert seen == []  # none of them has an older one above it
    order(
        *(OLD._replace(memory_id=n, cosine=0.5 + n / 1000, confirmed_at=NOW - timedelta(days=n)) for n in range(90)),
        likeness=likeness,
    )
    assert seen[-1] == 20


@pytest.mark.parametrize(
    ("turn", "query", "expected"),
    [
        ("Ada: I was in Graz.", "Where was Ada in May?", True),
        ("Ada: I was in Graz.", "Ada's town", True),
        ("Ben: Ada was in Graz.", "Where was Ada in May?", False),
        ("It was so: Ada left.", "Where was Ada in May?", False),
        ("No name at all", "name", False),
    ],
)
def test_a_turn_is_known_by_the_name_it_begins_with(turn, query, expected):
    assert said_by(turn, read_query(query).terms) is expected


def test_what_the_named_one_said_comes_before_what_another_said():
    said = Candidate(1, NOW, cosine=0.5, sequence="talk", position=1, speaker=True)
    other = Candidate(2, NOW, cosine=0.5, sequence="talk", position=5)
    assert order(other, said, likeness=None) == [1, 2]
