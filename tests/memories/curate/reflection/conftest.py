"""A reflector over HTTP that says what a test wants, and observations for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from memories.models import Memory, Trust
from tests.support.factories import MemoryFactory
from tests.support.models_http import chat, serving

AT = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
Message = dict[str, Any]


def proposal(
    kind: str = "add", change: str = "", evidence: str = "1", *, section: str = "operations", entry: str = ""
) -> str:
    named = f"<entry>{entry}</entry>" if entry else ""
    return (
        f"<proposal><kind>{kind}</kind>{named}<section>{section}</section><change>{change}</change>"
        f"<evidence>{evidence}</evidence></proposal>"
    )


class FakeReflector:
    """Answers with `proposals`, or with what `answer` makes of the message. `asked` are its messages."""

    def __init__(self, served: Any) -> None:
        self.served = served
        self.proposals: list[str] = []
        self.answer: Callable[[Message], str] | None = None
        served.answer = self._answer

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        asked = json.loads(body["messages"][1]["content"])
        said = self.answer(asked) if self.answer else f"<proposals>{''.join(self.proposals)}</proposals>"
        return chat(said)(body)

    @property
    def asked(self) -> list[Message]:
        return [json.loads(body["messages"][1]["content"]) for body in self.served.asked]

    @property
    def environment(self) -> dict[str, str]:
        """For another process."""
        return {
            "CLAUDEOPS_MODEL_URL": f"{self.served.url}/chat/completions",
            "CLAUDEOPS_MODEL_REFLECTOR": "http:large",
        }


@pytest.fixture
def reflector(settings):
    with serving(chat("")) as served:
        settings.CLAUDEOPS_MODEL_URL = f"{served.url}/chat/completions"
        settings.CLAUDEOPS_MODEL_REFLECTOR = "http:large"
        yield FakeReflector(served)


def observed(text: str, **values: Any) -> Memory:
    """An observation of a session that no outside text had reached."""
    at = values.pop("at", AT)
    return MemoryFactory(
        **{
            "taxonomy": "knowledge",
            "category": "operations",
            "service": None,
            "observation": text,
            "confidence": 0.9,
            "trust": Trust.SESSION,
            "created_at": at,
            "updated_at": at,
        }
        | values
    )
