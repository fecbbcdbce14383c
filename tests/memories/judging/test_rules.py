"""What follows from a verdict: every case in doubt is left to a person."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.judging.rules import Action, decide
from memories.matching import Kind
from memories.models import Memory

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def memory(pk, **given):
    return Memory(**{"pk": pk, "source": "run", "trust": "session", "observation": "a"} | given)


def action(kind, relation, older=None, newer=None):
    return decide(kind, Kind(relation), memory(1, **(older or {})), memory(2, **(newer or {})))


@pytest.mark.parametrize(
    ("kind", "relation", "then"),
    [
        ("duplicate", "reinforces", Action.MERGED),
        ("duplicate", "distinct", Action.KEPT),
        ("duplicate", "contradicts", Action.CONTRADICTION),
        ("contradiction", "contradicts", Action.SUPERSEDES),
        ("contradiction", "distinct", Action.BOTH),
        ("contradiction", "reinforces", Action.PERSON),
    ],
)
def test_two_memories_of_sessions_are_decided(kind, relation, then):
    assert action(kind, relation).action == then


def test_the_newer_supersedes_only_where_trust_and_confirmation_allow_it(subtests):
    for older, newer, why in [
        ({}, {"trust": "imported"}, "memory 2 is less trusted than memory 1"),
        ({"trust": "external"}, {"trust": "external"}, "memory 2 comes from outside text and was not confirmed"),
        ({}, {"provisional": "a command"}, "memory 2 is unconfirmed"),
        ({}, {"verdict": "hold"}, "memory 2 is held"),
        ({"verdict": "hold"}, {}, "memory 1 is held"),
        ({}, {"active": False}, "memory 2 is inactive"),
        ({"source": "human", "trust": "operator"}, {}, "a person wrote memory 1"),
        ({"source": "human", "trust": "operator"}, {"source": "human", "trust": "operator"}, "a person wrote memory 1"),
        ({"trust": "operator"}, {}, "a person wrote memory 1"),
        ({"confirmed_at": NOW}, {}, "memory 1 was confirmed, memory 2 was not"),
        ({"persistent": True}, {}, "a person exempted memory 1 from fading"),
    ]:
        with subtests.test(str(older)):
            found = action("contradiction", "contradicts", older, newer)
            assert (found.action, found.why) == (Action.PERSON, why)


@pytest.mark.parametrize(
    ("older", "newer", "why"),
    [
        ({"trust": "external"}, {}, "memory 1 comes from outside text and was not confirmed"),
        ({"trust": "imported"}, {}, "memory 1 is less trusted than memory 2"),
        ({}, {"source": "human", "trust": "operator"}, "a person wrote memory 2"),
        ({"active": False}, {}, "memory 1 is inactive"),
        ({}, {"confirmed_at": NOW}, "memory 2 was confirmed, memory 1 was not"),
    ],
)
def test_the_older_takes_a_duplicate_in_only_where_it_may(older, newer, why):
    found = action("duplicate", "reinforces", older, newer)
    assert (found.action, found.why) == (Action.PERSON, why)


def test_a_persons_memory_takes_the_copy_of_a_session_in():
    assert action("duplicate", "reinforces", {"source": "human", "trust": "operator"}).action == Action.MERGED


def test_what_is_confirmed_counts_though_it_came_from_outside():
    confirmed = {"trust": "external", "confirmed_at": NOW}
    assert action("contradiction", "contradicts", {"trust": "external"}, confirmed).action == Action.SUPERSEDES


def test_a_contradiction_is_not_talked_away_by_what_is_trusted_less():
    assert action("contradiction", "distinct", {}, {"trust": "external"}).action == Action.PERSON


RANK = ("operator", "session", "imported", "external")
columns = st.fixed_dictionaries(
    {
        "source": st.sampled_from(["human", "run", "import"]),
        "trust": st.sampled_from(RANK),
        "verdict": st.sampled_from(["allow", "hold"]),
        "active": st.booleans(),
        "provisional": st.sampled_from(["", "a command"]),
        "confirmed_at": st.sampled_from([None, NOW]),
        "persistent": st.booleans(),
    }
)


@given(columns, columns, st.sampled_from(list(product(("duplicate", "contradiction"), Kind))))
def test_nothing_weaker_ever_takes_the_place_of_a_memory(older, newer, asked):
    kind, relation = asked
    found = action(kind, relation, older, newer)
    assert bool(found.why) == (found.action == Action.PERSON)
    if found.action not in (Action.MERGED, Action.SUPERSEDES):
        return
    winner, loser = (older, newer) if found.action == Action.MERGED else (newer, older)
    assert loser["source"] != "human" and loser["trust"] != "operator"
    assert winner["active"] and winner["verdict"] == loser["verdict"] == "allow"
    assert RANK.index(winner["trust"]) <= RANK.index(loser["trust"])
    assert winner["confirmed_at"] or not (winner["provisional"] or winner["trust"] == "external")
