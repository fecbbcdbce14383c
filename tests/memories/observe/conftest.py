"""What the tests of the observer share: a transcript of a few turns, and what the observer says about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from memories.capture.support import Evidence
from memories.models import Transcript, TranscriptPart
from memories.observe import pipeline
from memories.observe.instructions import INSTRUCTIONS, message
from memories.observe.pipeline import add_part
from memories.observe.prepare import prepare
from memories.observe.turns import PartTurns, Turn, TurnKind, without_private
from tests.memories.llm.conftest import Recordings, recordings  # noqa: F401  # a fixture
from tests.support.factories import ProjectFactory, TranscriptFactory

HOST = "here"
AT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
ASKED = "Please move the backup of the photos. Remember: the photos volume must be unmounted before a snapshot."


def answer(*facts: str, narrative: str = "The backup was moved.") -> str:
    lines = "\n".join(f"- {fact}" for fact in facts)
    return (
        f"<observations><segment><narrative>{narrative}</narrative><facts>\n{lines}\n</facts></segment></observations>"
    )


FACT = (
    "🔴 [gate=allow confidence=0.92 category=jc:operations] The photos volume is unmounted before a snapshot is taken"
)


def turns(*said: tuple[TurnKind, str], first: int = 1, **given: object) -> PartTurns:
    """Turns that were proved: a person's have a receipt, and results are outputs of the house."""
    made = [
        Turn(number, kind, text, start=(number - 1) * 100, end=number * 100, at=AT)
        for number, (kind, text) in enumerate(said, first)
    ]
    evidence = Evidence()
    for turn in made:
        (text,) = without_private([turn]).texts
        if turn.kind is TurnKind.USER:
            evidence.person(turn.number, text)
        elif turn.kind is TurnKind.AGENT:
            evidence.agent(turn.number, text)
        elif turn.kind is TurnKind.CALL:
            evidence.call("", text)
        elif turn.kind is TurnKind.RESULT:
            evidence.house(turn.number, text)
    return PartTurns(tuple(made), **{"exposure": "nothing", "evidence": evidence, **given})  # type: ignore[arg-type]


@dataclass
class World:
    """A transcript whose parts are read from here instead of from a file."""

    transcript: Transcript
    recordings: Recordings
    parts: dict[int, PartTurns] = field(default_factory=dict)
    reads: int = 0

    def add(self, given: PartTurns, said: str | None) -> TranscriptPart:
        """Add a part of these turns, about which the observer says `said` (None: it never answers)."""
        number = len(self.parts) + 1
        part = add_part(self.transcript, number, (number - 1) * 1000, number * 1000, at=AT)
        self.parts[part.pk] = given
        if said is not None:
            self.says(given, said)
        return part

    def says(self, given: PartTurns, said: str) -> None:
        project = self.transcript.project
        text = message(prepare(given).text, project=project.name if project else "", agent=self.transcript.agent or "")
        self.recordings.say("observer", INSTRUCTIONS, text, said)

    def read(self, part: TranscriptPart) -> PartTurns:
        self.reads += 1
        return self.parts[part.pk]

    def drain(self, **given: object) -> pipeline.Drained:
        with pipeline.draining(HOST) as mine:
            assert mine
            return pipeline.drain(HOST, self.read, repeats, **given)  # type: ignore[arg-type]


def repeats(text: str, texts: Sequence[tuple[str, str]]) -> str:
    """Words that stand in a text as they are."""
    return next((f"repeats what {source} said" for source, read in texts if text in read), "")


@pytest.fixture
def world(db, recordings) -> World:  # noqa: F811
    return World(TranscriptFactory(host=HOST, last_at=AT, project=ProjectFactory()), recordings)
