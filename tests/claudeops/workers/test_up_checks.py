"""What `up` checks before it starts anything, and what it says."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from claudeops.lib.cli import Refusal
from claudeops.workers import up
from claudeops.workers.up import FirstSignIn, Missing, welcome
from sessions_app.demo.setup import ANSWERS

SIGN_IN = FirstSignIn("operator", "hF3-a-word", Path("/data/first-sign-in.txt"))


def said(**more):
    given = {
        "url": "http://127.0.0.1:8000/",
        "sign_in": SIGN_IN,
        "data_dir": Path("/data"),
        "database": "sqlite3",
        "demo": False,
        "missing": [],
        "warnings": [],
    }
    return welcome(**{**given, **more})


@pytest.fixture
def listener():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_a_free_port_is_not_refused(listener):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    up.require_free("127.0.0.1", free)
    up.require_free("localhost", free)


def test_a_port_in_use_is_refused_with_another_to_take(listener):
    with pytest.raises(Refusal, match=f"Port {listener} on 127.0.0.1 cannot be used") as refusal:
        up.require_free("127.0.0.1", listener)
    assert "--port" in refusal.value.fix


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(Refusal, match=r"192\.0\.2\.1"):  # reserved for documentation, never this machine's
        up.require_free("192.0.2.1", 8000)


def test_a_name_that_does_not_exist_is_refused():
    with pytest.raises(Refusal, match="not an address of this machine"):
        up.require_free("no-such-host.invalid", 8000)


def test_a_loopback_address_is_known_as_one(subtests):
    for host, loopback in [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("no-such-host.invalid", False),
    ]:
        with subtests.test(str(host)):
            assert up.is_loopback(host) is loopback


def test_plain_http_is_for_a_loopback_address_only():
    assert up.web_environment("127.0.0.1", {}) == {"CLAUDEOPS_PLAIN_HTTP": "1"}
    assert up.web_environment("0.0.0.0", {}) == {}


@pytest.mark.parametrize("said_before", [{"CLAUDEOPS_PLAIN_HTTP": "0"}, {"CLAUDEOPS_TRUST_PROXY": "1"}])
def test_what_the_operator_said_about_encryption_stands(said_before):
    assert up.web_environment("127.0.0.1", said_before) == {}


LOCAL = ["localhost", "127.0.0.1", "[::1]"]


def test_the_worker_is_told_where_hooks_reach_the_web_server():
    assert up.worker_environment("127.0.0.1", 8155, {}, LOCAL) == {"CLAUDEOPS_HOOK_URL": "http://127.0.0.1:8155"}
    assert up.worker_environment("::1", 80, {}, LOCAL) == {"CLAUDEOPS_HOOK_URL": "http://[::1]:80"}
    plain = {"CLAUDEOPS_PLAIN_HTTP": "1"}
    assert up.worker_environment("0.0.0.0", 80, plain, LOCAL) == {"CLAUDEOPS_HOOK_URL": "http://127.0.0.1:80"}


@pytest.mark.parametrize(
    ("host", "given", "allowed_hosts"),
    [
        ("127.0.0.1", {"CLAUDEOPS_HOOK_URL": "https://ops.example.org"}, LOCAL),
        ("127.0.0.1", {"CLAUDEOPS_HOOK_URL_FILE": "/run/url"}, LOCAL),
        ("127.0.0.1", {"CLAUDEOPS_PLAIN_HTTP": "0"}, LOCAL),
        ("127.0.0.1", {"CLAUDEOPS_TRUST_PROXY": "1"}, LOCAL),
        ("127.0.0.1", {}, ["ops.example.org"]),
        ("0.0.0.0", {}, LOCAL),
    ],
)
def test_the_worker_is_told_no_address_that_would_not_answer(host, given, allowed_hosts):
    assert up.worker_environment(host, 8000, given, allowed_hosts) == {}


def test_an_address_others_can_reach_is_warned_about():
    warnings = up.host_warnings("0.0.0.0", {}, ["localhost", "127.0.0.1", "[::1]"])
    assert len(warnings) == 2
    assert "TLS" in warnings[0]
    assert "ALLOWED_HOSTS" in warnings[1]
    assert len(up.host_warnings("0.0.0.0", {}, ["ops.example.org"])) == 1
    assert "without encryption" in up.host_warnings("0.0.0.0", {"CLAUDEOPS_PLAIN_HTTP": "1"}, ["a"])[0]
    assert up.host_warnings("127.0.0.1", {}, []) == []


def test_an_ipv6_address_is_written_in_brackets():
    assert "[::1]:8000" in up.web_argv("::1", 8000)
    assert up.in_url(up.reached_at("::")) == "[::1]"


def test_the_demo_has_nothing_of_the_operators():
    given = {
        "PATH": "/usr/bin",
        "DATABASE_URL": "postgres://prod/claudeops",
        "CLAUDEOPS_DATA_DIR": "/data",
        "CLAUDEOPS_WORK_DIR": "/srv/infra",
        "CLAUDEOPS_REPLAY_SPEED": "4",
        "CLAUDEOPS_MODEL_OBSERVER": "claude:haiku",
        "CLAUDEOPS_TRANSCRIPT_FOLDERS": "~/.claude/projects",
    }
    chosen = up.demo_environment(given, Path("/data"))
    assert chosen == {
        "PATH": "/usr/bin",
        "CLAUDEOPS_DATA_DIR": "/data/demo",
        "CLAUDEOPS_DEMO": "1",
        "CLAUDEOPS_REPLAY_SPEED": "4",
        "CLAUDEOPS_DAILY_BUDGET_USD": "0",
        "CLAUDEOPS_BACKUP_KEEP": "0",
        "CLAUDEOPS_MODELS_DIR": "/data/models",
        "CLAUDEOPS_MODEL_OBSERVER": "recorded:demo",
        "CLAUDEOPS_MODEL_RECORDINGS": str(ANSWERS),
        "CLAUDEOPS_MODEL_CLASSIFIER": "",
        "CLAUDEOPS_MODEL_REFLECTOR": "recorded:demo",
        "CLAUDEOPS_MODEL_TRIAGE": "recorded:demo",
        "CLAUDEOPS_TRANSCRIPT_FOLDERS": "",
    }
    assert up.is_demo_environment(chosen, Path(chosen["CLAUDEOPS_DATA_DIR"]))


@pytest.mark.parametrize(
    ("given", "folder"),
    [
        ({}, "/data/demo"),
        ({"CLAUDEOPS_DEMO": "1"}, "/data"),
        ({"CLAUDEOPS_DEMO": "1", "DATABASE_URL": "postgres://prod/claudeops"}, "/data/demo"),
    ],
)
def test_the_operators_own_house_is_never_taken_for_the_demo(given, folder):
    assert not up.is_demo_environment(given, Path(folder))


def test_one_house_is_taken_by_one_process(tmp_path):
    folder = tmp_path / "data"
    with up.lock_data_folder(folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with pytest.raises(Refusal, match=f"process {os.getpid()}"):
            up.lock_data_folder(folder)
    up.lock_data_folder(folder).close()


def test_a_data_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal, match="cannot be written"):
        up.lock_data_folder(tmp_path / "file" / "data")


def test_the_welcome_says_where_and_how_to_sign_in():
    text = said()
    for part in ("http://127.0.0.1:8000/", "user operator, password hF3-a-word", "/data/first-sign-in.txt", "Ctrl-C"):
        assert part in text


def test_a_password_of_ones_own_is_not_printed():
    text = said(sign_in=FirstSignIn("operator", None, Path("/data/first-sign-in.txt")))
    assert "your password" in text
    assert "first-sign-in" not in text


def test_the_welcome_names_what_is_missing_with_what_to_do():
    text = said(missing=[Missing("There is no agent yet.", "Add one.")], warnings=["Mind this."])
    assert "There is no agent yet.\n    Add one." in text
    assert "Warning: Mind this." in text


def test_a_database_elsewhere_is_not_said_to_be_in_the_folder():
    assert "(database, raw logs, secret key)" in said()
    assert "(raw logs, secret key)" in said(database="postgresql")


def test_long_advice_is_wrapped_and_commands_stay_whole():
    advice = "Set ANTHROPIC_API_KEY for the workers, " * 4 + "or run npm install -g @anthropic-ai/claude-code"
    text = said(missing=[Missing("The CLI is not signed in.", advice)])
    assert max(len(line) for line in text.splitlines()) <= 110
    assert "@anthropic-ai/claude-code" in text


def test_the_demo_says_that_it_is_one():
    text = said(demo=True)
    assert "claudeops is up (demo)." in text
    assert "recordings" in text
    assert max(len(line) for line in text.splitlines()) <= 120
