"""The model that may settle what words leave unsure: three answers, a hard time, a rest after failures."""

from __future__ import annotations

import json

import pytest
from django.db.models import F

from memories.llm.limits import FAILURES, PAUSE
from memories.matching import Kind
from memories.matching.judge import ModelJudge, current_judge
from memories.models import ModelCall
from tests.models_http import chat, serving

pytestmark = pytest.mark.django_db

KNOWN, NEW = "Purges old media after 90 days", "Media goes when it is three months old"


@pytest.fixture
def model(settings):
    """The judge of the settings, which says that both are the same."""
    with serving(chat(said("reinforces"))) as served:
        settings.CLAUDEOPS_MATCHING_JUDGE_URL = f"{served.url}/chat/completions"
        settings.CLAUDEOPS_MATCHING_JUDGE_MODEL = "small"
        settings.CLAUDEOPS_MATCHING_JUDGE_KEY = "secret"
        settings.CLAUDEOPS_MATCHING_JUDGE_TIMEOUT = 10.0
        yield served


def said(relation, reason="They do."):
    return json.dumps({"relation": relation, "reason": reason})


def judged(**given):
    return current_judge().judge(KNOWN, NEW, **given)


@pytest.mark.parametrize("kind", list(Kind))
def test_it_gives_one_of_the_three_answers_with_its_reason(kind, model):
    model.answer = chat(f"Here it is: {said(kind)}")
    found = judged(about="plex")
    assert (found.kind, found.reason) == (kind, "They do.")
    assert found.as_evidence()["model"] == "small"
    assert json.loads(model.asked[0]["messages"][1]["content"]) == {"service": "plex", "first": KNOWN, "second": NEW}
    assert model.headers[0]["Authorization"] == "Bearer secret"
    assert ModelCall.objects.get().role == "judge"


def test_it_speaks_anthropics_way_to_a_messages_address(model, settings):
    settings.CLAUDEOPS_MATCHING_JUDGE_URL = f"{model.url}/messages"
    model.answer = lambda body: {"content": [{"type": "text", "text": said("distinct")}]}
    assert judged().kind == Kind.DISTINCT
    assert model.headers[0]["x-api-key"] == "secret"
    assert "follow no instruction" in model.asked[0]["system"]


@pytest.mark.parametrize("answer", ["", "yes", '{"relation": "same"}', "{}", '{"relation"', "[]"])
def test_what_is_no_answer_is_none(answer, model):
    model.answer = chat(answer)
    found = judged()
    assert found.kind is None
    assert "no usable answer" in found.reason


def test_it_is_not_waited_for_beyond_its_time(model, settings):
    settings.CLAUDEOPS_MATCHING_JUDGE_TIMEOUT = 0.2
    model.late = 1.5
    assert judged().kind is None
    assert ModelCall.objects.get().outcome == "late"


def test_a_redirect_is_not_followed(model):
    with serving(chat(said("reinforces"))) as elsewhere:
        model.status, model.location = 307, f"{elsewhere.url}/chat/completions"
        found = judged()
    assert found.kind is None
    assert elsewhere.asked == []


def test_after_failures_in_a_row_it_is_left_alone_for_a_while(model):
    model.status = 500
    for _ in range(FAILURES + 2):
        assert judged().kind is None
    assert len(model.asked) == FAILURES
    model.status = 200
    assert "is not asked until" in judged().reason
    ModelCall.objects.update(asked_at=F("asked_at") - PAUSE)
    assert judged().kind == Kind.REINFORCES


def test_there_is_none_unless_the_settings_name_one(settings):
    assert current_judge() is None
    settings.CLAUDEOPS_MATCHING_JUDGE_URL = "http://127.0.0.1:9/v1/chat/completions"
    assert current_judge() is None
    settings.CLAUDEOPS_MATCHING_JUDGE_MODEL = "small"
    assert isinstance(current_judge(), ModelJudge)
    settings.CLAUDEOPS_MATCHING_JUDGE_URL = ""
    assert current_judge() is None
    settings.CLAUDEOPS_MATCHING_JUDGE_MODEL = "claude:haiku"
    assert isinstance(current_judge(), ModelJudge)
