"""Repositories of a test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.memories.curate import repositories


@pytest.fixture
def data(settings, tmp_path) -> Path:
    """The repository of our own, in a data folder of the test's."""
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "data"
    return tmp_path / "data" / "memory"


@pytest.fixture
def theirs(settings, data, tmp_path) -> Path:
    """The folder of a person's repository that has the global MEMORY.md."""
    path = repositories.make(tmp_path / "notes", "# Memory\n\n## Operations\n\n- (2026-10-01) Caddy binds 10.8.0.1\n")
    settings.CLAUDEOPS_MEMORY_FILE = str(path)
    return path.parent
