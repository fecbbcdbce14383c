"""The words that the observer may use for a gate, a priority, a kind and a category, and those that models use instead.

Keys are in lower case with dashes, without "and" and without the prefix `jc:`.
"""

from __future__ import annotations

from collections.abc import Mapping

from memories.models import FactKind, Priority
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
