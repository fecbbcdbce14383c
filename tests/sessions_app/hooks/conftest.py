"""What the tests of the door share: calls as the CLI makes them, and a door that remembers nothing of other tests.

The home of the CLI is the test's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from memories.access import add_token
from sessions_app.hooks import callers, last_heard_from

Call = Callable[..., Any]


@pytest.fixture(autouse=True)
def fresh_door(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    monkeypatch.setattr(callers, "RATE", callers.Rate(callers.MOST_A_SECOND))
    monkeypatch.setattr(last_heard_from, "TALLY", last_heard_from.Tally())


@pytest.fixture
def secret(db: None) -> str:
    return add_token("laptop", ["hook"], by="anna")[1]


@pytest.fixture
def call(secret: str, client: Client) -> Call:
    """Post a hook as the CLI does; `body` replaces the JSON, `token` the secret, `headers` are further ones."""

    def posted(
        event: str = "PreToolUse",
        *,
        token: str = secret,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Any:
        given = {"session_id": "s-1", "hook_event_name": event, "cwd": "/srv/app", **fields}
        return client.post(
            f"/hooks/{event}",
            json.dumps(given).encode() if body is None else body,
            content_type="application/json",
            headers={"Authorization": f"Bearer {token}", **(headers or {})},
        )

    return posted
