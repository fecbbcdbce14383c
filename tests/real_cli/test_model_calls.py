"""One-shot calls of a model by the real CLI, against a local Messages API."""

from __future__ import annotations

import time

import pytest
from pydantic import BaseModel

from memories.llm import Answer, Reason, ask
from memories.models import CallOutcome, ModelCall
from tests.support.messages_api import Failure, answers, says, structured

pytestmark = [pytest.mark.real_cli, pytest.mark.django_db]

KEY = "The disk of nas-1 was full"
SECRET = "gh" + "p_" + "a1B2c3D4e" * 4


class Fact(BaseModel):
    fact: str
    confidence: float


@pytest.fixture(autouse=True)
def cli(settings, claude_bin, cli_home, messages_api):
    settings.CLAUDEOPS_CLAUDE_BIN = claude_bin
    settings.CLAUDEOPS_CLAUDE_HOME = str(cli_home)
    settings.CLAUDEOPS_MODEL_OBSERVER = "claude:haiku"
    return messages_api


def observe(text=KEY, shape=Fact, **given):
    return ask("observer", "Distil this log.", text, shape, **{"wait": lambda seconds: None, **given})


def test_a_structured_answer_comes_back_with_its_figures(cli, cli_home):
    cli.script(KEY, answers(structured(fact="full", confidence=0.9)))
    answer = observe()
    assert isinstance(answer, Answer), answer
    assert answer.value == Fact(fact="full", confidence=0.9)
    assert (answer.backend, answer.tokens_in, answer.tokens_out) == ("claude", 1000, 50)
    assert "haiku" in answer.model and answer.cost_usd > 0
    call = ModelCall.objects.get()
    assert (call.outcome, call.model, call.model_used) == (CallOutcome.ANSWERED, "haiku", answer.model)
    assert float(call.cost_usd) == pytest.approx(answer.cost_usd)
    assert not list(cli_home.rglob("*.jsonl"))  # a transcript would be observed as a session


def test_text_comes_back_and_the_model_has_no_tool(cli):
    cli.script(KEY, says("<observations/>"))
    assert observe(shape=str).value == "<observations/>"
    request = cli.to(KEY)[0]
    assert "Distil this log." in request.system
    assert request.body.get("tools", []) == []


def test_an_answer_without_the_object_is_asked_for_again(cli):
    cli.script(KEY, says("I cannot say."), answers(structured(fact="full", confidence=1)))
    assert observe().value == Fact(fact="full", confidence=1)
    assert sorted(ModelCall.objects.values_list("outcome", flat=True)) == ["answered", "unreadable"]
    assert all(cost > 0 for cost in ModelCall.objects.values_list("cost_usd", flat=True))


def test_credentials_and_files_do_not_reach_the_model(cli, tmp_path):
    (tmp_path / "note").write_text("written in a file")
    cli.script(KEY, says("fine"))
    observe(f"{KEY} {SECRET} @{tmp_path / 'note'}", str)
    sent = str(cli.to(KEY)[0].body)
    assert SECRET not in sent and "written in a file" not in sent
    assert "[secret: GitHub token]" in sent


def test_a_refused_login_is_said_and_not_tried_again(cli):
    cli.script(KEY, then=Failure(401, "authentication_error", "no such key"))
    found = observe()
    assert found.reason == Reason.FAILED and "no such key" in found.why
    assert ModelCall.objects.count() == 1


def test_a_silent_model_is_given_up_at_the_timeout(cli):
    cli.script(KEY, says("late", delay=600))
    started = time.monotonic()
    found = observe(seconds=4)
    assert found.reason == Reason.LATE
    assert time.monotonic() - started < 60
