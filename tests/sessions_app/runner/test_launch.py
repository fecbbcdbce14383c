"""What a session may use, decided before it is started."""

from __future__ import annotations

from pathlib import Path

from sessions_app.models import Agent, Session
from sessions_app.runner.launch import handoff_file, tools_of


def tools(agent=None, **fields):
    return tools_of(Session(**fields), agent)


def test_without_rules_of_its_own_a_session_looks_only(settings):
    allowed, _ = tools()
    assert allowed == settings.CLAUDEOPS_OBSERVE_TOOLS
    assert not [rule for rule in allowed if "curl" in rule or rule.startswith(("Edit", "Write"))]


def test_every_session_is_denied_the_secrets_of_the_data_folder(settings):
    settings.CLAUDEOPS_DATA_DIR = Path("/var/lib/claudeops")
    for agent in (None, Agent(allowed_tools=["Read"], disallowed_tools=["Bash(rm *)"])):
        _, denied = tools(agent)
        assert "Read(//var/lib/claudeops/secret_key)" in denied
        assert "Read(//var/lib/claudeops/first-sign-in.txt)" in denied
        assert "Read(//var/lib/claudeops/*.sqlite3*)" in denied
        assert "Read(//var/lib/claudeops/backups/**)" in denied
    settings.CLAUDEOPS_BACKUP_DIR = Path("/mnt/nas")
    assert "Read(//mnt/nas/**)" in tools()[1]


def test_an_agents_rules_replace_what_is_allowed_and_add_to_what_is_denied(settings):
    settings.CLAUDEOPS_DISALLOWED_TOOLS = ["WebFetch"]
    allowed, denied = tools(Agent(allowed_tools=["Bash(docker restart *)"], disallowed_tools=["Bash(rm *)"]))
    assert allowed == ["Bash(docker restart *)"]
    assert denied[:2] == ["WebFetch", "Bash(rm *)"]


def test_a_dry_run_looks_only_whatever_its_agent_may(settings):
    allowed, denied = tools(Agent(allowed_tools=["Bash(docker restart *)", "Write"]), dry_run=True)
    assert allowed == settings.CLAUDEOPS_OBSERVE_TOOLS
    assert {"Edit", "Write", "NotebookEdit"} <= set(denied)


def test_an_agent_without_structured_answers_may_write_its_handoff_and_no_other_file():
    session = Session()
    allowed, _ = tools_of(session, Agent(allowed_tools=["Read"], structured_response=False))
    assert allowed == ["Read", f"Edit(/{handoff_file(session)})"]
