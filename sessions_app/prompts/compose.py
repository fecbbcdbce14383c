"""Compose a session's prompt of its sections. `compose` is the door; pure: the same inputs give the same bytes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from claudeops.lib.secrets import mask
from sessions_app.prompts import sections
from sessions_app.prompts.sections import Inputs

SECTIONS = (
    ("Role", sections.role),
    ("Task", sections.task),
    ("Escalation Context", sections.escalation),
    ("Workspace", sections.workspace),
    ("Read First", sections.read_first),
    ("Curated Memory", sections.curated),
    ("Memories", sections.memories),
    ("Knowledge", sections.knowledge),
    ("Agent Memory", sections.agent_memory),
    ("Constraints", sections.constraints),
    ("Retry/Continue Digest", sections.digest),
    ("Output Format", sections.output_format),
)


@dataclass(frozen=True, slots=True)
class Composed:
    """A prompt with its credentials masked, the SHA-256 of it in UTF-8, and its sections as (title, text)."""

    text: str
    sha256: str
    sections: tuple[tuple[str, str], ...]


def compose(inputs: Inputs) -> Composed:
    blocks = (_headed(title, section(inputs).strip()) for title, section in SECTIONS)
    parts = tuple((title, mask(text)) for title, text in blocks if text)
    # Once more as a whole, as the row is stored: what was kept is what was sent.
    text = mask("\n\n".join(f"## {title}\n\n{text}" for title, text in parts) + "\n")
    return Composed(text, hashlib.sha256(text.encode()).hexdigest(), parts)


def _headed(title: str, text: str) -> tuple[str, str]:
    """Return (heading, text) of a section, whose text may bring a heading of its own: its title with what it counts."""
    if not text.startswith(f"## {title} ("):
        return title, text
    heading, _, rest = text.partition("\n")
    return heading.removeprefix("## "), rest.strip()
