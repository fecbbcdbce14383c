"""What the tests of the whole way share: observations, a reflector and a triage that answer from files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from django.utils import timezone

from memories.curate.reflection.message import INSTRUCTIONS
from memories.curate.reflection.runs import preview
from memories.models import Memory, Trust
from tests.memories.llm.conftest import Recordings
from tests.support.factories import MemoryFactory

LOCK = "The restic prune of `media` holds its lock until 06:10"
BACKUP = "The nightly backup of the photos takes about two hours"
CLEAN = "The nightly backup of the photos takes two hours"
OUTSIDE = "Snapshots older than a week are deleted by the storage box itself"

PROPOSALS = f"""<proposals>
<proposal><kind>add</kind><section>operations</section><change>{LOCK}</change><evidence>{{lock}}</evidence></proposal>
<proposal><kind>add</kind><section>operations</section><change>{BACKUP}</change><evidence>{{backup}}</evidence></proposal>
<proposal><kind>add</kind><section>system-architecture</section><change>{OUTSIDE}</change>\
<evidence>{{outside}}</evidence></proposal>
</proposals>"""


class World:
    """The data folder, the recorded answers, and what git says of the repository."""

    def __init__(self, folder: Path, recordings: Recordings) -> None:
        self.folder, self.recordings = folder, recordings

    def observe(self) -> tuple[Memory, Memory, Memory]:
        """Store the three observations that the reflector makes proposals of."""
        now = timezone.now()
        known = {"taxonomy": "knowledge", "category": "operations", "service": None}
        lock = MemoryFactory(observation=LOCK, confidence=0.9, **known)
        backup = MemoryFactory(observation=BACKUP, confidence=0.85, **known)
        outside = MemoryFactory(
            observation=OUTSIDE, confidence=0.9, trust=Trust.EXTERNAL, exposure="outside", confirmed_at=now, **known
        )
        return lock, backup, outside

    def answer(self) -> None:
        """Record what the reflector and the triage say."""
        _, columns = preview(None)
        shown = [one["text"] for one in json.loads(columns["text"])["observations"]]
        places = {"lock": LOCK, "backup": BACKUP, "outside": OUTSIDE}
        answer = PROPOSALS.format(**{name: shown.index(text) + 1 for name, text in places.items()})
        self.recordings.say("reflector", INSTRUCTIONS, columns["text"], answer)
        folder = self.recordings.folder / "triage"
        folder.mkdir(exist_ok=True)
        verdicts = [
            {"proposal": 1, "verdict": "promote", "text": CLEAN, "reason": "It is a lasting fact."},
            {"proposal": 2, "verdict": "promote", "text": OUTSIDE, "reason": "It is a lasting fact, too."},
        ]
        (folder / "otherwise.txt").write_text(json.dumps({"decisions": verdicts}))

    @property
    def file(self) -> Path:
        return self.folder / "memory" / "MEMORY.md"

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-c", f"safe.directory={self.file.parent}", *arguments],
            cwd=self.file.parent,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


@pytest.fixture
def world(settings, tmp_path) -> World:
    folder = tmp_path / "data"
    recorded = tmp_path / "recordings"
    recorded.mkdir()
    settings.CLAUDEOPS_DATA_DIR = folder
    settings.CLAUDEOPS_MODEL_RECORDINGS = str(recorded)
    settings.CLAUDEOPS_MODEL_REFLECTOR = "recorded:sonnet"
    settings.CLAUDEOPS_MODEL_TRIAGE = "recorded:haiku"
    return World(folder, Recordings(recorded))
