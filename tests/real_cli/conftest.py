"""What the tests on the real Claude Code CLI share: the CLI itself, a Messages API, a world of its own for each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.messages_api import MessagesApi


@pytest.fixture
def claude_bin() -> str:
    """The CLI: CLAUDE_BIN, or claude on the PATH; without it the test is skipped."""
    wanted = os.environ.get("CLAUDE_BIN") or "claude"
    found = shutil.which(wanted)
    if found is None:
        pytest.skip(f"needs the Claude Code CLI: {wanted} is not there (set CLAUDE_BIN, or put claude on the PATH)")
    return found


@pytest.fixture
def messages_api(monkeypatch: pytest.MonkeyPatch) -> Iterator[MessagesApi]:
    """A Messages API that the CLI of this test talks to; a request that no script foresaw fails the test."""
    for name in [name for name in os.environ if name.startswith(("ANTHROPIC_", "CLAUDE_CODE_"))]:
        monkeypatch.delenv(name)  # an operator's own login must never be used by a test
    with MessagesApi() as api:
        for name, value in api.environment.items():
            monkeypatch.setenv(name, value)
        yield api
    assert not api.surprises, api.surprises


@pytest.fixture
def cli_home(tmp_path: Path) -> Path:
    """A HOME of the CLI that nobody has used."""
    home = tmp_path / "home"
    home.mkdir()
    return home
