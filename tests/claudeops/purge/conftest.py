"""A data folder of its own for each test: what other tests left in theirs is no matter."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_data_folder(settings, tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    settings.CLAUDEOPS_DATA_DIR = folder
    settings.CLAUDEOPS_CLAUDE_HOME = str(tmp_path / "home")
    settings.CLAUDEOPS_WORK_DIR = str(folder / "work")
    return folder
