"""What the tests of model calls share: a role whose answers are files."""

from __future__ import annotations

from pathlib import Path

import pytest

from claudeops.lib.secrets import mask
from memories.llm.calls import hash_of


class Recordings:
    """A folder of recorded answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def say(self, role: str, instructions: str, text: str, answer: str) -> None:
        path = self.folder / role / f"{hash_of(mask(instructions), mask(text))}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(answer.encode())


@pytest.fixture
def recordings(settings, tmp_path):
    """The observer and the classifier answer from files."""
    folder = tmp_path / "recordings"
    folder.mkdir()
    settings.CLAUDEOPS_MODEL_RECORDINGS = str(folder)
    settings.CLAUDEOPS_MODEL_OBSERVER = "recorded:haiku"
    settings.CLAUDEOPS_MODEL_CLASSIFIER = "recorded:haiku"
    return Recordings(folder)
