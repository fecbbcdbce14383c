"""Answers as models really write them: fenced, with prose around, without the object, or with another one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from memories.llm.reader import Unreadable, read, schema_of


class Verdict(BaseModel):
    verdict: str
    confidence: float


GOOD = '{"verdict": "allow", "confidence": 0.9}'
WANTED = Verdict(verdict="allow", confidence=0.9)


def test_an_object_is_found_wherever_it_stands(subtests):
    for text in [
        GOOD,
        f"\n  {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```",
        f"Here is my answer:\n\n```json\n{GOOD}\n```\nI hope that it helps {{you}}.",
        f"Sure. {GOOD} That is all.",
        f"The set {{a, b}} is not meant: {GOOD}",
        f'{{"thought": "first another object"}} {GOOD}',
        f'```json\n{{"thought": 1}}\n```\n```json\n{GOOD}\n```',
        '{"verdict": "allow", "confidence": "0.9", "more": true}',
    ]:
        with subtests.test(str(text)):
            assert read(Verdict, text) == WANTED


def test_what_does_not_fit_is_unreadable_and_says_why(subtests):
    for text, why in [
        ("", "empty"),
        ("  \n", "empty"),
        ("I cannot say.", "no JSON object"),
        ('{"verdict": "allow"', "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"verdict": "allow"}', "confidence: Field required"),
        ('{"verdict": 1, "confidence": "high"}', "verdict: Input should be a valid string"),
        ("{" * 10_000, "no JSON object"),
        ('{"a":' * 50_000, "no JSON object"),
    ]:
        with subtests.test(str(text)), pytest.raises(Unreadable, match=why):
            read(Verdict, text)


def test_the_reason_quotes_nothing_of_the_answer():
    with pytest.raises(Unreadable) as refused:
        read(Verdict, '{"verdict": "allow", "confidence": "hunter2hunter2"}')
    assert "hunter2" not in str(refused.value)


def test_what_the_backend_has_parsed_is_used_and_checked():
    assert read(Verdict, "", json.loads(GOOD)) == WANTED
    with pytest.raises(Unreadable):
        read(Verdict, GOOD, {"verdict": "allow"})


def test_text_is_text_and_must_not_be_empty():
    assert read(str, " <observations/>\n") == "<observations/>"
    assert schema_of(str) is None
    with pytest.raises(Unreadable):
        read(str, " ")


@given(st.text() | st.lists(st.sampled_from(["{", "}", '"', "```", "\n", GOOD, "[", ":", "verdict"])).map("".join))
def test_no_text_raises_anything_else(text):
    try:
        assert isinstance(read(Verdict, text), Verdict)
    except Unreadable as error:
        assert str(error)
