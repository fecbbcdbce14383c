"""A vault of the test's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def vault(settings, tmp_path) -> Path:
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "data"
    settings.CLAUDEOPS_DATA_DIR.mkdir()
    return tmp_path / "data" / "vault"


def lines_of(vault: Path, month: str = "2026-11") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (vault / "journal" / f"{month}.jsonl").read_text().splitlines()]
