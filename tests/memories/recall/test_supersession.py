"""Of two hits that say nearly the same, the newer comes first: in ranking; and who is named in a question said it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from memories.recall import fusion
from memories.recall.fusion import WEIGHTS, parts_of, rank
from memories.recall.query import read_query, said_by
from memories.recall.results import Candidate
from memories.recall.supersession import LEAST, likely

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OLD = Candidate(1, NOW - timedelta(days=60), cosine=0.75, coverage=0.6, service="nas")
NEW = Candidate(2, NOW - timedelta(days=3), cosine=0.65, coverage=0.6, service="nas")


def alike(cosine):
    return lambda ids: np.full((len(ids), len(ids)), cosine, dtype=np.float32)


ALIKE = alike(1.1)


def order(*candidates, likeness=ALIKE, weights=WEIGHTS):
    return [one.memory_id for one in rank(candidates, NOW, weights, likeness=likeness)]


def test_the_newer_of_two_that_say_nearly_the_same_comes_first():
    assert order(OLD, NEW, likeness=None) == [1, 2]
    assert order(OLD, NEW) == [2, 1]


def test_what_it_gained_is_among_its_parts_and_the_parts_make_its_score():
    first, second = rank([OLD, NEW], NOW, likeness=ALIKE)
    assert first.score == second.score
    assert parts_of(first, NOW, WEIGHTS).boosts["newer"] > 0
    assert parts_of(first, NOW, WEIGHTS).fused + sum(parts_of(first, NOW, WEIGHTS).boosts.values()) == pytest.approx(
        first.score
    )
    assert "newer" not in parts_of(second, NOW, WEIGHTS).boosts


def test_of_three_that_say_nearly_the_same_the_newest_comes_first():
    between = replace(OLD, memory_id=3, confirmed_at=NOW - timedelta(days=30), cosine=0.7)
    assert order(OLD, NEW, between) == [2, 3, 1]


@pytest.mark.parametrize(
    "newer",
    [
        replace(NEW, service="printer"),
        replace(NEW, coverage=0.2, cosine=0.7),
        replace(NEW, confirmed_at=OLD.confirmed_at - timedelta(days=1)),
        replace(NEW, sequence="talk", position=4),
    ],
    ids=["of another service", "that does not answer the query", "that is older", "a turn"],
)
def test_an_older_hit_does_not_yield_to_one(newer):
    assert order(OLD, newer) == [1, 2]


def test_an_older_hit_that_fits_much_better_does_not_yield():
    meant = replace(OLD, cosine=0.9, coverage=1.0)
    assert order(meant, replace(NEW, cosine=0.6, coverage=0.4)) == [2, 1]
    assert order(meant, replace(NEW, cosine=0.3, coverage=0.4)) == [1, 2]


def test_an_older_hit_that_has_the_identifier_does_not_yield():
    assert order(replace(OLD, phrase=True, cosine=0.7), NEW) == [1, 2]


def test_an_older_hit_does_not_yield_to_one_that_says_something_else():
    assert order(OLD, NEW, likeness=alike(0.9)) == [1, 2]


@pytest.mark.parametrize("weights", [replace(WEIGHTS, newer_lead=0.0), replace(WEIGHTS, age=fusion.NO_AGE)])
def test_it_can_be_left_out(weights):
    assert order(OLD, NEW, weights=weights) == [1, 2]


def test_a_memory_without_a_service_may_have_been_replaced_by_one_with_it():
    assert order(replace(OLD, service=""), NEW) == [2, 1]


def row(number, text, service="tenants", days=0, sequence=""):
    at = NOW - timedelta(days=days)
    return Candidate(number, at, text, service, sequence=sequence)


def by_words(earlier, later, query, cosine=0.7):
    """What the words of the two make of their cosine, the earlier one being the first hit."""
    cosines = np.array([[1, cosine], [cosine, 1]], dtype=np.float32)
    return float(likely(cosines, [row(1, earlier, days=60), row(2, later)], read_query(query))[1, 0])


def test_the_more_of_an_earlier_one_a_later_one_says_the_likelier_it_replaced_it():
    old, asked = "Logs of the gateway are kept for seven days", "how long are logs kept"
    new = by_words(old, "Logs of the gateway are kept for a month", asked)
    assert new > by_words(old, "The gateway was painted", asked)


def test_what_tells_of_a_change_has_likelier_replaced_another():
    old, asked = "Reports are built in Tableau", "which tool builds reports"
    assert by_words(old, "Reports are built in Metabase now", asked) > by_words(
        old, "Reports are built in Metabase", asked
    )


@pytest.mark.parametrize(
    ("old", "same", "other", "asked"),
    [
        ("UPS 1 feeds rack A", "UPS 1 feeds rack B", "UPS 2 feeds rack B", "which rack does UPS 1 feed"),
        ("Van of Olga is red", "Van of Olga is blue", "Van of Mats is blue", "which colour has the van of Olga"),
        (
            "The tenant audit keeps logs for a year",
            "The tenant audit keeps logs for a week",
            "The tenant dev keeps logs for a week",
            "how long does the tenant audit keep logs",
        ),
    ],
    ids=["number", "name", "word"],
)
def test_one_of_two_of_a_kind_is_not_replaced_by_the_other_when_the_query_says_which(old, same, other, asked):
    whichever = asked.replace("UPS 1", "the UPS").replace("of Olga", "").replace("tenant audit", "tenant")
    lost = by_words(old, same, asked) - by_words(old, other, asked)
    assert lost > by_words(old, same, whichever) - by_words(old, other, whichever) + 0.1


def test_a_question_whether_it_is_so_names_what_may_have_changed():
    old, new = "Root login is possible on lab hosts", "Root login was switched off on lab hosts"
    assert by_words(old, new, "is root login possible on lab hosts") > by_words(
        old, new, "why is root login possible on lab hosts"
    )


@pytest.mark.parametrize(
    ("first", "second", "cosine"),
    [
        (row(1, "Logs are kept", days=60), row(2, "Logs are kept now"), LEAST - 0.01),
        (row(1, "Logs are kept", "a", 60), row(2, "Logs are kept now", "b"), 0.9),
        (row(1, "Logs are kept"), row(2, "Logs are kept now", days=60), 0.9),
        (row(1, "Logs are kept", days=60), row(2, "Logs are kept now", sequence="talk"), 0.9),
    ],
    ids=["too far apart", "of another service", "the second is older", "a turn"],
)
def test_two_hits_are_not_compared_by_words(first, second, cosine):
    cosines = np.array([[1, cosine], [cosine, 1]], dtype=np.float32)
    assert not likely(cosines, [first, second], read_query("how long are logs kept")).any()


def test_only_the_best_are_compared():
    seen = []

    def likeness(ids):
        seen.append(len(ids))
        return np.zeros((len(ids), len(ids)), dtype=np.float32)

    order(*(replace(OLD, memory_id=n, confirmed_at=NOW - timedelta(days=n)) for n in range(1, 90)), likeness=likeness)
    assert seen == []  # none of them has an older one above it
    order(
        *(replace(OLD, memory_id=n, cosine=0.5 + n / 1000, confirmed_at=NOW - timedelta(days=n)) for n in range(90)),
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
