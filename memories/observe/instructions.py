"""What the observer is told, and the message that holds a prepared transcript."""

from __future__ import annotations

from pathlib import Path

from memories.capture.text import fold
from memories.observe.categories import MEANINGS
from memories.observe.frame import framed

LONGEST_NAME = 80

INSTRUCTIONS = (
    Path(__file__)
    .with_name("instructions.md")
    .read_text(encoding="utf-8")
    .strip()
    .replace("{categories}", "\n".join(f"- jc:{slug}: {meaning}" for slug, meaning in MEANINGS.items()))
)


def message(prepared: str, *, project: str, agent: str) -> str:
    """Return what the observer is asked with: the names of project and agent (empty: none), and the transcript."""
    names = [f"{label}: {_name(name)}" for label, name in (("Project", project), ("Agent", agent)) if name]
    end = "Write the observations of this transcript in the form that you were given, and nothing else."
    return "\n".join([*names, "<transcript>", prepared, "</transcript>", end])


def _name(name: str) -> str:
    return framed(fold(name))[:LONGEST_NAME]
