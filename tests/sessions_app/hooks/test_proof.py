"""The receipts of prompts: one for each, with its hash alone, of developers' sessions alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.apps import apps

from sessions_app.models import PromptReceipt, Status
from sessions_app.runner.agent_hooks import hook_token
from sessions_app.runner.ingest import proof_of
from sessions_app.runner.start_command import BY_AGENT
from sessions_app.runner.turns import Proof, prompt_hash
from tests.support.factories import SessionFactory

pytestmark = pytest.mark.django_db

PATH = "/srv/transcripts/s-1.jsonl"
PROMPT = "Never restart the swordfish between 9 and 11"


def test_a_prompt_that_is_sent_twice_has_one_receipt(call):
    for _ in range(2):
        sent = call("UserPromptSubmit", prompt=PROMPT, prompt_id="p-1", transcript_path="/srv/transcripts/s-1.jsonl")
        assert (sent.status_code, sent.json()) == (200, {})
    call("UserPromptSubmit", prompt=f" {PROMPT}\n", transcript_path="/srv/transcripts/s-1.jsonl")
    kept = PromptReceipt.objects.exclude(prompt="").get()
    assert (kept.cli_session_id, kept.prompt, kept.by_agent) == ("s-1", prompt_hash(PROMPT), False)
    assert kept.transcript_path == "/srv/transcripts/s-1.jsonl"
    call("UserPromptSubmit", prompt=PROMPT, session_id="s-2")
    call("UserPromptSubmit", prompt="Another one")
    assert PromptReceipt.objects.exclude(prompt="").count() == 3
    assert PromptReceipt.objects.filter(prompt="").count() == 2, "a session is known by its first prompt as well"


def test_the_start_of_a_session_has_a_receipt_and_other_hooks_have_none(call):
    for source in ("startup", "resume"):
        call("SessionStart", source=source, transcript_path=PATH)
    for event in ("PreToolUse", "SubagentStart", "SubagentStop", "PreCompact", "SessionEnd", "Stop"):
        call(event)
    assert list(PromptReceipt.objects.values_list("cli_session_id", "prompt")) == [("s-1", "")]
    assert proof_of("s-1", Path(PATH)) == Proof(is_kept=True)


def test_the_prompt_itself_is_in_no_row(call):
    call("UserPromptSubmit", prompt=PROMPT)
    assert PromptReceipt.objects.exists()
    rows = (row for model in apps.get_models() for row in model._base_manager.values())
    assert "swordfish" not in "\n".join(map(str, rows))


def test_the_hash_is_of_this_installation(settings):
    here = prompt_hash(PROMPT)
    settings.SECRET_KEY = "another"
    assert prompt_hash(PROMPT) != here


def test_in_a_session_that_an_agent_started_or_resumed_no_person_types(call, subtests):
    for number, (starts, typed) in enumerate([([False], True), ([True], False), ([False, True], False)]):
        with subtests.test(str(starts)):
            path, session = f"/srv/transcripts/{number}.jsonl", f"s-{number}"
            for by_agent in starts:
                headers = {BY_AGENT: "1"} if by_agent else {}
                call("SessionStart", session_id=session, transcript_path=path, headers=headers)
                call("UserPromptSubmit", session_id=session, transcript_path=path, prompt=PROMPT)
            prompts = frozenset([prompt_hash(PROMPT)]) if typed else frozenset()
            assert proof_of(session, Path(path)) == Proof(prompts, is_kept=True)


def test_a_session_of_ours_keeps_none(call):
    token = hook_token(SessionFactory(status=Status.RUNNING))
    for event in ("SessionStart", "UserPromptSubmit"):
        assert call(event, token=token, prompt=PROMPT).status_code == 200
    assert not PromptReceipt.objects.exists()


def test_a_caller_without_a_token_leaves_none(call):
    assert call("UserPromptSubmit", token="wrong", prompt=PROMPT).status_code == 401
    assert not PromptReceipt.objects.exists()
