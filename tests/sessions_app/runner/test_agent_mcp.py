"""What a session's CLI is told of the MCP server, when the setting says so."""

from __future__ import annotations

import json
import stat
import sys

import pytest

from sessions_app.runner import agent_mcp
from sessions_app.runner.launch import command_of, tools_of
from tests.support.factories import AgentFactory, SessionFactory

READS = {"mcp__claudeops__recall", "mcp__claudeops__memory_show", "mcp__claudeops__check_cooldown"}
ALL = READS | {"mcp__claudeops__remember", "mcp__claudeops__log_event"}


def config(inherited):
    made = agent_mcp.config(
        inherited,
        python="/usr/bin/python3",
        manage="/srv/claudeops/manage.py",
        session="the-uuid",
        data_dir="/srv/data",
        settings_module="claudeops.settings",
        read_only=False,
    )
    return made["mcpServers"]["claudeops"]


def test_the_server_is_started_for_this_session_with_this_python():
    server = config({})
    assert [server["command"], *server["args"]] == [
        "/usr/bin/python3",
        "/srv/claudeops/manage.py",
        "mcp",
        "--session",
        "the-uuid",
    ]
    assert server["env"]["CLAUDEOPS_DATA_DIR"] == "/srv/data"


def test_it_gets_what_finds_the_database_and_neither_the_house_key_nor_a_models():
    inherited = {
        "DATABASE_URL": "postgres://h/db",
        "CLAUDEOPS_MEMORY_BUDGET": "100",
        "PGSSLMODE": "require",
        "SECRET_KEY": "the house's",
        "ANTHROPIC_API_KEY": "the model's",
        "OTHER": "x",
    }
    environment = config(inherited)["env"]
    assert environment["DATABASE_URL"] == "postgres://h/db"
    assert (environment["CLAUDEOPS_MEMORY_BUDGET"], environment["PGSSLMODE"]) == ("100", "require")
    assert "house" not in environment["SECRET_KEY"]
    assert not {"ANTHROPIC_API_KEY", "OTHER"} & set(environment)


@pytest.fixture
def session(db, settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    return SessionFactory(agent=AgentFactory(slug="watcher"), status="running", runner="claude", cli_session_id="abc")


def test_without_the_setting_a_session_gets_no_server_and_no_tool_of_it(session, tmp_path):
    argv = command_of(session, session.agent, tmp_path)
    assert "--mcp-config" not in argv
    assert not ALL & set(argv)
    assert not (tmp_path / "mcp.json").exists()


def test_with_it_the_file_is_for_the_user_alone_and_no_tool_may_read_it(session, settings, tmp_path):
    settings.CLAUDEOPS_AGENT_MCP = True
    argv = command_of(session, session.agent, tmp_path)
    path = tmp_path / "mcp.json"
    assert argv[argv.index("--mcp-config") + 1] == str(path)
    assert "--strict-mcp-config" in argv
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    server = json.loads(path.read_text())["mcpServers"]["claudeops"]
    assert server["command"] == sys.executable
    assert server["args"][1:] == ["mcp", "--session", str(session.uuid)]
    allowed, denied = tools_of(session, session.agent)
    assert set(allowed) >= ALL
    assert f"Read(/{tmp_path.resolve()}/sessions/**/mcp.json)" in denied


def test_a_dry_run_asks_and_stores_nothing(session, settings, tmp_path):
    settings.CLAUDEOPS_AGENT_MCP = True
    session.dry_run = True
    argv = command_of(session, session.agent, tmp_path)
    assert set(argv) >= READS
    assert not (ALL - READS) & set(argv)
    server = json.loads((tmp_path / "mcp.json").read_text())["mcpServers"]["claudeops"]
    assert server["args"][-1] == "--read-only"
