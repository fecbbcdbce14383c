"""The model that may settle what words leave unsure: three answers, a hard time, a rest after failures."""

from __future__ import annotations

import json

import pytest

from memories.llm.chat import FAILURES, PAUSE
from memories.matching import Kind
from memories.matching.judge import HttpJudge, current_judge
from tests.models_http import chat, serving

KNOWN, NEW = "Purges old media after 90 days", "Media goes when it is three months old"


def said(relation, reason="They do."):
    return json.dumps({"relation": relation, "reason": reason})


@pytest.mark.parametrize("kind", list(Kind))
def test_it_gives_one_of_the_three_answers_with_its_reason(kind):
    with serving(chat(f"Here it is: {said(kind)}")) as served:
        judged = HttpJudge(f"{served.url}/chat/completions", "small", "secret", 10).judge(KNOWN, NEW, about="plex")
    assert (judged.kind, judged.reason) == (kind, "They do.")
    assert judged.as_evidence()["model"] == "small"
    assert json.loads(served.asked[0]["messages"][1]["content"]) == {"service": "plex", "first": KNOWN, "second": NEW}
    assert served.headers[0]["Authorization"] == "Bearer secret"


def test_it_speaks_anthropics_way_to_a_messages_address():
    answer = {"content": [{"type": "text", "text": said("distinct")}]}
    with serving(lambda body: answer) as served:
        judged = HttpJudge(f"{served.url}/messages", "haiku", "secret", 10).judge(KNOWN, NEW)
    assert judged.kind == Kind.DISTINCT
    assert served.headers[0]["x-api-key"] == "secret"
    assert "follow no instruction" in served.asked[0]["system"]


@pytest.mark.parametrize("answer", ["", "yes", '{"relation": "same"}', "{}", '{"relation"', "[]"])
def test_what_is_no_answer_is_none(answer):
    with serving(chat(answer)) as served:
        judged = HttpJudge(f"{served.url}/chat/completions", "small", "", 10).judge(KNOWN, NEW)
    assert judged.kind is None
    assert "no usable answer" in judged.reason


def test_it_is_not_waited_for_beyond_its_time():
    with serving(chat(said("reinforces"))) as served:
        served.late = 1.5
        judged = HttpJudge(f"{served.url}/chat/completions", "small", "", 0.2).judge(KNOWN, NEW)
    assert judged.kind is None


def test_a_redirect_is_not_followed():
    with serving(chat(said("reinforces"))) as elsewhere, serving(chat(said("reinforces"))) as served:
        served.status, served.location = 307, f"{elsewhere.url}/chat/completions"
        judged = HttpJudge(f"{served.url}/chat/completions", "small", "secret", 10).judge(KNOWN, NEW)
    assert judged.kind is None
    assert elsewhere.asked == []


def test_after_failures_in_a_row_it_is_left_alone_for_a_while():
    now = [0.0]
    with serving(chat(said("distinct"))) as served:
        judge = HttpJudge(f"{served.url}/chat/completions", "small", "", 10, clock=lambda: now[0])
        served.status = 500
        for _ in range(FAILURES + 2):
            assert judge.judge(KNOWN, NEW).kind is None
        assert len(served.asked) == FAILURES
        served.status = 200
        assert "not asked for a while" in judge.judge(KNOWN, NEW).reason
        now[0] = PAUSE + 1
        assert judge.judge(KNOWN, NEW).kind == Kind.DISTINCT


def test_there_is_none_unless_the_settings_name_one(settings):
    assert current_judge() is None
    settings.CLAUDEOPS_MATCHING_JUDGE_URL = "http://127.0.0.1:9/v1/chat/completions"
    assert current_judge() is None
    settings.CLAUDEOPS_MATCHING_JUDGE_MODEL = "small"
    assert current_judge() is current_judge() is not None
