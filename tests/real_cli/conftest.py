"""What the tests on the real Claude Code CLI share: the CLI, a Messages API, and an isolated installation for each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import urlopen

import pytest
from django.db import connections

from sessions_app import queue
from sessions_app.hooks import callers, last_heard_from
from sessions_app.models import Session, Trigger
from sessions_app.runner.process import find_by_session_id
from sessions_app.runner.run import run_session
from tests.real_cli.person import Person
from tests.support.factories import AgentFactory
from tests.support.messages_api import MessagesApi


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
    """An unused HOME for the CLI."""
    home = tmp_path / "home"
    home.mkdir()
    return home


@dataclass(frozen=True)
class Room:
    """An installation whose sessions run on the real CLI. A session's agent gets `prompt` and nothing else."""

    api: MessagesApi
    home: Path
    work: Path

    def queued(self, prompt: str = "", *, task: str = "", **profile: Any) -> Session:
        """A queued session of an agent of its own; `profile` are the agent's fields."""
        profile = {"structured_response": False, "allowed_tools": ["Bash(echo *)"], **profile}
        agent = AgentFactory(prompt_template=prompt, **profile)
        return queue.request_session(agent=agent, trigger=Trigger.MANUAL, by="operator", prompt_task=task)

    def run(self, prompt: str = "", **options: Any) -> Session:
        """Carry out such a session here, to its end."""
        return self.carry_out(self.queued(prompt, **options))

    def carry_out(self, session: Session) -> Session:
        assert run_session(session.pk) is not None
        session.refresh_from_db()
        return session

    def meanwhile(self, act: Callable[[], object]) -> Thread:
        """Call `act` in a thread with its own database connection while the session runs."""

        def acted() -> None:
            try:
                act()
            finally:
                connections.close_all()

        thread = Thread(target=acted, daemon=True)
        thread.start()
        return thread

    def signal_at_request(self, key: str, number: int, signum: int) -> Thread:
        """Send the CLI a signal as soon as its request `number` has come in."""

        def act() -> None:
            request = self.api.wait_for_request(key, number)
            process = find_by_session_id(request.cli_session_id)
            assert process is not None
            os.kill(process.pid, signum)

        return self.meanwhile(act)


@pytest.fixture
def room(
    transactional_db: None,
    settings: Any,
    tmp_path: Path,
    claude_bin: str,
    messages_api: MessagesApi,
    cli_home: Path,
) -> Room:
    """The installation of one test, with its own data folder, HOME of the CLI and API."""
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "data"
    settings.CLAUDEOPS_WORK_DIR = str(tmp_path / "work")
    settings.CLAUDEOPS_CLAUDE_BIN = claude_bin
    settings.CLAUDEOPS_CLAUDE_HOME = str(cli_home)
    settings.SESSION_STOP_GRACE = 5
    (tmp_path / "data").mkdir()
    (tmp_path / "work").mkdir()
    return Room(messages_api, cli_home, tmp_path / "work")


@pytest.fixture
def person(transactional_db, monkeypatch, claude_bin, cli_home, messages_api, tmp_path) -> Person:
    monkeypatch.setenv("HOME", str(cli_home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setattr(callers, "RATE", callers.Rate(callers.MOST_A_SECOND))
    monkeypatch.setattr(last_heard_from, "TALLY", last_heard_from.Tally())
    (tmp_path / "repository").mkdir()
    (cli_home / ".claude").mkdir()
    return Person(claude_bin, cli_home, tmp_path / "repository", messages_api)


@pytest.fixture
def door(live_server) -> Any:
    """The web server, after its first answer, for which it loads every page."""
    with urlopen(f"{live_server.url}/healthz") as response:
        assert response.status == 200
    return live_server
