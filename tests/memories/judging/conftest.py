"""A judge over HTTP that answers pair by pair, and pairs that wait for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from memories.lifecycle import disagreements
from memories.lifecycle.lock import writing
from memories.models import Disagreement
from tests.support.factories import MemoryFactory
from tests.support.models_http import chat, serving

MODEL = "small"


class FakeJudge:
    """Answers each pair by `says`, the relation by the text of the second note; `usual` for the others."""

    def __init__(self, served: Any) -> None:
        self.served = served
        self.says: dict[str, str] = {}
        self.usual = "distinct"
        self.answer: Callable[[list[dict[str, Any]]], str] | None = None
        served.answer = self._answer

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        pairs = json.loads(body["messages"][1]["content"])
        if self.answer is not None:
            return chat(self.answer(pairs))(body)
        verdicts = [
            {"pair": pair["pair"], "relation": self.says.get(pair["second"], self.usual), "reason": "As it says."}
            for pair in pairs
        ]
        usage = {"usage": {"prompt_tokens": 100 * len(pairs), "completion_tokens": 10 * len(pairs)}}
        return chat(json.dumps({"verdicts": verdicts}))(body) | usage

    @property
    def asked(self) -> list[list[dict[str, Any]]]:
        """The pairs of each call."""
        return [json.loads(body["messages"][1]["content"]) for body in self.served.asked]


@pytest.fixture
def judge(settings):
    with serving(chat("")) as served:
        settings.CLAUDEOPS_MODEL_URL = f"{served.url}/chat/completions"
        settings.CLAUDEOPS_MODEL_JUDGE = f"http:{MODEL}"
        yield FakeJudge(served)


def a_pair(
    kind: str = "duplicate", older: dict[str, Any] | None = None, newer: dict[str, Any] | None = None
) -> Disagreement:
    """A question about two memories that sessions said, as matching notes it."""
    number = Disagreement.objects.count()
    one = MemoryFactory(**{"source": "run", "observation": f"Purges media {number} after 90 days"} | (older or {}))
    other = MemoryFactory(**{"source": "run", "observation": f"Old media {number} goes in a quarter"} | (newer or {}))
    with writing():
        row = disagreements.note(one, other, kind, evidence={"why": "They may be one."})
    assert row is not None
    return row
