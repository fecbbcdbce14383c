"""The system checks of the project: each wrong thing is named with its id and a hint, a right one is silent."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.core import checks as framework

from claudeops import checks
from claudeops.env import BASE_DIR
from claudeops.features.backups.folder import unfinished_file


def ids(messages) -> list[str]:
    assert all(message.hint for message in messages)
    return [message.id for message in messages]


def test_the_settings_as_they_are_pass():
    assert not framework.run_checks(tags=["claudeops"])


class TestTheDataFolder:
    def test_one_that_can_be_written_passes_and_nothing_is_left_in_it(self, settings, tmp_path):
        settings.CLAUDEOPS_DATA_DIR = tmp_path
        assert not checks.data_folder_is_writable(None)
        assert not list(tmp_path.iterdir())

    def test_one_that_can_be_made_passes_and_is_not_made(self, settings, tmp_path):
        settings.CLAUDEOPS_DATA_DIR = tmp_path / "a" / "b"
        assert not checks.data_folder_is_writable(None)
        assert not list(tmp_path.iterdir())

    def test_one_below_a_file_is_an_error(self, settings, tmp_path):
        (tmp_path / "file").write_text("")
        settings.CLAUDEOPS_DATA_DIR = tmp_path / "file" / "data"
        messages = checks.data_folder_is_writable(None)
        assert ids(messages) == ["claudeops.E001"]
        assert "cannot be written: Not a directory." in messages[0].msg

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_one_that_is_read_only_is_an_error(self, settings, tmp_path):
        tmp_path.chmod(0o500)
        settings.CLAUDEOPS_DATA_DIR = tmp_path
        assert ids(checks.data_folder_is_writable(None)) == ["claudeops.E001"]


def test_a_restore_that_was_interrupted_is_an_error(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    assert not checks.no_restore_is_unfinished(None)
    unfinished_file().touch()
    assert ids(checks.no_restore_is_unfinished(None)) == ["claudeops.E003"]


class TestTheDatabase:
    @pytest.fixture
    def database(self, settings, monkeypatch):
        """Set keys of the default database's settings, for this test."""

        def change(**values):
            for key, value in values.items():
                monkeypatch.setitem(settings.DATABASES["default"], key, value)

        return change

    @pytest.mark.parametrize("options", [{"transaction_mode": "DEFERRED"}, {}])
    def test_sqlite_that_does_not_begin_with_immediate_is_an_error(self, database, options):
        database(ENGINE="django.db.backends.sqlite3", OPTIONS=options)
        assert ids(checks.sqlite_transactions_are_immediate(None)) == ["claudeops.E002"]

    def test_sqlite_with_immediate_passes(self, database):
        database(ENGINE="django.db.backends.sqlite3", OPTIONS={"transaction_mode": "immediate"})
        assert not checks.sqlite_transactions_are_immediate(None)

    def test_postgresql_passes(self, database):
        database(ENGINE="django.db.backends.postgresql", OPTIONS={})
        assert not checks.sqlite_transactions_are_immediate(None)


class TestVariables:
    def test_a_misspelt_one_is_a_warning_that_knows_what_was_meant(self, monkeypatch):
        monkeypatch.setenv("CLAUDEOPS_MEMORY_BUGDET", "4000")
        messages = checks.variables_are_known(None)
        assert ids(messages) == ["claudeops.W001"]
        assert messages[0].hint == "Did you mean CLAUDEOPS_MEMORY_BUDGET?"

    def test_one_that_resembles_nothing_points_to_the_table(self, monkeypatch):
        monkeypatch.setenv("CLAUDEOPS_XYZZY_PLUGH_FROBNICATE_QUUX", "1")
        assert "docs/settings.md" in checks.variables_are_known(None)[0].hint

    def test_a_known_one_and_its_file_pass(self, monkeypatch):
        monkeypatch.setenv("CLAUDEOPS_HOST", "here")
        monkeypatch.setenv("CLAUDEOPS_CLAUDE_HOME_FILE", "/run/secrets/home")
        assert not checks.variables_are_known(None)


@pytest.mark.processes
def test_production_passes_every_deployment_check_without_a_cli(tmp_path):
    """As `.ci/run` asks: no warning at all with https, without DEBUG, on a host that has no CLI and no login."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    run = subprocess.run(
        [sys.executable, str(BASE_DIR / "manage.py"), "check", "--deploy", "--fail-level", "WARNING"],
        env={
            **kept,
            "CLAUDEOPS_DATA_DIR": str(tmp_path),
            "ALLOWED_HOSTS": "ops.example.org",
            "CLAUDE_BIN": "claude-that-is-not-there",
            "HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "no issues" in run.stdout


def test_a_trusted_proxy_without_the_clients_addresses_is_a_warning(settings):
    settings.CLAUDEOPS_TRUST_PROXY = True
    assert ids(checks.clients_have_addresses(None)) == ["claudeops.W002"]
    settings.CLAUDEOPS_TRUSTED_PROXIES = 1
    assert not checks.clients_have_addresses(None)
