"""A house for each test of backups."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.claudeops.backups.house import fill, need_programs, own_house


@pytest.fixture
def data(tmp_path, settings, monkeypatch, transactional_db):
    """The data folder of a house of the test's own. Its database is a copy: the suite's stays as it is."""
    settings.CLAUDEOPS_HOST = "nuc-1"
    settings.CLAUDEOPS_BACKUP_DIR = None
    need_programs(monkeypatch)
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "data"
    with own_house(tmp_path) as folder:
        yield folder


@pytest.fixture
def log(data) -> Path:
    """The raw log of a house with something in it."""
    return fill(data)
