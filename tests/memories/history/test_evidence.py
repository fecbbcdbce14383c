"""Evidence in words: `memories/history/sentences.py`. No database."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from memories.history.sentences import EvidenceLine, evidence_lines
from memories.matching import relation


def told(evidence) -> dict[str, str]:
    return {ground.about: ground.text for ground in evidence_lines(evidence)}


def matched(known: str, new: str, **more):
    found = relation(known, new)
    return {"text": new, "channel": "text", "score": found.score, "match": found.evidence} | more


def test_a_confirmation_says_how_it_came_how_alike_it_is_and_why():
    said = told(matched("Takes 60 s to start", "It takes 60s to start"))
    assert said["arrived by"] == "a marker in its text"
    assert said["similarity"].endswith("% of the content of both texts is shared")
    assert said["decided by"]
    assert "start" in said["in both"]
    assert said["compared by"] == "words and values"


def test_a_contradiction_says_which_amounts_differ_and_by_what_it_was_said():
    evidence = matched("Takes 60 s to start", "Takes 90 s to start", by=7)
    assert EvidenceLine("contradicted by", "", (7,)) in evidence_lines(evidence)
    assert told(evidence)["amounts"] == "60 s before, 90 s now: different"


def test_a_denial_says_of_what_each_text_says_what():
    said = told(matched("Backups are encrypted", "Backups are not encrypted"))
    assert any(about.startswith("says of ") for about in said)


def test_each_reason_in_its_words(subtests):
    for evidence, expected in [
        ({"contradicts": [3, 4]}, EvidenceLine("contradicts", "", (3, 4))),
        ({"into": 3}, EvidenceLine("merged into", "", (3,))),
        ({"merged": [{"id": 3, "observation": "x"}], "count": 1}, EvidenceLine("merged memories", "", (3,))),
        ({"channel": "human"}, EvidenceLine("arrived by", "typed by a person")),
        ({"channel": "observer"}, EvidenceLine("arrived by", "the observer, from the whole session")),
        ({"origin": "session:1a2b"}, EvidenceLine("read from the transcript", "session:1a2b")),
        ({"channel": "pigeon"}, EvidenceLine("arrived by", "pigeon")),
        ({"before_change": 9}, EvidenceLine("restored to before", "change 9")),
        ({"undone": 9}, EvidenceLine("undoes", "the action that began with change 9")),
        ({"to_change": 9}, EvidenceLine("restored to after", "change 9")),
        ({"moon_phase": {"is_full": True, "days": [1, 2]}}, EvidenceLine("moon phase", "is full yes; days 1, 2")),
        ({"match": {"why": "So.", "embedding": 0.5}}, EvidenceLine("embedding", "0.5")),
        (
            {"match": {"quantities": [{"known": "60 s", "new": "1 min", "verdict": "same"}]}},
            EvidenceLine("amounts", "60 s before, 1 min now: the same"),
        ),
        ({"score": "high"}, EvidenceLine("score", "high")),
        ({"score": 1.7e308}, EvidenceLine("score", "1.7e+308")),
    ]:
        with subtests.test(str(evidence)):
            assert expected in evidence_lines(evidence)


def test_many_memories_are_counted_not_listed():
    (ground,) = evidence_lines({"merged": [{"id": number} for number in range(1, 100)]})
    assert (len(ground.memories), ground.text) == (12, "and 87 more")


def test_the_text_that_arrived_is_not_said_twice():
    assert evidence_lines({"text": "Said again"}) == ()


jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=12,
)
names = st.sampled_from(["match", "channel", "score", "by", "merged", "into", "count", "contradicts", "text", "other"])
inside = st.sampled_from(["quantities", "stance", "names", "order", "shared", "why", "matcher", "negation", "odd"])


@given(st.dictionaries(names, jsons | st.dictionaries(inside, jsons, max_size=4), max_size=6))
def test_whatever_the_evidence_is_it_reads_as_words(evidence):
    for ground in evidence_lines(json.loads(json.dumps(evidence))):
        assert isinstance(ground.about, str)
        assert isinstance(ground.text, str)
        assert all(isinstance(one, int) for one in ground.memories)
