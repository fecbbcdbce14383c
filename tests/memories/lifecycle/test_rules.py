"""The arithmetic of confidence: `memories/lifecycle/rules.py`. No database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.errors import InvalidMemory
from memories.lifecycle import rules
from memories.taxonomy import AGENT, KNOWLEDGE, OPS, PROJECT

CONFIRMED = datetime(2026, 1, 1, tzinfo=UTC)
confidences = st.floats(0, 1).map(lambda value: round(value, 6))
spans = st.timedeltas(timedelta(0), timedelta(days=400))


def at(days, **more):
    return CONFIRMED + timedelta(days=days, **more)


def after(days, confidence=0.7, decayed_until=None):
    return rules.decayed(confidence, CONFIRMED, decayed_until, at(days), OPS.decay)


def test_decay_over_time(subtests):
    for days, expected in [
        (0, 0.7),
        (15, 0.7),
        (30, 0.7),
        (36.999, 0.7),
        (37, 0.6),
        (44, 0.5),
        (51, 0.4),
        (79, 0.0),
        (4000, 0.0),
    ]:
        with subtests.test(str(days)):
            assert after(days)[0] == expected


def test_decay_remembers_up_to_when_it_was_taken():
    assert after(36) == (0.7, None)
    assert after(47) == (0.5, at(44))
    assert after(47, 0.5, at(44)) == (0.5, at(44))
    assert after(51, 0.5, at(44)) == (0.4, at(51))


@given(confidences, spans, spans)
def test_decay_in_two_steps_is_decay_in_one(confidence, first, second):
    middle, end = CONFIRMED + first, CONFIRMED + first + second
    once = rules.decayed(confidence, CONFIRMED, None, end, OPS.decay)
    taken, until = rules.decayed(confidence, CONFIRMED, None, middle, OPS.decay)
    assert rules.decayed(taken, CONFIRMED, until, end, OPS.decay) == once


@given(confidences, spans, spans)
def test_time_never_makes_a_memory_surer(confidence, first, second):
    early = rules.decayed(confidence, CONFIRMED, None, CONFIRMED + first, OPS.decay)[0]
    late = rules.decayed(confidence, CONFIRMED, None, CONFIRMED + first + second, OPS.decay)[0]
    assert 0 <= late <= early <= confidence


@given(confidences)
def test_reinforced_and_contradicted_stay_within_0_and_1(confidence):
    assert confidence <= rules.reinforced(confidence, OPS) <= 1
    assert 0 <= rules.contradicted(confidence, OPS) <= confidence


def test_ten_confirmations_of_0_make_exactly_1():
    confidence, seen = 0.0, []
    for _ in range(11):
        confidence = rules.reinforced(confidence, OPS)
        seen.append(confidence)
    assert seen == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0]


@pytest.mark.parametrize(
    ("given_", "clamped"), [(1.5, 1.0), (-0.1, 0.0), (0.7 + 0.1, 0.8), (1, 1.0), ("0.5", 0.5), (0.1234567, 0.123457)]
)
def test_clamp(given_, clamped):
    assert rules.clamp(given_) == clamped


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), "much", None, "nan"])
def test_what_is_no_confidence_is_refused(value):
    with pytest.raises(InvalidMemory, match="allowed is a number from 0 to 1"):
        rules.clamp(value)


@pytest.mark.parametrize(
    ("taxonomy", "confidence", "active"),
    [(OPS, 0.3, True), (OPS, 0.299999, False), (PROJECT, 0.2, True), (AGENT, 0.1, False), (KNOWLEDGE, 0.0, True)],
)
def test_below_the_threshold_of_its_taxonomy_a_memory_is_inactive(taxonomy, confidence, active):
    assert rules.is_active(confidence, taxonomy) is active


def test_a_confirmation_forgets_decay_only_where_its_grace_outlasts_it():
    decay = OPS.decay
    assert rules.kept_decay(CONFIRMED, None, decay) is None
    assert rules.kept_decay(CONFIRMED, at(30), decay) is None
    assert rules.kept_decay(CONFIRMED, at(31), decay) == at(31)
    assert rules.kept_decay(CONFIRMED, at(31), None) is None
