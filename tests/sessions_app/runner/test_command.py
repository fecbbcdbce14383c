"""The command line and the environment of a session."""

from pathlib import Path

from claudeops.lib.claude_cli import ARGUMENT_LIMIT, environment
from sessions_app.runner.command import Launch, claude_argv, needs_file, replay_argv


def launch(**changes):
    values = {
        "cli_session_id": "id",
        "model": "sonnet",
        "allowed_tools": ["Read", "Bash(docker ps *)"],
        "disallowed_tools": ["Write"],
        "max_turns": 20,
        "max_budget_usd": 1.5,
        "append_text": "Environment: x",
        "append_file": Path("/folder/system.md"),
        "schema": "{}",
    }
    return Launch(**{**values, **changes})


def test_the_whole_command_line():
    assert claude_argv("claude", launch()) == [
        "claude", "-p", "--output-format", "stream-json", "--verbose", "--model", "sonnet", "--session-id", "id",
        "--setting-sources", "", "--strict-mcp-config", "--permission-mode", "dontAsk",
        "--max-turns", "20", "--max-budget-usd", "1.5", "--append-system-prompt", "Environment: x",
        "--json-schema", "{}", "--allowedTools", "Read", "Bash(docker ps *)", "--disallowedTools", "Write",
    ]  # fmt: skip


def test_settings_are_a_file_beside_none_of_the_users():
    argv = claude_argv("claude", launch(settings=Path("/folder/hooks.json")))
    assert argv[argv.index("--settings") + 1] == "/folder/hooks.json"
    assert argv[argv.index("--setting-sources") + 1] == ""


def test_a_long_text_goes_by_file_and_a_short_one_does_not():
    short, long = "x" * ARGUMENT_LIMIT, "é" * ARGUMENT_LIMIT
    assert not needs_file(short)
    argv = claude_argv("claude", launch(append_text=long))
    assert "--append-system-prompt" not in argv
    assert argv[argv.index("--append-system-prompt-file") + 1] == "/folder/system.md"


def test_nothing_to_append_leaves_the_flag_out():
    assert "--append-system-prompt" not in claude_argv("claude", launch(append_text=""))


def test_a_replay_is_started_like_the_cli():
    argv = replay_argv(Path("/player.py"), Path("/stream.jsonl"), "id", 0)
    assert argv[1:] == ["/player.py", "--stream", "/stream.jsonl", "--session-id", "id", "--speed", "0"]


def test_only_what_is_allowed_gets_into_the_environment():
    inherited = {
        "PATH": "/bin",
        "ANTHROPIC_API_KEY": "key",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1",
        "DATABASE_URL": "postgres://secret",
        "SECRET_KEY": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "MY_PROXY": "p",
    }
    given = environment(inherited, home="/home/agent", tmp_dir=Path("/tmp/run"), passed=["MY_PROXY"], extra={"X": "1"})
    assert "secret" not in "".join(given.values())
    assert given["HOME"] == "/home/agent"
    assert given["MY_PROXY"] == "p"
    assert given["X"] == "1"
    assert given["CLAUDE_CODE_TMPDIR"] == "/tmp/run"
    assert given["CLAUDE_CODE_DISABLE_FILE_MENTIONS"] == "1"
    assert {name for name in given if name.startswith("ANTHROPIC_")} == {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"}


def test_a_continue_begins_with_the_other_conversation_and_its_own_system_prompt():
    argv = claude_argv("claude", launch(resume="0b8d"))
    at = argv.index("--resume")
    assert argv[at : at + 5] == ["--resume", "0b8d", "--fork-session", "--system-prompt-snapshot", "off"]
    assert "--session-id" in argv
    assert "--resume" not in claude_argv("claude", launch())
