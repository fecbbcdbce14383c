"""Each row of the table "How a run ends" gives the right status and reason."""

from __future__ import annotations

import pytest

from sessions_app.models import Status
from sessions_app.runner.outcome import EndedBy, Ending, LastResult, outcome

GOOD = LastResult("success", is_error=False, text="All done.")


def status_and_reason(**ending):
    return outcome(Ending(**{"exit_code": 0, "result": None, **ending}))


def test_exit_code_0_with_a_result_without_error_is_good():
    assert status_and_reason(result=GOOD) == (Status.COMPLETED, "")


def test_a_full_disk_is_the_reason_of_a_process_that_could_not_write_and_of_one_that_was_ended_for_it():
    full = "The disk of the data folder is full: 0 bytes free, 100.0 MB needed."
    ended = (Status.FAILED, f"Ended: {full}")
    assert status_and_reason(exit_code=120, full_disk=full) == ended
    assert status_and_reason(exit_code=143, full_disk=full, ended_by=EndedBy.FULL_DISK, result=GOOD) == ended
    assert status_and_reason(full_disk=full, result=GOOD) == (Status.COMPLETED, "")


def test_an_api_error_calls_itself_success_and_is_none():
    result = LastResult("success", is_error=True, text="API Error: 500 stub", api_error_status=500)
    status, reason = status_and_reason(exit_code=1, result=result)
    assert status == Status.FAILED
    assert reason == "The API or the CLI reported an error (HTTP 500): API Error: 500 stub"


@pytest.mark.parametrize(
    ("subtype", "words"),
    [
        ("error_max_turns", "reached its limit of turns: Reached maximum number of turns (1)."),
        ("error_max_budget_usd", "reached its cost limit"),
        ("error_max_structured_output_retries", "gave no valid structured answer"),
        ("error_during_execution", "was interrupted"),
    ],
)
def test_a_limit_that_was_reached_is_named(subtype, words):
    result = LastResult(subtype, is_error=True, errors=("Reached maximum number of turns (1)",))
    status, reason = status_and_reason(exit_code=1, result=result)
    assert status == Status.FAILED
    assert words in reason


@pytest.mark.parametrize(
    ("code", "name"),
    [(143, "SIGTERM"), (-15, "SIGTERM"), (129, "SIGHUP"), (-1, "SIGHUP"), (-9, "SIGKILL"), (137, "SIGKILL")],
)
def test_a_signal_from_outside_is_named(code, name):
    status, reason = status_and_reason(exit_code=code)
    assert status == Status.FAILED
    assert f"ended by {name}" in reason
    assert "from outside claudeops, before its result" in reason


def test_sigint_gives_exit_code_0_without_a_result_and_is_no_success():
    status, reason = status_and_reason(exit_code=0)
    assert status == Status.FAILED
    assert "without a result" in reason


def test_a_bad_flag_shows_what_stderr_said():
    status, reason = status_and_reason(exit_code=1, stderr="error: unknown option '--nope'\n")
    assert (status, reason) == (
        Status.FAILED,
        "The process exited with code 1 without a result: error: unknown option '--nope'",
    )


def test_denied_tools_and_failed_servers_are_a_good_run_worth_a_look():
    status, reason = status_and_reason(result=GOOD, denials=["Bash: rm -rf x"], mcp_failed=["ops (failed)"])
    assert status == Status.COMPLETED
    assert reason == "1 tool call was denied: Bash: rm -rf x. MCP servers not connected: ops (failed)."


def test_the_deadline_and_the_operators_stop_win_over_what_the_process_said():
    assert status_and_reason(exit_code=143, ended_by=EndedBy.DEADLINE, timeout=3600) == (
        Status.TIMED_OUT,
        "Ended at its time limit of 3600 seconds.",
    )
    assert status_and_reason(exit_code=143, ended_by=EndedBy.STOP, stopped_by="anna", result=GOOD) == (
        Status.STOPPED,
        "Stopped by anna.",
    )


def test_a_process_that_stayed_after_a_good_result_completed():
    status, reason = status_and_reason(exit_code=143, result=GOOD, ended_by=EndedBy.LINGER, linger=60)
    assert status == Status.COMPLETED
    assert "60 seconds after its result" in reason


def test_a_process_nobody_waited_for_is_judged_by_its_log():
    assert status_and_reason(exit_code=None, result=GOOD)[0] == Status.COMPLETED
    assert status_and_reason(exit_code=None)[0] == Status.LOST
    assert status_and_reason(exit_code=None, result=LastResult("success", is_error=True, text="x"))[0] == Status.FAILED


def test_a_result_does_not_excuse_a_bad_exit_code():
    status, reason = status_and_reason(exit_code=2, result=GOOD)
    assert status == Status.FAILED
    assert "code 2 after its result" in reason
