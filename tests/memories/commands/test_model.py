"""`manage.py model`, and what doctor and /readyz say of models."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from claudeops.features import doctor
from memories.llm import status
from memories.llm.roles import ROLES
from memories.models import ModelCall
from tests.support.factories import PartFactory, StageFactory
from tests.support.models_http import chat, serving

pytestmark = pytest.mark.django_db


def run(*arguments):
    out = StringIO()
    call_command("model", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def asked(role="observer", **given):
    given = {"backend": "claude", "model": "haiku", "prompt_hash": "a" * 64, "outcome": "answered", **given}
    return ModelCall.objects.create(role=role, asked_at=timezone.now(), **given)


@pytest.fixture
def no_cli(settings):
    settings.CLAUDEOPS_CLAUDE_BIN = "no-such-cli"


def test_status_says_how_each_role_stands(no_cli, settings):
    settings.CLAUDEOPS_MODEL_TRIAGE = ""
    asked(cost_usd=0.5)
    found = {row["role"]: row for row in run("status")["result"]}
    assert list(found) == list(ROLES)
    assert (found["observer"]["state"], found["triage"]["state"], found["judge"]["state"]) == (
        "not set up",
        "off",
        "off",
    )
    assert (found["observer"]["calls_today"], found["observer"]["spent_today_usd"]) == (1, 0.5)
    out = StringIO()
    call_command("model", "status", stdout=out)
    assert "claude:haiku" in out.getvalue() and "$0.50 of $2.00" in out.getvalue()


def test_status_says_that_a_budget_is_spent_and_that_a_model_rests(settings):
    settings.CLAUDEOPS_MODEL_URL = "http://127.0.0.1:9/v1/chat/completions"
    settings.CLAUDEOPS_MODEL_OBSERVER, settings.CLAUDEOPS_MODEL_TRIAGE = "http:small", "http:large"
    asked(backend="http", model="small", cost_usd=2)
    for _ in range(3):
        asked("triage", backend="http", model="large", outcome="failed", error="HTTP 500")
    found = {row["role"]: row for row in run("status")["result"]}
    assert found["observer"]["state"] == "over budget"
    assert found["triage"]["state"] == "resting"
    assert "HTTP 500" in found["triage"]["why"]
    assert found["triage"]["without_answer_today"] == 3


def test_status_says_what_waits_and_since_when(no_cli):
    part = PartFactory(created_at=datetime(2026, 11, 24, 9, 30, tzinfo=UTC))
    StageFactory(part=part, name="call")
    found = {row["role"]: row for row in run("status")["result"]}
    assert (found["observer"]["waiting"], found["observer"]["waiting_for"]) == (1, "transcript part")
    assert found["observer"]["waiting_since"].startswith("2026-11-24T09:30")
    assert found["observer"]["left_usd"] == 2.0
    out = StringIO()
    call_command("model", "status", stdout=out)
    assert "1 transcript part since 2026-11-24 09:30" in out.getvalue()


def test_doctor_says_what_waits_for_a_model_that_does_not_work(no_cli, client):
    part = PartFactory(created_at=datetime(2026, 11, 24, 9, 30, tzinfo=UTC))
    StageFactory(part=part, name="call")
    found = findings()["model observer"]
    assert found.level == doctor.WARNING
    assert found.text.endswith("(1 transcript part since 2026-11-24 09:30 UTC)")
    assert "model of the observer" in client.get("/readyz").json()["note"]


def test_the_queries_of_status_do_not_grow_with_the_calls(no_cli, django_assert_num_queries):
    for _ in range(20):
        asked()
    with django_assert_num_queries(3):
        status.states()


def test_test_asks_the_model_and_says_what_it_took(settings):
    with serving(chat('{"ready": true}')) as served:
        settings.CLAUDEOPS_MODEL_URL = f"{served.url}/chat/completions"
        settings.CLAUDEOPS_MODEL_OBSERVER = "http:small"
        found = run("test", "observer")
        out = StringIO()
        call_command("model", "test", "observer", stdout=out)
    assert found["ok"] and found["result"]["answer"] == {"ready": True}
    assert out.getvalue().startswith("small answered in ")
    assert ModelCall.objects.filter(outcome="answered").count() == 2


@pytest.mark.parametrize(("role", "code"), [("observer", "model_unavailable"), ("nobody", "unknown_role")])
def test_test_refuses_with_the_reason(role, code, no_cli, capsys):
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("model", "test", role, "--json", stdout=out)
    assert ended.value.code == 1
    assert json.loads(out.getvalue())["error"]["code"] == code


def findings():
    return {one.subject: one for one in doctor._models(timezone.now())}


def test_doctor_and_readyz_say_nothing_of_a_model_that_nothing_needs(no_cli, client):
    assert findings() == {}
    assert client.get("/readyz").json() == {"ok": True}


def test_doctor_and_readyz_say_which_model_that_is_needed_does_not_work(no_cli, client):
    asked()
    assert list(findings()) == ["model observer"]
    assert findings()["model observer"].level == doctor.WARNING
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["note"].startswith("model of the observer: the Claude Code CLI was not found")


def test_a_judge_that_a_person_switched_on_is_needed_before_its_first_call(no_cli, settings):
    settings.CLAUDEOPS_MODEL_JUDGE = "claude:haiku"
    assert list(findings()) == ["model judge"]


def test_doctor_names_the_models_that_are_asked_and_well(settings, tmp_path):
    settings.CLAUDEOPS_MODEL_OBSERVER = "recorded:haiku"
    settings.CLAUDEOPS_MODEL_RECORDINGS = str(tmp_path)
    asked(backend="recorded")
    assert findings()["models"].level == doctor.OK
