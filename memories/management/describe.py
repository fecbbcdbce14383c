"""Format memories for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils import timezone

from claudeops.lib.cli import table
from claudeops.lib.humanize import ago, exact
from memories.injection.budget import shown
from memories.injection.windows import Windowed, windowed
from memories.models import Memory, MemoryChange


def state(memory: Memory) -> str:
    """Describe the state in a few words: active, held, or why it is inactive."""
    if memory.verdict != "allow":
        return "held"
    if memory.active:
        return "unconfirmed" if memory.unconfirmed else "active"
    return f"inactive ({memory.inactive_reason})" if memory.inactive_reason else "inactive"


def as_table(memories: Iterable[Memory]) -> str:
    now = timezone.now()
    rows = [
        (
            memory.pk,
            shown(memory.confidence),
            state(memory),
            memory.category,
            memory.scope_label,
            ago(memory.updated_at, now),
            memory.observation if len(memory.observation) <= 70 else memory.observation[:69] + "…",
        )
        for memory in memories
    ]
    return table(["id", "conf", "state", "category", "service", "confirmed", "observation"], rows)


def surfacing_table(found: Iterable[Windowed]) -> str:
    """Format the memories with a window, the next first; times are UTC. Empty for none."""
    rows = [
        (
            one.memory.pk,
            "told now" if one.is_open else "",
            *(exact(time) for time in one.opening or ()),
            one.memory.surface,
            one.memory.observation if len(one.memory.observation) <= 70 else one.memory.observation[:69] + "…",
        )
        for one in found
    ]
    return table(["id", "", "from", "until", "window", "observation"], rows) if rows else ""


def as_text(memory: Memory, changes: Iterable[MemoryChange]) -> str:
    facts = [
        ("memory", f"{memory.pk} ({memory.uuid})"),
        ("state", state(memory) + (f": {reason}" if (reason := memory.verdict_reason or memory.provisional) else "")),
        ("trusted", f"since {exact(memory.confirmed_at)}" if memory.confirmed_at else ""),
        ("scope", f"{memory.taxonomy}, {memory.category}, {memory.scope_label}"),
        ("project", memory.project.slug if memory.project else ""),
        ("confidence", shown(memory.confidence) + (", persistent" if memory.persistent else "")),
        ("confirmed", exact(memory.updated_at)),
        ("created", exact(memory.created_at)),
        (
            "by",
            f"session {memory.session_id}, tier {memory.tier}" if memory.session_id else memory.get_source_display(),
        ),
        ("read before", memory.read_before),
        ("trust", memory.get_trust_display()),
        ("tags", ", ".join(memory.tags)),
        ("expires", exact(memory.expires_at) if memory.expires_at else ""),
        ("told", windowed(memory, timezone.now()).reason if memory.surface else ""),
        ("merged into", f"memory {memory.superseded_by_id}" if memory.superseded_by_id else ""),
        ("merged", f"{memory.merged_count} into it" if memory.merged_count else ""),
    ]
    lines = [memory.observation, ""]
    lines += [f"{name + ':':<13}{value}" for name, value in facts if value]
    lines += ["", "history:"]
    lines += [change_line(change) for change in changes]
    return "\n".join(lines)


def change_line(change: MemoryChange) -> str:
    """`2026-11-21 23:08:00 UTC  reinforced  confidence 0.7 → 0.8  (agent:watcher: Said again …)`."""
    moved = []
    for name, after in change.after.items():
        if name in change.before and name not in ("updated_at", "decayed_until", "inactive_reason"):
            moved.append(f"{name} {_short(change.before[name])} → {_short(after)}")
    parts = [exact(change.at), change.label, "; ".join(moved)]
    told = ": ".join(part for part in (change.actor, change.reason) if part)
    return "  ".join([part for part in parts if part] + ([f"({told})"] if told else []))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:59] + "…"
