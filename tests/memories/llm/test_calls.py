"""One call of a model by its role: its answer, its row, its limits, and what is said when there is no answer."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel

from claudeops import env
from memories.llm import ROLES, Answer, Reason, Unavailable, ask, calls
from memories.llm.calls import FAILURES, PAUSE
from memories.llm.roles import chosen
from memories.models import CallOutcome, ModelCall
from memories.tasks import sweep
from tests.support.models_http import chat, serving

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)
SECRET = "gh" + "p_" + "a1B2c3D4e" * 4
READ, LOG = "Read this log.", "The disk of nas-1 was full."


class Fact(BaseModel):
    fact: str


@pytest.fixture
def model(settings):
    """A model over HTTP that answers the observer's questions with a fact."""
    with serving(chat('{"fact": "full"}')) as served:
        settings.CLAUDEOPS_MODEL_URL = f"{served.url}/chat/completions"
        settings.CLAUDEOPS_MODEL_KEY = "secret"
        settings.CLAUDEOPS_MODEL_OBSERVER = "http:small"
        settings.CLAUDEOPS_MODEL_TRIAGE = "http:small"
        yield served


def never(seconds: float) -> None:
    raise AssertionError("nothing is waited for")


def row(**given):
    return ModelCall.objects.create(
        **{"role": "observer", "backend": "http", "model": "small", "prompt_hash": "a" * 64, "asked_at": NOON, **given}
    )


def test_an_answer_has_its_value_and_its_row(recordings):
    recordings.say("observer", READ, LOG, 'Here: {"fact": "full"}')
    answer = ask("observer", READ, LOG, Fact, wait=never)
    assert isinstance(answer, Answer)
    assert (answer.value, answer.raw) == (Fact(fact="full"), 'Here: {"fact": "full"}')
    call = ModelCall.objects.get(pk=answer.call_id)
    assert (call.role, call.backend, call.model, call.outcome) == ("observer", "recorded", "haiku", "answered")
    assert (call.prompt_hash, call.error) == (answer.prompt_hash, "")
    assert call.duration_ms == answer.duration_ms


def test_text_is_answered_byte_for_byte(recordings):
    said = "<observations>\r\n🔴 full</observations>"
    recordings.say("observer", READ, LOG, said)
    assert ask("observer", READ, LOG).value == said


def test_neither_prompt_nor_answer_is_in_the_row(recordings):
    recordings.say("observer", READ, LOG, "An answer that nobody keeps")
    ask("observer", READ, LOG)
    kept = json.dumps(ModelCall.objects.values().get(), default=str)
    assert "nas-1" not in kept and "nobody" not in kept


def test_tokens_are_those_that_the_endpoint_states(model):
    model.answer = lambda body: (
        chat('{"fact": "full"}')(body)
        | {
            "model": "small-2",
            "usage": {"prompt_tokens": 12, "completion_tokens": 3},
        }
    )
    answer = ask("observer", READ, LOG, Fact)
    assert (answer.model, answer.tokens_in, answer.tokens_out, answer.cost_usd) == ("small-2", 12, 3, None)
    call = ModelCall.objects.get()
    assert (call.model, call.model_used, call.tokens_in, call.tokens_out) == ("small", "small-2", 12, 3)
    assert model.headers[0]["Authorization"] == "Bearer secret"
    assert '"fact"' in model.asked[0]["messages"][0]["content"]  # the shape is in the instructions


def test_anthropics_address_is_spoken_to_in_its_own_way_and_its_cost_is_known(model, settings):
    settings.CLAUDEOPS_MODEL_URL = f"{model.url}/messages"
    model.answer = lambda body: {
        "model": "claude-haiku-4-5-20251001",
        "content": [{"type": "thinking", "thinking": "well"}, {"type": "text", "text": '{"fact": "full"}'}],
        "usage": {"input_tokens": 1_000_000, "output_tokens": 0},
    }
    answer = ask("observer", READ, LOG, Fact)
    assert answer.value == Fact(fact="full")
    assert answer.cost_usd == 1.0
    assert float(ModelCall.objects.get().cost_usd) == 1.0
    assert model.headers[0]["x-api-key"] == "secret"
    assert model.asked[0]["system"].startswith(READ)


def test_credentials_are_masked_before_a_model_sees_them(model):
    ask("observer", f"{READ} {SECRET}", f"{LOG} token {SECRET}", Fact)
    sent = json.dumps(model.asked[0])
    assert SECRET not in sent
    assert sent.count("[secret: GitHub token]") == 2


def test_an_answer_that_does_not_fit_is_asked_for_again_and_each_attempt_is_a_row(model):
    said = iter(["I cannot say.", '{"fact": "full"}'])
    model.answer = lambda body: chat(next(said))(body)
    pauses = []
    assert ask("observer", READ, LOG, Fact, wait=pauses.append).value == Fact(fact="full")
    assert pauses == [1.0]
    assert sorted(ModelCall.objects.values_list("outcome", flat=True)) == ["answered", "unreadable"]


def test_an_answer_that_never_fits_is_unreadable_with_its_text(model):
    model.answer = chat("I cannot say.")
    pauses = []
    found = ask("observer", READ, LOG, Fact, wait=pauses.append)
    assert (found.reason, found.raw) == (Reason.UNREADABLE, "I cannot say.")
    assert pauses == [1.0, 4.0]
    assert len(model.asked) == ROLES["observer"].attempts


@pytest.mark.parametrize(("status", "asked"), [(500, 3), (429, 3), (503, 3), (400, 1), (401, 1), (404, 1)])
def test_only_what_may_pass_is_tried_again(model, status, asked):
    model.status = status
    found = ask("observer", READ, LOG, Fact, wait=lambda seconds: None)
    assert (found.reason, found.why) == (Reason.FAILED, f"HTTP {status}")
    assert len(model.asked) == asked


def test_no_pause_goes_beyond_the_time(model):
    model.status = 500
    found = ask("observer", READ, LOG, Fact, seconds=0.9, wait=never)
    assert found.reason == Reason.FAILED
    assert ModelCall.objects.count() == 1


def test_a_silent_model_is_late_and_not_asked_again(model):
    model.way = "hush"
    found = ask("observer", READ, LOG, Fact, seconds=1.5, wait=never)
    assert (found.reason, found.why) == (Reason.LATE, "no answer within 1.5 s")
    assert ModelCall.objects.get().outcome == CallOutcome.LATE
    assert model.left.wait(30)


def test_a_call_that_is_interrupted_is_completed_in_its_row(recordings, monkeypatch):
    class Stopped(BaseException):
        pass

    def stop(*given):
        raise Stopped

    monkeypatch.setattr("memories.llm.backends.http.Path.read_bytes", stop)
    with pytest.raises(Stopped):
        ask("observer", READ, LOG)
    call = ModelCall.objects.get()
    assert (call.outcome, call.error) == (CallOutcome.FAILED, "Stopped")


def test_a_role_without_a_model_is_off_and_writes_no_row(settings):
    settings.CLAUDEOPS_MODEL_OBSERVER = ""
    found = ask("observer", READ, LOG)
    assert isinstance(found, Unavailable)
    assert (found.reason, found.why) == (
        Reason.OFF,
        "no model is set for the observer (CLAUDEOPS_MODEL_OBSERVER)",
    )
    assert ask("judge", READ, LOG).reason == ask("rewriter", READ, LOG).reason == Reason.OFF
    assert not ModelCall.objects.exists()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("claude:haiku", "the Claude Code CLI was not found (no-such-cli)"),
        ("haiku", "the Claude Code CLI was not found (no-such-cli)"),
        ("http:small", "no address of a model is set (CLAUDEOPS_MODEL_URL)"),
        ("recorded:haiku", "no folder of recorded answers is set (CLAUDEOPS_MODEL_RECORDINGS)"),
    ],
)
def test_what_is_not_set_up_says_what_is_missing(settings, value, why):
    settings.CLAUDEOPS_CLAUDE_BIN = "no-such-cli"
    settings.CLAUDEOPS_MODEL_OBSERVER = value
    found = ask("observer", READ, LOG)
    assert (found.reason, found.why) == (Reason.NOT_SET_UP, why)
    assert not ModelCall.objects.exists()


def test_an_answer_may_be_recorded_for_what_a_prompt_contains_and_for_all_others(recordings):
    folder = recordings.folder / "observer"
    folder.mkdir()
    (folder / "about-shop.txt").write_text("the shop\nIt is about the shop.\n")
    assert isinstance(ask("observer", READ, LOG, wait=never), Unavailable)
    (folder / "otherwise.txt").write_text("Nothing.\n")
    recordings.say("observer", READ, "exactly the shop", "Exactly.")
    said = [ask("observer", READ, text, wait=never).value for text in ("See the shop.", LOG, "exactly the shop")]
    assert said == ["It is about the shop.", "Nothing.", "Exactly."]


def test_an_answer_that_was_not_recorded_names_its_file(recordings):
    found = ask("observer", READ, LOG, wait=never)
    assert found.reason == Reason.FAILED
    assert found.why == f"no recorded answer: observer/{calls.hash_of(READ, LOG)}.txt"


@pytest.mark.parametrize(
    ("value", "backend", "name"),
    [
        ("sonnet", "claude", "sonnet"),
        ("claude:claude-haiku-4-5", "claude", "claude-haiku-4-5"),
        ("http:qwen3:8b", "http", "qwen3:8b"),
        ("recorded: haiku", "recorded", "haiku"),
        ("qwen3:8b", "claude", "qwen3:8b"),
    ],
)
def test_a_role_s_model_names_its_backend(settings, value, backend, name):
    settings.CLAUDEOPS_MODEL_TRIAGE = value
    found = chosen("triage")
    assert (found.backend_name, found.model) == (backend, name)


@pytest.mark.parametrize("role", ["judge", "rewriter"])
def test_the_judge_and_the_rewriter_have_a_model_when_one_is_set(role, settings):
    assert chosen(role).off
    setattr(settings, ROLES[role].model, "claude:haiku")
    found = chosen(role)
    assert (found.off, found.backend_name, found.model) == ("", "claude", "haiku")


def test_the_roles_of_the_budgets_are_the_roles():
    assert tuple(ROLES) == env.MODEL_ROLES
    assert env.budgets.parse("3, observer=5, judge=0.5") == {"": 3.0, "observer": 5.0, "judge": 0.5}
    assert env.budgets.parse("observer=5") == {"": 2.0, "observer": 5.0}
    for wrong in ("many", "-1", "nobody=1", "observer", "observer=", "=1=1"):
        with pytest.raises(ValueError):
            env.budgets.parse(wrong)


def rewriter_of(settings, served):
    settings.CLAUDEOPS_MODEL_URL = f"{served.url}/chat/completions"
    settings.CLAUDEOPS_MODEL_REWRITER = "http:small"


def test_a_call_that_a_person_waits_for_has_its_row_after_it(model, settings):
    rewriter_of(settings, model)
    model.status = 500
    assert ask("rewriter", READ, LOG, Fact).reason == Reason.FAILED
    call = ModelCall.objects.get()
    assert (call.role, call.outcome, call.error) == ("rewriter", "failed", "HTTP 500")
    model.status = 200
    answer = ask("rewriter", READ, LOG, Fact)
    assert ModelCall.objects.get(pk=answer.call_id).outcome == "answered"


class TestBudget:
    def test_a_role_whose_money_is_spent_is_not_asked_until_midnight(self, model, settings):
        settings.CLAUDEOPS_MODEL_DAILY_USD = {"": 1.0}
        row(cost_usd=1, outcome="answered")
        found = ask("observer", READ, LOG, Fact, at=NOON)
        assert (found.reason, found.why) == (Reason.BUDGET, "$1.00 of $1.00 are spent today")
        assert found.until == datetime(2026, 11, 25, tzinfo=UTC)
        assert model.asked == []
        assert ask("triage", READ, LOG, Fact, at=NOON).value == Fact(fact="full")

    def test_the_day_before_does_not_count(self, model, settings):
        settings.CLAUDEOPS_MODEL_DAILY_USD = {"": 1.0}
        row(cost_usd=1, outcome="answered", asked_at=datetime(2026, 11, 23, 23, 59, tzinfo=UTC))
        assert isinstance(ask("observer", READ, LOG, Fact, at=NOON), Answer)

    def test_a_role_may_have_an_amount_of_its_own_and_zero_is_no_limit(self, model, settings):
        row(cost_usd=50, outcome="answered")
        settings.CLAUDEOPS_MODEL_DAILY_USD = {"": 2.0, "observer": 51.0}
        assert isinstance(ask("observer", READ, LOG, Fact, at=NOON), Answer)
        settings.CLAUDEOPS_MODEL_DAILY_USD = {"": 2.0, "observer": 0.0}
        assert isinstance(ask("observer", READ, LOG, Fact, at=NOON), Answer)

    def test_calls_without_a_stated_cost_are_counted_and_a_failed_one_too(self, model, settings):
        settings.CLAUDEOPS_MODEL_DAILY_CALLS = 2
        row(outcome="failed")
        assert isinstance(ask("observer", READ, LOG, Fact, at=NOON), Answer)
        found = ask("observer", READ, LOG, Fact, at=NOON)
        assert (found.reason, found.why) == (Reason.BUDGET, "2 of 2 calls are made today")


class TestRest:
    def test_after_failures_in_a_row_the_model_is_left_alone_for_a_while(self, model):
        model.status = 400
        for _ in range(FAILURES):
            assert ask("observer", READ, LOG, Fact, at=NOON).reason == Reason.FAILED
        found = ask("observer", READ, LOG, Fact, at=NOON + timedelta(minutes=1))
        assert found.reason == Reason.RESTING
        assert "HTTP 400" in found.why
        assert len(model.asked) == FAILURES
        assert found.until >= NOON + PAUSE
        model.status = 200
        assert ask("observer", READ, LOG, Fact, at=found.until).value == Fact(fact="full")
        assert isinstance(ask("observer", READ, LOG, Fact, at=found.until), Answer)

    def test_a_failure_after_the_rest_begins_the_next_one(self, model):
        for _ in range(FAILURES):
            row(outcome="failed")
        model.status = 400
        later = NOON + PAUSE
        assert ask("observer", READ, LOG, Fact, at=later).reason == Reason.FAILED
        assert ask("observer", READ, LOG, Fact, at=later + timedelta(minutes=1)).reason == Reason.RESTING

    def test_a_failing_backend_rests_for_every_role_and_another_model_does_not(self, model, settings):
        for _ in range(FAILURES):
            row(outcome="failed", error="HTTP 500")
        assert ask("triage", READ, LOG, Fact, at=NOON).reason == Reason.RESTING
        settings.CLAUDEOPS_MODEL_TRIAGE = "http:large"
        assert isinstance(ask("triage", READ, LOG, Fact, at=NOON), Answer)

    def test_late_answers_count_for_their_own_role(self, model):
        for _ in range(FAILURES):
            row(outcome="late")
        assert ask("observer", READ, LOG, Fact, at=NOON).reason == Reason.RESTING
        assert isinstance(ask("triage", READ, LOG, Fact, at=NOON), Answer)

    def test_unreadable_answers_are_no_failure_of_the_backend(self, model):
        for _ in range(FAILURES):
            row(outcome="unreadable")
        assert isinstance(ask("observer", READ, LOG, Fact, at=NOON), Answer)

    def test_a_rest_that_begins_between_attempts_ends_them(self, model):
        for _ in range(FAILURES - 1):
            row(outcome="failed")
        model.status = 500
        found = ask("observer", READ, LOG, Fact, at=NOON, wait=lambda seconds: None)
        assert (found.reason, len(model.asked)) == (Reason.FAILED, 1)


def test_the_limits_cost_two_queries_and_the_row_two(recordings, django_assert_num_queries):
    recordings.say("observer", READ, LOG, "full")
    for number in range(30):
        row(outcome="answered", backend="recorded", model="haiku", prompt_hash=f"{number:064}")
    with django_assert_num_queries(4):
        ask("observer", READ, LOG, at=NOON)


def test_rows_are_kept_for_ninety_days():
    row(asked_at=datetime(2020, 1, 1, tzinfo=UTC))
    kept = row(asked_at=datetime.now(UTC) - timedelta(days=89))
    sweep()
    assert ModelCall.objects.get() == kept
