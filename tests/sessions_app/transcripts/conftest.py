"""What the tests of transcripts share: observation is on, and the home of the CLI is the test's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.memories.llm.conftest import recordings  # noqa: F401  # a fixture


@pytest.fixture(autouse=True)
def observing(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CLAUDEOPS_OBSERVE = True
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
