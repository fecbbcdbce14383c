"""The system checks of the runner: each wrong thing is named with its id and a hint, a right one is silent."""

from __future__ import annotations

import stat

import pytest
from django.core import checks as framework
from hypothesis import given
from hypothesis import strategies as st

from claudeops.settings import cluster
from sessions_app import checks


def ids(messages) -> list[str]:
    assert all(message.hint for message in messages)
    return [message.id for message in messages]


@pytest.fixture
def q_cluster(settings):
    """The settings of the queue, to break."""
    original = settings.Q_CLUSTER
    settings.Q_CLUSTER = {**original, "ALT_CLUSTERS": {"sessions": dict(original["ALT_CLUSTERS"]["sessions"])}}
    return settings.Q_CLUSTER


def test_the_settings_as_they_are_pass():
    assert not framework.run_checks(tags=["sessions_app"])


class TestRetry:
    def test_a_task_that_would_be_given_to_a_second_worker_is_an_error(self, q_cluster):
        q_cluster["retry"] = checks.shortest_retry(q_cluster)
        assert ids(framework.run_checks(tags=["sessions_app"])) == ["sessions_app.E001"]

    def test_each_queue_is_looked_at(self, q_cluster):
        q_cluster["ALT_CLUSTERS"]["sessions"]["retry"] = q_cluster["retry"] = 10
        messages = checks.retry_is_long_enough(None)
        assert [message.msg.split()[2] for message in messages] == ["default", "sessions"]

    @given(workers=st.integers(1, 64), timeout=st.integers(10, 100_000))
    def test_the_settings_can_make_no_queue_that_fails_it(self, workers, timeout):
        conf = cluster(workers, timeout)
        assert conf["retry"] > checks.shortest_retry(conf)


class TestTheQueuesOwnLimit:
    def test_a_session_that_may_take_longer_is_an_error(self, q_cluster, settings):
        limit = settings.CLAUDEOPS_SESSION_TIMEOUT + 2 * settings.SESSION_STOP_GRACE
        q_cluster["ALT_CLUSTERS"]["sessions"].update(timeout=limit)
        assert ids(checks.queue_outlasts_a_session(None)) == ["sessions_app.E002"]
        q_cluster["ALT_CLUSTERS"]["sessions"].update(timeout=limit + 1)
        assert not checks.queue_outlasts_a_session(None)


class TestTheCli:
    @pytest.fixture(autouse=True)
    def bare_machine(self, settings, tmp_path, monkeypatch):
        settings.CLAUDEOPS_CLAUDE_BIN = "claude-that-is-not-there"
        settings.CLAUDEOPS_CLAUDE_HOME = str(tmp_path)
        for name in (*checks.SIGNED_IN_BY, *checks.SIGNED_IN_BY_CLOUD):
            monkeypatch.delenv(name, raising=False)

    def test_neither_found_nor_signed_in(self):
        assert sorted(ids(checks.cli_messages())) == ["sessions_app.W001", "sessions_app.W002"]

    def test_a_cli_that_is_there_is_found(self, settings, tmp_path):
        binary = tmp_path / "claude"
        binary.write_text("#!/bin/sh\n")
        settings.CLAUDEOPS_CLAUDE_BIN = str(binary)
        assert ids(checks.cli_is_found(None)) == ["sessions_app.W001"]  # not executable
        binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
        assert not checks.cli_is_found(None)

    @pytest.mark.parametrize("name", checks.SIGNED_IN_BY)
    def test_a_key_in_the_environment_signs_in(self, name, monkeypatch):
        monkeypatch.setenv(name, "  ")
        assert ids(checks.cli_is_signed_in(None)) == ["sessions_app.W002"]
        monkeypatch.setenv(name, "a key")
        assert not checks.cli_is_signed_in(None)

    def test_another_cloud_counts_when_the_cli_gets_to_see_it(self, settings, monkeypatch):
        monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
        assert checks.cli_is_signed_in(None)
        settings.CLAUDEOPS_PASS_ENV = ["CLAUDE_CODE_USE_BEDROCK"]
        assert not checks.cli_is_signed_in(None)

    def test_a_login_in_its_home_signs_in(self, tmp_path):
        (tmp_path / ".claude").mkdir()
        (tmp_path / ".claude" / ".credentials.json").write_text("{}")
        assert not checks.cli_is_signed_in(None)

    def test_on_macos_the_account_is_looked_for_where_it_is_written(self, tmp_path, monkeypatch):
        (tmp_path / ".claude.json").write_text('{"oauthAccount": {"emailAddress": "a@example.org"}}')
        assert checks.cli_is_signed_in(None)
        monkeypatch.setattr("platform.system", lambda: "Darwin")
        assert not checks.cli_is_signed_in(None)
        (tmp_path / ".claude.json").write_text("[]")
        assert checks.cli_is_signed_in(None)

    def test_a_home_that_is_not_set_is_said(self, settings):
        settings.CLAUDEOPS_CLAUDE_HOME = ""
        assert "its HOME, which is not set" in checks.cli_is_signed_in(None)[0].msg

    def test_a_demo_needs_none(self, settings):
        settings.CLAUDEOPS_DEMO = True
        assert not checks.cli_messages()

    def test_a_silenced_warning_is_silent(self, settings):
        settings.SILENCED_SYSTEM_CHECKS = ["sessions_app.W001", "sessions_app.W002"]
        assert not checks.cli_messages()

    def test_a_command_does_not_say_it_each_time(self):
        assert not [m for m in framework.run_checks() if m.id in ("sessions_app.W001", "sessions_app.W002")]
