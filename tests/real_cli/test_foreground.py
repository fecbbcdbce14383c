"""`manage.py session run` on the real CLI: the live log in the foreground, and Ctrl-C."""

from __future__ import annotations

import json
import signal
import threading

import pytest

from memories.models import Memory
from sessions_app.models import Session, Status
from sessions_app.runner.process import find_by_session_id
from tests.support import processes
from tests.support.factories import AgentFactory
from tests.support.messages_api import Text, answers, bash, says

pytestmark = pytest.mark.real_cli

KEY = "Are the backups fresh?"


@pytest.fixture
def agent(db):
    return AgentFactory(slug="watchman", structured_response=False, allowed_tools=["Bash(echo *)"])


def test_it_shows_the_log_and_how_it_ended(room, agent):
    room.api.script(
        KEY,
        answers(Text("Looking.\n[MEMORY:timing:backup] Takes 20 minutes"), bash("echo twenty")),
        says("They are fresh."),
    )

    out, err = (command := processes.manage("session", "run", "--agent", "watchman", "--prompt", KEY)).communicate(
        timeout=120
    )

    assert command.returncode == 0, err
    assert [out.index(words) for words in ("Looking.", "echo twenty", "They are fresh.")] == sorted(
        out.index(words) for words in ("Looking.", "echo twenty", "They are fresh.")
    )
    session = Session.objects.get()
    assert (session.status, session.agent, session.host) != (Status.COMPLETED, None, "")
    assert Memory.objects.get().session == session


def test_with_json_stdout_holds_one_document(room, agent):
    room.api.script(KEY, says("They are fresh."))

    out, err = (
        command := processes.manage("session", "run", "--agent", "watchman", "--prompt", KEY, "--json")
    ).communicate(timeout=120)

    assert command.returncode == 0, err
    document = json.loads(out)
    assert (document["ok"], document["command"]) == (True, "session run")
    assert document["result"]["status"] == Status.COMPLETED
    assert "They are fresh." in err


def test_a_failed_session_is_exit_code_1(room, agent, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")

    out, _ = (command := processes.manage("session", "run", "--agent", "watchman", "--prompt", KEY)).communicate(
        timeout=120
    )

    assert command.returncode == 1
    assert "/login" in out


def test_ctrl_c_stops_the_session(room, agent):
    room.api.script(KEY, says("late", held=threading.Event()))
    command = processes.manage("session", "run", "--agent", "watchman", "--prompt", KEY)
    room.api.wait_for_request(KEY)

    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=120)

    session = Session.objects.get()
    assert (session.status, command.returncode) == (Status.STOPPED, 1), (out, err)
    assert find_by_session_id(session.cli_session_id) is None
