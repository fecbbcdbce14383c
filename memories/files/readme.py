"""The README of the folder of agent files: purpose, format, life cycle, limits, for whoever finds the folder. Pure."""

from __future__ import annotations

from pathlib import Path

from memories.files.document import one_line
from memories.files.limits import Limits
from memories.files.sections import SectionSet

NAME = "README.md"


def readme(project: str, sections: SectionSet, limits: Limits) -> str:
    """Return the text for a project of this name, with its required sections and limits."""
    text = Path(__file__).with_name("readme.md").read_text(encoding="utf-8")
    values = limits.as_dict() | {"required": ", ".join(sections.required), "project": one_line(project)}
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text
