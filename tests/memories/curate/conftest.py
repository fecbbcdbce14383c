"""Repositories of a test's own, and a model for tier 2 of the triage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.memories.curate import repositories
from tests.memories.curate.triaging import MODEL, FakeTriage, a_file
from tests.support.models_http import chat, serving


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


@pytest.fixture
def triager(settings):
    with serving(chat("")) as served:
        settings.CLAUDEOPS_MODEL_URL = f"{served.url}/chat/completions"
        settings.CLAUDEOPS_MODEL_TRIAGE = f"http:{MODEL}"
        yield FakeTriage(served)


@pytest.fixture
def file(db):
    return a_file()
