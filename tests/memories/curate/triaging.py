"""What the tests of triage share: a model over HTTP that answers proposal by proposal, and a file with entries."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from memories.models import MemoryFile, MemoryFileCommit, Proposal, Tier, Trust
from tests.support.factories import MemoryFactory, MemoryFileFactory, ProposalEvidenceFactory, ProposalFactory
from tests.support.models_http import chat

MODEL = "small"
ENTRY = "The nightly dump of `shop` is kept for 14 days."
THEIRS = "The printer of the office is on VLAN 30."
TEXT = f"# Memory\n\n## Operations\n\n- (2026-11-01) {ENTRY}\n- (2026-11-02) {THEIRS}\n"
FACT = "The restic prune of `media` holds its lock until 06:10."


class FakeTriage:
    """Answers each proposal by `says`: (verdict, text), by the proposal's text or target; `usual` for the others."""

    def __init__(self, served: Any) -> None:
        self.served = served
        self.says: dict[str, tuple[str, str]] = {}
        self.usual = ("review", "")
        self.answer: Callable[[list[dict[str, Any]]], str] | None = None
        served.answer = self._answer

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        asked = self._read(body)
        if self.answer is not None:
            return chat(self.answer(asked))(body)
        decisions = []
        for one in asked:
            verdict, text = self.says.get(one.get("text") or one["entry"], self.usual)
            decisions.append(
                {"proposal": one["proposal"], "verdict": verdict, "text": text, "reason": "As the model sees it."}
            )
        return chat(json.dumps({"decisions": decisions}))(body)

    @staticmethod
    def _read(body: dict[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(body["messages"][1]["content"])["proposals"]
        return found

    @property
    def asked(self) -> list[list[dict[str, Any]]]:
        """The proposals of each call."""
        return [self._read(body) for body in self.served.asked]

    @property
    def setup(self) -> dict[str, str]:
        """The environment of another process that asks it."""
        return {
            "CLAUDEOPS_MODEL_URL": f"{self.served.url}/chat/completions",
            "CLAUDEOPS_MODEL_TRIAGE": f"http:{MODEL}",
        }


def a_file() -> MemoryFile:
    """A file with an entry of ours and one that a person wrote."""
    file = MemoryFileFactory(text=TEXT)
    ours = MemoryFileCommit.objects.create(
        file=file, sha="a" * 40, at=file.created_at, kind="promotion", author="claudeops", is_ours=True
    )
    theirs = MemoryFileCommit.objects.create(file=file, sha="b" * 40, at=file.created_at, kind="edit", author="Ann")
    file.blame = [ours.pk] * 5 + [theirs.pk]
    file.entries = 2
    file.save()
    return file


def a_proposal(file: MemoryFile, text: str = FACT, **given: Any) -> Proposal:
    """A sure addition that a session of our own vouches for."""
    usual = {"file": file, "text": text, "trust": Trust.SESSION, "confidence": 0.9, "tier": Tier.RULES}
    row: Proposal = ProposalFactory(**usual | given)
    memory = MemoryFactory(observation=text or row.target, taxonomy="knowledge", category="operations")
    ProposalEvidenceFactory(proposal=row, memory=memory, trust=row.trust)
    return row
