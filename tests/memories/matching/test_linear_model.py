"""What all signals together say of two texts that the rules leave apart, and what guards allow. No database."""

from __future__ import annotations

import math
from itertools import combinations, groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.matching import Kind, relation
from memories.matching.axes import AXES, KINDS, kinds_of, leaning
from memories.matching.features import NAMES
from memories.matching.linear_model import likelihood
from memories.matching.model_weights import WEIGHTS
from memories.matching.synonyms import stem
from tests.memories.near_facts import near_facts
from tests.memories.pairs import pairs
from tests.support.thorough import some

SAME, AGAINST, OTHER = Kind.REINFORCES, Kind.CONTRADICTS, Kind.DISTINCT
NEAR = near_facts()
some_text = st.sampled_from([text for pair in pairs() for text in (pair.known, pair.new)])
cosines = st.floats(-1.0, 1.0)


def test_each_number_has_its_three_weights():
    assert len(NAMES) == len(set(NAMES)) == len(WEIGHTS)
    assert all(len(row) == 3 for row in WEIGHTS)


@given(st.lists(st.floats(-5, 5), min_size=len(NAMES), max_size=len(NAMES)))
def test_how_likely_the_three_answers_are_adds_up_to_one(numbers):
    likely = likelihood(numbers)
    assert math.isclose(sum(likely), 1.0)
    assert all(0.0 <= one <= 1.0 for one in likely)


@given(some_text, some_text, cosines)
def test_the_answer_is_the_same_whichever_text_was_known_first(one, other, cosine):
    assert relation(one, other, cosine=cosine).kind == relation(other, one, cosine=cosine).kind


@given(st.text(max_size=80), st.text(max_size=80), cosines)
def test_any_text_gets_an_answer_at_any_cosine(one, other, cosine):
    assert relation(one, other, cosine=cosine).kind in set(Kind)


@given(some_text, cosines)
def test_a_text_and_itself_are_one_fact_at_any_cosine(text, cosine):
    assert relation(text, text, cosine=cosine).kind == SAME


def test_a_word_leans_one_way_on_an_axis():
    for line in AXES:
        yes, no = (set(side.split()) for side in line.split(" | "))
        assert not yes & no, line
    assert dict(leaning("public")).items() & {(axis, -side) for axis, side in leaning("password")}


def test_things_of_one_kind_are_found_in_any_form():
    for line in KINDS:
        assert frozenset.intersection(*(kinds_of(word) for word in line.split())), line
    assert kinds_of(stem("postgres")) & kinds_of("sqlite")


def test_what_the_signals_say_together(subtests):
    for known, new, cosine, expected in [
        ("The wiki is public", "The wiki requires a login", 0.80, AGAINST),
        ("The app must be up before the job starts", "The job must be up before the app starts", 0.99, AGAINST),
        ("Reports are sent by mail", "Reports are sent by Slack", 0.85, AGAINST),
        ("The blue lamp is on channel 3", "The red lamp is on channel 3", 0.95, OTHER),
        ("Raising the limit fixed the mail errors", "Raising the limit fixed the print errors", 0.92, OTHER),
        ("Short self-test is daily, long self-test weekly", "Short fry is daily, long self-test weekly", 0.99, OTHER),
        ("The worker runs on node a1", "The worker runs on node a2", 0.97, OTHER),
        ("Backups are encrypted", "Offsite backups are encrypted", 0.92, OTHER),
        ("The import can start at noon", "The import cannot start at noon", 0.97, AGAINST),
        ("Each message is delivered exactly once", "A message may be delivered more than once", 0.92, AGAINST),
        ("Jobs are restarted at most three times", "A job gets no more than 3 restarts", 0.94, SAME),
    ]:
        with subtests.test(str(known)):
            assert relation(known, new, cosine=cosine).kind == expected
            assert relation(new, known, cosine=cosine).kind == expected


def test_texts_far_apart_in_meaning_are_not_looked_at_a_third_time():
    found = relation("The wiki is public", "The wiki requires a login", cosine=0.2)
    assert found.kind == OTHER
    assert "likely" not in found.evidence


def test_of_1_000_facts_near_in_words_none_is_lost_and_none_superseded():
    scopes = [list(scope) for _, scope in groupby(NEAR, key=lambda one: one.scope)]
    assert len({near.fact for near in NEAR}) == len(NEAR) == 1_000
    told = [
        (one.fact, other.fact)
        for scope in some(scopes, 5)
        for one, other in combinations(scope, 2)
        if relation(one.fact, other.fact, cosine=0.9).kind != OTHER
    ]
    assert told == []


def test_of_1_000_restatements_six_in_ten_are_merged():
    """At .85: of these sentences the median is .93."""
    asked = some(NEAR, 3)
    merged = [near for near in asked if relation(near.fact, near.same, cosine=0.85).kind == SAME]
    assert len(merged) >= 0.6 * len(asked)


@pytest.mark.parametrize("cosine", [0.85, 0.95, 1.0])
def test_of_1_000_contradictions_none_is_swallowed(cosine):
    swallowed = [
        (near.fact, near.against)
        for near in some(NEAR, 3)
        if relation(near.fact, near.against, cosine=cosine).kind == SAME
    ]
    assert swallowed == []
