"""Answer from files instead of a model, for tests and the demo.

FOLDER/ROLE/HASH.txt holds what the model said to the prompt with this hash. FOLDER/ROLE/about-NAME.txt holds in its
first line what a prompt has to contain, below it the answer; ROLE/otherwise.txt is the answer to all other prompts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memories.llm.backends.base import Failure, Reply, Request


@dataclass(frozen=True, slots=True)
class RecordedBackend:
    """`folder` holds a folder for each role."""

    folder: Path

    def trouble(self) -> str:
        if not self.folder.name:
            return "no folder of recorded answers is set (CLAUDEOPS_MODEL_RECORDINGS)"
        return "" if self.folder.is_dir() else f"there is no folder {self.folder}"

    def send(self, request: Request) -> Reply:
        path = self.path(request.role, request.prompt_hash)
        try:
            text = self._about(request)
            if text is None:
                text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            raise Failure(f"no recorded answer: {request.role}/{path.name}") from None
        return Reply(text, model="recorded", cost_usd=0.0)

    def path(self, role: str, prompt_hash: str) -> Path:
        return self.folder / role / f"{prompt_hash}.txt"

    def _about(self, request: Request) -> str | None:
        """Return the answer that does not depend on the whole prompt; None where the prompt has one of its own."""
        if self.path(request.role, request.prompt_hash).is_file():
            return None
        folder = self.folder / request.role
        for path in sorted(folder.glob("about-*.txt")):
            phrase, _, answer = path.read_text(encoding="utf-8").partition("\n")
            if phrase.strip() and phrase.strip() in request.text:
                return answer
        otherwise = folder / "otherwise.txt"
        return otherwise.read_text(encoding="utf-8") if otherwise.is_file() else None
