"""What a person can get wrong: `memories/checks.py`."""

from __future__ import annotations

import sqlite3

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from memories.checks import FTS5_MISSING, check_full_text_search, has_fts5


class WithoutFts5:
    """An SQLite that was built without FTS5."""

    def __init__(self, path):
        self.closed = False

    def execute(self, sql):
        raise sqlite3.OperationalError("no such module: fts5")

    def close(self):
        self.closed = True


def test_this_python_has_full_text_search():
    assert has_fts5()
    assert check_full_text_search(None) == []


def test_an_sqlite_without_it_is_noticed():
    assert not has_fts5(WithoutFts5)


def test_the_warning_says_what_to_do():
    assert FTS5_MISSING.id == "memories.W001"
    assert "FTS5" in FTS5_MISSING.msg
    assert "DATABASE_URL" in FTS5_MISSING.hint


@pytest.mark.filterwarnings("ignore:Overriding setting DATABASES")
def test_postgresql_needs_none():
    with override_settings(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql"}}):
        assert check_full_text_search(None) == []


def test_the_check_runs_with_the_others():
    assert [found for found in run_checks(tags=["memories"]) if found.id.startswith("memories.E")] == []
