"""Each row of "How a run ends", on the real process: the status, the reason, and nothing left running."""

from __future__ import annotations

import signal
import threading
import time
from decimal import Decimal
from pathlib import Path

import psutil
import pytest

from memories.models import Memory
from sessions_app import queue
from sessions_app.models import Event, Status
from sessions_app.runner.process import find_by_session_id
from tests.support.messages_api import Failure, Text, answers, bash, says, structured

pytestmark = pytest.mark.real_cli

# The server says that trying again is of no use: the CLI believes it, and the test does not wait for retries.
AT_ONCE = {"x-should-retry": "false"}


def never() -> threading.Event:
    """Holds an answer until the test is over."""
    return threading.Event()


def half_done(room, key: str, *, then: str = "late") -> None:
    """A session that says something, uses a tool, and then waits for the model for ever."""
    room.api.script(
        key,
        answers(Text("[EVENT:info:caddy] half done"), bash("echo half")),
        says(then, held=never()),
    )


def test_success(room):
    room.api.script("do well", answers(Text("Working."), bash("echo fine")), says("Everything is well."))

    session = room.run("do well")

    assert (session.status, session.status_reason, session.exit_code, session.error) == (Status.COMPLETED, "", 0, "")
    assert (session.response, session.num_turns) == ("Everything is well.", 2)
    assert session.cost_usd > 0
    assert session.duration_ms > 0
    assert session.ended_at >= session.started_at


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (Failure(500, "api_error", "the house burns", AT_ONCE), "(HTTP 500): API Error: 500 the house burns"),
        (Failure(429, "rate_limit_error", "slow down", AT_ONCE), "(HTTP 429): API Error: Request rejected (429)"),
        (
            Failure(401, "authentication_error", "who?", AT_ONCE),
            "(HTTP 401): Failed to authenticate. API Error: 401 who?",
        ),
    ],
    ids=["server error", "rate limit", "bad key"],
)
def test_an_error_of_the_api_is_a_failure_that_names_it(room, failure, words):
    room.api.script("try your luck", then=failure)

    session = room.run("try your luck")

    assert (session.status, session.exit_code) == (Status.FAILED, 1)
    assert words in session.status_reason
    assert not Event.objects.exists()
    assert not Memory.objects.exists()


def test_an_error_that_passes_is_tried_again_and_forgotten(room):
    room.api.script("try again", Failure(529, "overloaded_error", "busy"), says("[EVENT:info:caddy] up"))

    session = room.run("try again")

    assert (session.status, session.status_reason) == (Status.COMPLETED, "")
    assert len(room.api.to("try again")) == 2
    assert Event.objects.get().message == "up"


def test_no_login_is_a_failure_that_says_so(room, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")

    session = room.run("who am I")

    assert (session.status, session.exit_code) == (Status.FAILED, 1)
    assert "/login" in session.status_reason
    assert room.api.requests == []


def test_a_subscription_s_usage_limit_is_a_failure_that_says_when_it_ends(room, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-only-for-the-tests")
    limit = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(int(time.time()) + 3600),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }
    room.api.script("use it up", then=Failure(429, "rate_limit_error", "over the limit", limit))

    session = room.run("use it up")

    assert (session.status, session.exit_code) == (Status.FAILED, 1)
    assert "You've hit your 5-hour limit · resets" in session.status_reason
    assert len(room.api.to("use it up")) == 1  # the CLI knows that trying again is of no use


def test_the_highest_number_of_turns(room):
    room.api.script("go on and on", then=answers(Text("[EVENT:info:caddy] again"), bash("echo again")))

    session = room.run("go on and on", max_turns=2)

    assert (session.status, session.exit_code) == (Status.FAILED, 1)
    assert session.status_reason == ("The session reached its limit of turns: Reached maximum number of turns (2).")
    assert Event.objects.count() == 1  # said twice, counts once


def test_the_highest_cost(room):
    room.api.script("spend it", then=answers(Text("Spending."), bash("echo more"), output_tokens=200_000))

    session = room.run("spend it", max_budget_usd=Decimal("0.5"))

    assert (session.status, session.exit_code) == (Status.FAILED, 1)
    assert "reached its cost limit" in session.status_reason
    assert session.cost_usd > Decimal("0.5")


def test_no_valid_structured_answer(room):
    room.api.script("answer in form", then=answers(structured(nonsense=True)))

    session = room.run("answer in form", structured_response=True)

    assert (session.status, session.exit_code) == (Status.FAILED, 1)
    assert "gave no valid structured answer" in session.status_reason


def test_an_answer_cut_off_again_and_again_counts_its_markers_once(room):
    cut = says("[MEMORY:timing:caddy] Reload takes 3 seconds\nand so on and", stop_reason="max_tokens")
    room.api.script("talk too much", then=cut)

    session = room.run("talk too much")

    assert session.status == Status.FAILED
    assert len(room.api.to("talk too much")) == 4
    assert Memory.objects.get().confidence == 0.7


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (signal.SIGTERM, 143, "ended by SIGTERM from outside claudeops, before its result"),
        (signal.SIGHUP, 129, "ended by SIGHUP from outside claudeops, before its result"),
        (signal.SIGKILL, -9, "ended by SIGKILL (out of memory?) from outside claudeops, before its result"),
        (signal.SIGINT, 0, "interrupted"),
    ],
    ids=["SIGTERM", "SIGHUP", "SIGKILL", "SIGINT"],
)
def test_a_signal_from_outside_is_a_failure_and_what_was_said_before_is_kept(room, number, code, words):
    half_done(room, "be interrupted")
    killer = room.signal_at_request("be interrupted", 2, number)

    session = room.run("be interrupted")

    killer.join()
    assert (session.status, session.exit_code) == (Status.FAILED, code)
    assert words in session.status_reason
    assert Event.objects.get(session=session).message == "half done"


def test_the_deadline_ends_the_session_and_all_it_started(room):
    room.api.script("sleep long", answers(Text("[EVENT:info:caddy] going to sleep"), bash("sleep 987.654")))

    session = room.run("sleep long", timeout_seconds=5, allowed_tools=["Bash(sleep *)"])

    assert (session.status, session.exit_code) == (Status.TIMED_OUT, 143)
    assert session.status_reason == "Ended at its time limit of 5 seconds."
    assert Event.objects.get(session=session).message == "going to sleep"
    assert find_by_session_id(session.cli_session_id) is None
    assert [p for p in psutil.process_iter(["cmdline"]) if "987.654" in (p.info["cmdline"] or [])] == []


def test_the_operator_s_stop_ends_the_session_and_names_the_operator(room):
    half_done(room, "be stopped")
    session = room.queued("be stopped")

    def stop() -> None:
        room.api.wait_for_request("be stopped", 2)
        queue.request_stop(session.pk, by="ada")

    stopper = room.meanwhile(stop)
    session = room.carry_out(session)

    stopper.join()
    assert (session.status, session.status_reason) == (Status.STOPPED, "Stopped by ada.")
    assert Event.objects.get(session=session).message == "half done"
    assert find_by_session_id(session.cli_session_id) is None


def test_a_flag_the_cli_does_not_know_is_a_failure_with_its_own_words(room, settings, tmp_path):
    settings.CLAUDEOPS_CLAUDE_BIN = wrapper(tmp_path, settings.CLAUDEOPS_CLAUDE_BIN, "--no-such-flag")

    session = room.run("be misused")

    assert (session.status, session.exit_code) == (Status.FAILED, 1)
    assert "unknown option '--no-such-flag'" in session.status_reason
    assert "unknown option '--no-such-flag'" in session.error


def test_a_session_id_used_before_is_a_failure_with_the_cli_s_words(room, settings, tmp_path):
    used = "3c1a4c0e-6f0b-4a53-9d5c-0d0f6a1c2b3d"
    room.api.script("be first", says("First."))
    room.api.script("be second", then=says("Second."))
    settings.CLAUDEOPS_CLAUDE_BIN = wrapper(tmp_path, settings.CLAUDEOPS_CLAUDE_BIN, f"--session-id {used}", last=True)

    assert room.run("be first").status == Status.COMPLETED
    session = room.run("be second")

    assert (session.status, session.exit_code) == (Status.FAILED, 1)
    assert f"{used} is already in use" in session.status_reason


def test_a_denied_tool_is_no_failure_but_is_named(room):
    room.api.script("touch something", answers(bash("touch forbidden")), says("I was not allowed to."))

    session = room.run("touch something")

    assert (session.status, session.exit_code) == (Status.COMPLETED, 0)
    assert session.status_reason == "1 tool call was denied: Bash: touch forbidden."
    assert not (room.work / "forbidden").exists()


def test_an_mcp_server_that_does_not_start_is_no_failure_but_is_named(room, settings, tmp_path):
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {"broken": {"command": "/bin/false", "args": []}}}')
    settings.CLAUDEOPS_CLAUDE_BIN = wrapper(tmp_path, settings.CLAUDEOPS_CLAUDE_BIN, f"--mcp-config {config}")
    room.api.script("ask the tools", says("They do not answer."))

    session = room.run("ask the tools")

    assert session.status == Status.COMPLETED
    assert session.status_reason == "MCP servers not connected: broken (failed)."


def wrapper(folder: Path, claude: str, flags: str, *, last: bool = False) -> str:
    """The CLI with further flags, as an operator's own wrapper script."""
    script = folder / "claude-wrapper"
    script.write_text(
        f'#!/bin/sh\nexec "{claude}" "$@" {flags}\n' if last else f'#!/bin/sh\nexec "{claude}" {flags} "$@"\n'
    )
    script.chmod(0o755)
    return str(script)
