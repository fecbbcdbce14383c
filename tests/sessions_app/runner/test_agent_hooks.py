"""The hooks of our own sessions: in a settings file of the session's, where the setting and an address say so."""

from __future__ import annotations

import json
import stat

import pytest

from sessions_app.hooks.callers import caller_of
from sessions_app.runner.launch import command_of, tools_of
from tests.support.factories import AgentFactory, SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    settings.CLAUDEOPS_HOOK_URL = "http://127.0.0.1:8155/"
    settings.CLAUDEOPS_SESSION_HOOKS = ["agents", "cooldowns"]
    return SessionFactory(agent=AgentFactory(slug="watcher"), status="running", runner="claude", cli_session_id="abc")


def hooks_of(path) -> dict:
    return {event: entry for event, (entry,) in json.loads(path.read_text())["hooks"].items()}


def test_a_session_gets_its_hooks_with_a_token_of_its_own(session, tmp_path):
    argv = command_of(session, session.agent, tmp_path)
    path = tmp_path / "hooks.json"
    assert argv[argv.index("--settings") + 1] == str(path)
    found = hooks_of(path)
    assert list(found) == ["SubagentStart", "SubagentStop", "PreToolUse"]
    assert found["PreToolUse"]["matcher"] == "Bash"
    (hook,) = found["PreToolUse"]["hooks"]
    assert hook["url"] == "http://127.0.0.1:8155/hooks/PreToolUse"
    assert caller_of(hook["headers"]["Authorization"].removeprefix("Bearer ")).session == session


def test_the_file_is_for_the_user_alone_and_no_tool_may_read_it(session, tmp_path):
    command_of(session, session.agent, tmp_path)
    assert stat.S_IMODE((tmp_path / "hooks.json").stat().st_mode) == 0o600
    assert f"Read(/{tmp_path.resolve()}/sessions/**/hooks.json)" in tools_of(session, session.agent)[1]


def test_a_session_gets_the_hooks_that_are_switched_on(session, settings, tmp_path):
    settings.CLAUDEOPS_SESSION_HOOKS = ["agents"]
    command_of(session, session.agent, tmp_path)
    assert list(hooks_of(tmp_path / "hooks.json")) == ["SubagentStart", "SubagentStop"]


@pytest.mark.parametrize(("url", "sets"), [("", ["agents"]), ("http://127.0.0.1:8155", [])])
def test_without_an_address_or_a_set_there_are_no_hooks(session, settings, tmp_path, url, sets):
    settings.CLAUDEOPS_HOOK_URL, settings.CLAUDEOPS_SESSION_HOOKS = url, sets
    assert "--settings" not in command_of(session, session.agent, tmp_path)
    assert not (tmp_path / "hooks.json").exists()
