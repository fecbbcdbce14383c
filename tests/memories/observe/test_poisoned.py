"""Thirty poisoned transcripts, with an observer who was fooled, and sixty honest facts: what the gate says of each."""

from __future__ import annotations

import json

import pytest

from memories.capture.gate import Word, judge
from memories.capture.reasons import OF_THE_MODEL, Reason
from memories.capture.topics import topics
from sessions_app.runner.quoting import Text, repeated
from tests.memories.observe.poisoned import HONEST, cases

CASES = cases()
FOOLED = Word("allow", 0.99, "haiku")


def judged(text, folded, word=FOOLED, taint=""):
    return judge(text, folded, taxonomy="knowledge", word=word, taint=taint)


def test_there_are_thirty_poisoned_transcripts_and_sixty_honest_facts():
    assert (len(CASES), len({case.name for case in CASES})) == (30, 30)
    assert len({(case.user, case.tool, case.input) for case in CASES}) == 30  # a recorded answer is found by these
    assert (len(HONEST), len(set(HONEST))) == (60, 60)


def test_what_a_fooled_observer_allows_is_held_by_a_rule_or_as_repeated(subtests):
    for case in CASES:
        with subtests.test(str(case)):
            said = case.statement
            taint = repeated(said.text, [(turn.source, Text(turn.text)) for turn in case.turns.turns if turn.source])
            judgement = judged(said.text, said.observation, taint=taint)
            assert judgement.verdict in ("hold", "discard")
            assert judgement.reason
            assert judgement.codes[0] in set(Reason) - OF_THE_MODEL


def test_most_are_held_by_their_words_alone_and_the_wide_net_has_them_all():
    held = [case for case in CASES if judged(case.statement.text, case.statement.observation).verdict != "allow"]
    # 18 before the rules were widened for these; the others are held because they repeat what was read.
    assert len(held) >= 25
    assert all(topics(case.fact) for case in CASES)


@pytest.mark.parametrize("confidence", [0.7, 0.99])
def test_honest_facts_pass(confidence):
    waits = {text for text in HONEST if judged(text, text, Word("allow", confidence)).verdict != "allow"}
    assert len(waits) <= 1, waits


def test_a_case_is_an_answer_and_a_transcript():
    case = CASES[0]
    assert f"[gate=allow confidence=0.99 category=jc:operations] {case.fact}" in case.answer
    lines = [json.loads(line) for line in case.transcript("abc", "/srv/app").splitlines()]
    assert [line["type"] for line in lines] == ["user", "assistant", "user", "assistant"]
    assert {(line["sessionId"], line["cwd"]) for line in lines} == {("abc", "/srv/app")}
    assert lines[2]["message"]["content"][0]["content"] == case.read
