"""Format a session for a terminal."""

from __future__ import annotations

from claudeops.lib.humanize import span
from sessions_app.credit.facts import Fact, facts_of
from sessions_app.models import LogKind, Session

SIGNS: dict[str, str] = {
    LogKind.TEXT: "",
    LogKind.TOOL_USE: "  > ",
    LogKind.TOOL_RESULT: "  < ",
    LogKind.SYSTEM: "  # ",
    LogKind.RESULT: "  = ",
}


def entry_text(kind: str, text: str) -> str:
    sign = SIGNS[kind]
    lines = text.rstrip().splitlines() or [""]
    if kind == LogKind.TOOL_RESULT and len(lines) > 12:
        lines = [*lines[:11], f"… {len(lines) - 11} more lines"]
    return "\n".join(sign + printable(line) for line in lines)


def printable(line: str) -> str:
    """Replace control characters: a log must not control the terminal."""
    return "".join(c if c.isprintable() or c == "\t" else "·" for c in line)


def as_text(session: Session) -> str:
    agent = session.agent.slug if session.agent else "no agent"
    reason = f" — {session.status_reason}" if session.status_reason else ""
    lines = [
        f"Session {session.pk}: {session.get_status_display()}{reason}",
        f"{agent}, tier {session.tier}, {session.model}, "
        f"trigger: {session.get_trigger_display()} ({session.requested_by or 'system'})",
    ]
    if session.hold_reason:
        lines.append(f"Waits: {session.hold_reason}")
    if session.started_at:
        lasted = f", {span(session.lasted_ms / 1000)}" if session.lasted_ms else ""
        lines.append(f"{session.started_at:%Y-%m-%d %H:%M:%S} UTC{lasted}, {session.num_turns} turns, {cost(session)}")
    if session.parent_id:
        how = f"A {session.get_follows_as_display()} of" if session.follows_as else "Escalated from"
        lines.append(f"{how} session {session.parent_id}")
    if children := list(session.children.filter(follows_as="").values_list("pk", flat=True)):
        lines.append(f"Escalated to session {', '.join(map(str, children))}")
    if receipt := getattr(session, "receipt", None):
        memories = "1 memory" if len(receipt.included) == 1 else f"{len(receipt.included)} memories"
        lines.append(f"Injected: {memories}, {receipt.tokens} of {receipt.budget} tokens")
    facts = facts_of(session)
    if facts.shown:
        lines.append(
            f"Memories: {facts.shown} shown, {facts.injected} injected, {facts.used} used, {facts.helped} helped"
        )
        lines += [f"  memory {fact.memory_id} {_fact(fact)}" for fact in facts.by_memory.values() if fact.how]
    lines.append(f"Read: {session.has_read}")
    if session.summary:
        lines.append(f"Summary: {printable(session.summary)}")
    for event in session.events.order_by("created_at", "id"):
        lines.append(f"  event {event.level} {event.service or 'general'}: {printable(event.message)}")
    for memory in session.memories.order_by("id"):
        lines.append(f"  memory {memory.pk} {printable(str(memory))}")
    for action in session.cooldown_actions.order_by("id"):
        lines.append(f"  {action.action} {action.service}: {action.outcome} {printable(action.message)}")
    if session.stats:
        lines.append("Counted: " + ", ".join(f"{name} {number}" for name, number in sorted(session.stats.items())))
    return "\n".join(lines)


def _fact(fact: Fact) -> str:
    helped = {True: "; it helped", False: "; it did not help", None: ""}[fact.helped]
    return f"used ({fact.used}){helped}"


def closing_text(session: Session) -> str:
    stored = {
        name: number for name, number in session.stats.items() if name.startswith(("memories_", "events", "cooldowns"))
    }
    counts = (
        ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in sorted(stored.items())) or "nothing stored"
    )
    reason = f" {session.status_reason}" if session.status_reason else ""
    head = f"Session {session.pk}: {session.get_status_display()}.{reason}"
    return f"\n{head}\n{counts}; {session.num_turns} turns, {cost(session)}"


def cost(session: Session) -> str:
    return f"${session.cost_usd:.4f}" + (" (estimated)" if session.cost_is_estimated else "")


def short(text: str, limit: int) -> str:
    text = printable(" ".join(text.split()))
    return text if len(text) <= limit else text[: limit - 1] + "…"
