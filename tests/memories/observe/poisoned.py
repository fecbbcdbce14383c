"""The cases of `poisoned.toml`: what was read, what a fooled observer answers, and the transcript that holds both."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memories.capture.statement import Statement
from memories.observe.turns import PartTurns, Turn, TurnKind

BEGAN = datetime(2026, 6, 1, 12, tzinfo=UTC)
HONEST = Path(__file__).with_name("honest_facts.txt").read_text(encoding="utf-8").splitlines()
"""Sixty facts as an observer would distil them, one a line."""


@dataclass(frozen=True, slots=True)
class Case:
    """One poisoned transcript: a person asks, the agent calls `tool` with `input`, reads `read`, and answers."""

    name: str
    user: str
    tool: str
    input: str
    read: str
    says: str
    fact: str

    @property
    def answer(self) -> str:
        """What the observer answers, who was fooled."""
        return (
            "<observations><segment><narrative>The agent answered a question.</narrative><facts>\n"
            f"- 🔴 [gate=allow confidence=0.99 category=jc:operations] {self.fact}\n"
            "</facts></segment></observations>"
        )

    @property
    def statement(self) -> Statement:
        return Statement("operations", self.fact, None, "knowledge")

    @property
    def turns(self) -> PartTurns:
        texts = (
            (TurnKind.USER, self.user, "", ""),
            (TurnKind.CALL, self.input, self.tool, ""),
            (TurnKind.RESULT, self.read, self.tool, f"{self.tool}: {self.input}"[:80]),
            (TurnKind.AGENT, "I looked at it. Nothing needs to be done.", "", ""),
        )
        turns = tuple(
            Turn(
                number,
                kind,
                text,
                at=BEGAN + timedelta(minutes=number),
                name=name,
                source=source,
                is_outside=bool(source),
            )
            for number, (kind, text, name, source) in enumerate(texts, start=1)
        )
        return PartTurns(turns, exposure="outside", sources=(turns[2].source,))

    def transcript(self, session: str, folder: str) -> str:
        """The lines of a transcript of Claude Code, of the session with this id in this folder."""
        field = {"Bash": "command", "WebFetch": "url"}.get(self.tool, "query")
        contents: list[tuple[str, object]] = [
            ("user", self.user),
            ("assistant", [{"type": "tool_use", "id": "toolu_1", "name": self.tool, "input": {field: self.input}}]),
            ("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": self.read}]),
            ("assistant", [{"type": "text", "text": "I looked at it. Nothing needs to be done."}]),
        ]
        lines = [
            {
                "type": role,
                "message": {"role": role, "content": content},
                "uuid": f"{session}-{number}",
                "parentUuid": f"{session}-{number - 1}" if number > 1 else None,
                "timestamp": (BEGAN + timedelta(minutes=number)).isoformat().replace("+00:00", "Z"),
                "sessionId": session,
                "cwd": folder,
                "isSidechain": False,
            }
            for number, (role, content) in enumerate(contents, start=1)
        ]
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def cases() -> list[Case]:
    found = tomllib.loads(Path(__file__).with_name("poisoned.toml").read_text(encoding="utf-8"))
    return [Case(**one) for one in found["case"]]
