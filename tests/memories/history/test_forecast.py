"""The forecast of confidence, `memories/history/forecast.py`, against `lifecycle/rules.py`. No database."""

from __future__ import annotations

from copy import copy
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memories.history.forecast import End, forecast, steps_taken
from memories.lifecycle import rules
from memories.models import Memory, Verdict
from memories.taxonomy import OPS, TAXONOMIES

CONFIRMED = datetime(2026, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
spans = st.timedeltas(timedelta(0), timedelta(days=300))


def memory_of(**fields) -> Memory:
    return Memory(**{"taxonomy": "ops", "category": "timing", "confidence": 0.7, "updated_at": CONFIRMED} | fields)


def swept(memory: Memory, at: datetime) -> Memory:
    """What a sweep at `at` leaves."""
    left = copy(memory)
    for name, value in rules.aged(memory, at).items():
        setattr(left, name, value)
    return left


@st.composite
def ages(draw) -> Memory:
    """Memories of every kind that is active, some with decay taken, some with an end of their own."""
    taxonomy = draw(st.sampled_from(list(TAXONOMIES.values())))
    lowest = taxonomy.inactive_below or 0.0
    return memory_of(
        taxonomy=taxonomy.slug,
        category=draw(st.sampled_from(taxonomy.categories)),
        confidence=round(draw(st.floats(lowest, 1)), 6),
        verdict=draw(st.sampled_from(Verdict.values)),
        persistent=draw(st.booleans()),
        decayed_until=draw(st.none() | spans.map(lambda span: CONFIRMED + span)),
        expires_at=draw(st.none() | spans.map(lambda span: CONFIRMED + span)),
    )


def value_at(told, when: datetime) -> float:
    return next(point.confidence for point in reversed(told.points) if point.at <= when)


@given(ages(), spans, spans)
def test_until_it_is_inactive_it_is_what_a_sweep_at_any_moment_would_leave(memory, start, further):
    at, when = CONFIRMED + start, CONFIRMED + start + further
    told, left = forecast(memory, at), swept(memory, when)
    if told.inactive_at is None or when < told.inactive_at:
        assert (left.confidence, left.active, left.inactive_reason) == (value_at(told, when), True, "")
    else:
        assert not left.active


@given(ages(), spans)
def test_it_falls_inactive_at_the_moment_it_says_and_not_before(memory, start):
    told = forecast(memory, CONFIRMED + start)
    if told.inactive_at is None:
        assert told.end == End.NOTHING
        assert swept(memory, CONFIRMED + timedelta(days=4000)).active
        return
    if told.inactive_at > memory.updated_at:
        assert swept(memory, told.inactive_at - MICROSECOND).active
    left = swept(memory, told.inactive_at)
    assert not left.active
    assert left.inactive_reason == ("decayed" if told.end == End.DECAYED else "expired")
    if told.end == End.DECAYED:
        assert rules.is_active(left.confidence, TAXONOMIES[memory.taxonomy]) is False


@given(ages(), spans)
def test_sweeping_every_eight_hours_follows_it(memory, start):
    at = CONFIRMED + start
    told, left = forecast(memory, at), memory
    for hours in range(0, 24 * 120, 8):
        when = at + timedelta(hours=hours)
        left = swept(left, when)
        assert left.active == (told.inactive_at is None or when < told.inactive_at)
        if left.active:
            assert left.confidence == value_at(told, when)


@given(ages(), spans)
def test_its_points_go_forwards_and_never_up(memory, start):
    points = forecast(memory, CONFIRMED + start).points
    assert all(one.at < other.at and one.confidence >= other.confidence for one, other in pairwise(points))
    assert len(points) <= 12


def test_a_fresh_ops_memory_falls_below_the_limit_after_the_grace_and_five_weeks():
    told = forecast(memory_of(), CONFIRMED)
    assert [point.confidence for point in told.points] == [0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
    assert (told.inactive_at, told.end, told.limit) == (CONFIRMED + timedelta(days=65), End.DECAYED, 0.3)


def test_what_ends_it_and_when(subtests):
    for given_, days, end in [
        ({"persistent": True}, None, End.NOTHING),
        ({"verdict": Verdict.HOLD}, None, End.NOTHING),
        ({"active": False}, None, End.NOTHING),
        ({"persistent": True, "expires_at": CONFIRMED + timedelta(days=3)}, 3, End.EXPIRED),
        ({"expires_at": CONFIRMED + timedelta(days=40)}, 40, End.EXPIRED),
        ({"expires_at": CONFIRMED + timedelta(days=400)}, 65, End.DECAYED),
        ({"taxonomy": "project", "category": "pattern"}, None, End.NOTHING),
        ({"taxonomy": "project", "category": "warning", "expires_at": CONFIRMED + timedelta(days=90)}, 90, End.EXPIRED),
    ]:
        with subtests.test(str(given_)):
            told = forecast(memory_of(**given_), CONFIRMED)
            assert told.inactive_at == (None if days is None else CONFIRMED + timedelta(days=days))
            assert told.end == end


def test_what_is_overdue_is_told_as_past():
    told = forecast(memory_of(), CONFIRMED + timedelta(days=100))
    assert told.inactive_at == CONFIRMED + timedelta(days=65)
    assert [point.at for point in told.points] == [CONFIRMED + timedelta(days=100)]


@given(st.floats(0, 1).map(lambda value: round(value, 6)), spans)
def test_the_steps_that_were_taken_end_where_the_rule_says(confidence, span):
    left, until = rules.decayed(confidence, CONFIRMED, None, CONFIRMED + span, OPS.decay)
    taken = steps_taken(confidence, CONFIRMED, None, until, OPS.decay) if until else []
    assert (taken[-1].confidence if taken else confidence) == left
    assert [point.at - CONFIRMED for point in taken] == [
        timedelta(days=30 + 7 * number) for number in range(1, len(taken) + 1)
    ]
