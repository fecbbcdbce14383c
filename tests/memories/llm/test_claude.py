"""The command line of the Claude Code CLI in one-shot form, what it prints, and its end at the timeout."""

from __future__ import annotations

import itertools
import json
import os
import time
from pathlib import Path

import psutil
import pytest

from claudeops.lib.claude_cli import ARGUMENT_LIMIT
from memories.llm.backends import ClaudeBackend, Failure, Request
from memories.llm.backends.claude import argv, read


def request(**given):
    return Request(
        **{
            "role": "observer",
            "model": "haiku",
            "instructions": "Read this.",
            "text": "A log.",
            "prompt_hash": "a" * 64,
            "seconds": 30.0,
            "most_tokens": 100,
            **given,
        }
    )


def result(**given):
    line = {"type": "result", "subtype": "success", "is_error": False, "result": "full", "total_cost_usd": 0.5}
    line["modelUsage"] = {"claude-haiku-5-5": {"inputTokens": 10, "cacheReadInputTokens": 5, "outputTokens": 2}}
    return json.dumps({**line, **given}).encode()


def cli(folder: Path, script: str) -> ClaudeBackend:
    """A program of the test's own in the place of the CLI."""
    path = folder / "claude"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return ClaudeBackend(str(path), str(folder), ())


def test_the_model_has_no_tools_no_settings_and_leaves_no_transcript():
    command = argv("claude", request(most_usd=0.25, schema={"type": "object"}))
    pairs = dict(itertools.pairwise(command))
    assert (pairs["--tools"], pairs["--setting-sources"], pairs["--max-turns"]) == ("", "", "1")
    assert {"-p", "--strict-mcp-config", "--no-session-persistence"} <= set(command)
    assert (pairs["--model"], pairs["--system-prompt"]) == ("haiku", "Read this.")
    assert (pairs["--max-budget-usd"], pairs["--json-schema"]) == ("0.250000", '{"type": "object"}')
    assert "A log." not in command
    assert "--max-budget-usd" not in argv("claude", request())
    assert argv("claude", request(most_usd=0.0001))[-1] == "0.010000"


def test_instructions_that_are_too_long_for_an_argument_are_refused():
    with pytest.raises(Failure, match="longer than"):
        argv("claude", request(instructions="x" * (ARGUMENT_LIMIT + 1)))


def test_an_answer_is_read_with_its_figures():
    reply = read(0, b'{"type":"system"}\n' + result(structured_output={"a": 1}), b"")
    assert (reply.text, reply.structured, reply.model) == ("full", {"a": 1}, "claude-haiku-5-5")
    assert (reply.tokens_in, reply.tokens_out, reply.cost_usd) == (15, 2, 0.5)


def test_an_answer_without_the_object_is_no_failure_and_is_paid():
    reply = read(1, result(subtype="error_max_turns", is_error=True, result=""), b"")
    assert (reply.text, reply.structured, reply.cost_usd) == ("", None, 0.5)


@pytest.mark.parametrize(
    ("code", "out", "err", "why", "again"),
    [
        (1, result(is_error=True, api_error_status=401, result="Failed to authenticate"), b"", "authenticate", False),
        (1, result(is_error=True, api_error_status=529, result="Overloaded"), b"", "Overloaded", True),
        (1, result(is_error=True, api_error_status=429, result="Limit"), b"", "Limit", True),
        (1, result(subtype="error_max_budget_usd", is_error=True, result=None), b"", "error_max_budget_usd", False),
        (1, b"", b"error: unknown option '--tools'\n", "code 1 and no result: error: unknown option", False),
        (-9, b"", b"", "code -9 and no result", True),
        (0, b"not json\n[1]\n" + b"[" * 50_000, b"\xff", "code 0 and no result", False),
    ],
)
def test_what_went_wrong_is_said(code, out, err, why, again):
    with pytest.raises(Failure, match=why) as failed:
        read(code, out, err)
    assert failed.value.again is again


def test_a_failed_call_keeps_what_it_cost():
    with pytest.raises(Failure) as failed:
        read(1, result(is_error=True), b"")
    assert failed.value.paid.cost_usd == 0.5


@pytest.mark.processes
def test_the_prompt_goes_in_on_stdin_and_the_environment_is_an_allow_list(tmp_path, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    backend = cli(tmp_path, f"cat > {tmp_path}/stdin; env > {tmp_path}/env; echo '{result().decode()}'")
    assert backend.send(request(text="@/etc/passwd\n/clear")).text == "full"
    assert (tmp_path / "stdin").read_text() == "@/etc/passwd\n/clear"
    given = (tmp_path / "env").read_text()
    assert "ANTHROPIC_API_KEY=key" in given and f"HOME={tmp_path}" in given
    assert "DATABASE_URL" not in given and "SECRET_KEY" not in given
    assert "CLAUDE_CODE_DISABLE_FILE_MENTIONS=1" in given


@pytest.mark.processes
def test_at_the_timeout_the_process_is_killed_with_its_group(tmp_path):
    backend = cli(tmp_path, f"trap '' TERM; sleep 600 & echo $! > {tmp_path}/child; echo $$ > {tmp_path}/pid; wait")
    started = time.monotonic()
    with pytest.raises(Failure) as failed:
        backend.send(request(seconds=1.0))
    assert failed.value.late
    assert time.monotonic() - started < 30
    for name in ("pid", "child"):
        pid = int((tmp_path / name).read_text())
        try:
            psutil.Process(pid).wait(10)
        except psutil.NoSuchProcess:
            pass
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.processes
def test_a_program_that_does_not_read_its_prompt_is_no_problem(tmp_path):
    backend = cli(tmp_path, f"exec <&-; echo '{result().decode()}'")
    assert backend.send(request(text="x" * 1_000_000)).text == "full"


@pytest.mark.processes
def test_a_program_that_cannot_be_started_fails(tmp_path):
    path = tmp_path / "claude"
    path.write_text("not a program")
    os.chmod(path, 0o600)
    assert ClaudeBackend(str(path), "", ()).trouble()
    with pytest.raises(Failure, match="could not be started"):
        ClaudeBackend(str(path), "", ()).send(request())
