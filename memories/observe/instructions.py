"""What the observer is told, and the message that holds a prepared transcript.

The keys of the tables of words are in lower case with dashes, without "and" and without the prefix `jc:`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from memories.capture.text import fold
from memories.models import FactKind, Priority
from memories.observe.categories import MEANINGS
from memories.taxonomy import KNOWLEDGE

GATE_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("allow", "allowed", "accept", "keep", "yes", "store", "save", "write", "pass", "true"), "allow"),
    **dict.fromkeys(("hold", "held", "review", "maybe", "pending", "unsure", "uncertain", "quarantine"), "hold"),
    **dict.fromkeys(("discard", "discarded", "drop", "reject", "no", "skip", "ignore", "deny", "false"), "discard"),
}

PRIORITY_SIGNS: Mapping[str, str] = {
    **dict.fromkeys(("🔴", "🟥", "❗", "‼", "⛔", "🚨", ":red_circle:", ":red_square:"), "red"),
    **dict.fromkeys(("🟡", "🟨", "🟠", "🟧", "⚠", ":yellow_circle:", ":large_yellow_circle:"), "yellow"),
    **dict.fromkeys(("🟢", "🟩", "🔵", "⚪", ":green_circle:", ":large_green_circle:"), "green"),
}

PRIORITY_WORDS: Mapping[str, Priority] = {
    **dict.fromkeys(
        ("red", "high", "critical", "must", "hard", "p1", "1", "important", "top", "red-must"), Priority.RED
    ),
    **dict.fromkeys(("yellow", "medium", "mid", "moderate", "normal", "p2", "2"), Priority.YELLOW),
    **dict.fromkeys(("green", "low", "minor", "info", "p3", "3"), Priority.GREEN),
}

KIND_WORDS: Mapping[str, FactKind] = {
    **dict.fromkeys(("correction", "corrected", "fix"), FactKind.CORRECTION),
    **dict.fromkeys(("constraint", "limit", "limitation", "rule"), FactKind.CONSTRAINT),
    **dict.fromkeys(("requirement", "hard-requirement", "required", "must"), FactKind.REQUIREMENT),
    **dict.fromkeys(("pattern", "recurring-pattern", "recurring", "habit"), FactKind.PATTERN),
    **dict.fromkeys(("note", "minor-note", "minor", "fact", "info"), FactKind.NOTE),
}

CATEGORY_WORDS: Mapping[str, str] = {
    **{slug: slug for slug in KNOWLEDGE.categories},
    **dict.fromkeys(("preference", "user-preferences", "user-preference", "style"), "preferences"),
    **dict.fromkeys(("rules", "rule", "conventions", "convention", "conventions-rules"), "rules-conventions"),
    **dict.fromkeys(("architecture", "system", "design", "infrastructure"), "system-architecture"),
    **dict.fromkeys(("operation", "ops", "operational", "runbook"), "operations"),
    **dict.fromkeys(("memory", "memories", "memory-systems"), "memory-system"),
    **dict.fromkeys(("project", "roadmap"), "projects"),
    **dict.fromkeys(("people", "relationships", "person", "team", "people-relationship"), "people-relationships"),
}


TAG = re.compile(
    r"(?:[<＜﹤‹〈]|&lt;|&#60;|&#x3c;)(?=\s{0,3}[/／]?\s{0,3}(?:transcript|observations?|segment|narrative|facts?|instructions?|system|human|assistant|user)\b)",
    re.IGNORECASE,
)
LABEL = re.compile(r"\[(?=\s{0,3}\d{1,9}\s{1,3}(?:user|agent|call|result)\s{0,3}\])", re.IGNORECASE)


def framed(text: str) -> str:
    """Take the opening bracket from tags of the prompt and the answer (`‹`), and from labels of turns (`(`)."""
    return LABEL.sub("(", TAG.sub("‹", text))


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
