"""Memories on a terminal: their tables and texts, and the verb `recall` with its trace for --explain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from claudeops.lib.cli import (
    Columns,
    Result,
    VerbCommand,
    arg,
    current_user,
    listing,
    moment,
    text_or_stdin,
    verb,
)
from claudeops.lib.humanize import ago, exact
from memories.injection.budget import shown
from memories.injection.windows import Windowed, windowed
from memories.models import Memory, MemoryChange
from memories.recall import Hit, Recall
from memories.recall.rerank import NAMES as PROFILES
from memories.recall.service import Question, as_data, ask, by_person
from memories.taxonomy import GENERAL


def state(memory: Memory) -> str:
    """Describe the state in a few words: active, held, or why it is inactive."""
    if memory.verdict != "allow":
        return "held"
    if memory.active:
        return "unconfirmed" if memory.unconfirmed else "active"
    return f"inactive ({memory.inactive_reason})" if memory.inactive_reason else "inactive"


def as_table(memories: Sequence[Memory]) -> str:
    now = timezone.now()
    columns: Columns = {
        "id": "pk",
        "conf": lambda memory: shown(memory.confidence),
        "state": state,
        "category": "category",
        "service": "scope_label",
        "confirmed": lambda memory: ago(memory.updated_at, now),
        "observation": lambda memory: short(memory.observation, 70),
    }
    return listing(memories, columns, "No memory matches.")


def timed_table(found: Sequence[Windowed], empty: str) -> str:
    """Format the memories with a window, the next first; times are UTC. `empty` for none."""
    columns: Columns = {
        "id": "memory.pk",
        "": lambda one: "told now" if one.is_open else "",
        "from": lambda one: exact(one.opening[0]),
        "until": lambda one: exact(one.opening[1]),
        "window": "memory.surface",
        "observation": lambda one: short(one.memory.observation, 70),
    }
    return listing(found, columns, empty)


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
        ("said by", memory.said_by),
        *((f"turn {quote['turn']}", quote["text"]) for quote in memory.support.get("quotes", ())),
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
            moved.append(f"{name} {short(str(change.before[name]), 60)} → {short(str(after), 60)}")
    parts = [exact(change.at), change.label, "; ".join(moved)]
    origin = ": ".join(part for part in (change.actor, change.reason) if part)
    return "  ".join([part for part in parts if part] + ([f"({origin})"] if origin else []))


def short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


@dataclass(frozen=True)
class RecallOptions:
    project: str | None = arg("a project's slug: that project plus global memories; global: only those (default: all)")
    agent: str | None = arg("an agent's slug: its own memories and those without an agent (default: all)")
    service: str | None = arg("general for those without one")
    category: str | None = None
    taxonomy: str | None = None
    limit: int | None = arg("how many (1 to 100); default: set by the profile")
    profile: str = arg("how much comes back", choices=PROFILES, default="balanced")
    include_hold: bool = arg("include memories held for review")


@verb
def recall(
    self: VerbCommand,
    query: str = arg("a question, an error, a name; - reads stdin", read=text_or_stdin),
    *,
    tag: Sequence[str] = arg("all of these; several times", metavar="TAG"),
    as_of: datetime | None = arg(
        "what was known at a day or time like 2026-11-21T23:00 (UTC)",
        metavar="WHEN",
        read=moment("--as-of", "a day or a time like 2026-11-21T23:00, UTC"),
    ),
    include: Sequence[str] = arg("also what happened in observed sessions", choices=("narratives",)),
    explain: bool = arg("show the score details and what was left out"),
    options: RecallOptions,
) -> Result:
    """Search what is known; --explain says why these."""
    # All projects are searched: whoever has a shell on this machine is the operator.
    question = Question(query, tags=tuple(tag), include=tuple(include), as_of=as_of, **vars(options))
    answer = ask(by_person(current_user()), question, "cli")
    lines = [_line(place, hit) for place, hit in enumerate(answer.hits, 1)] or ["No memory answers this."]
    if answer.trace.semantic != "on":
        lines.append(f"Semantic search is {answer.trace.semantic}.")
    if explain:
        lines = [*_explained(answer)]
    if answer.narratives is not None:
        lines += ["", "Narratives of observed sessions:" if answer.narratives else "No narrative answers this."]
        lines += [f"  {one.score:.3f}  {one.source}, {one.at:%Y-%m-%d}: {one.narrative}" for one in answer.narratives]
    actions = {f"manage.py memory show {hit.memory_id}": "see it with its history" for hit in answer.hits[:1]}
    return Result(as_data(answer), "\n".join(lines), actions)


def _line(place: int, hit: Hit) -> str:
    held = " (held for review)" if hit.verdict != "allow" else " (unconfirmed)" if hit.unconfirmed else ""
    scope = f"[{hit.category}:{hit.service or GENERAL}]"
    return f"{place:>2}. {hit.score:.3f}  {hit.memory_id}  {scope} {hit.observation} ({shown(hit.confidence)}){held}"


def _explained(found: Recall) -> Iterator[str]:
    for place, hit in enumerate(found.hits, 1):
        parts = hit.parts
        yield _line(place, hit)
        yield "      " + ", ".join(
            [
                f"keyword rank {_or_none(parts.keyword_rank)} score {_or_none(parts.keyword_score)}",
                f"words covered {parts.coverage:.3f}{' (found whole)' if parts.phrase else ''}",
                f"vector rank {_or_none(parts.vector_rank)} cosine {_or_none(parts.cosine)}",
            ]
        )
        boosts = ", ".join(f"{name} {value:+.3f}" for name, value in parts.boosts.items()) or "none"
        yield (
            f"      fused {parts.fused:.3f}, neighbours {parts.context:.3f}, age factor {parts.age_factor:.3f} "
            f"({parts.age_days:.0f} days){', stale' if parts.stale else ''}, boosts: {boosts}, final {parts.final:.3f}"
        )
        if hit.collapsed:
            yield f"      stands for {', '.join(map(str, hit.collapsed))}, which are near-duplicates"
    if not found.hits:
        yield "No memory answers this."
    trace = found.trace
    yield ""
    yield f"Semantic search is {trace.semantic}. Profile {trace.profile}, {trace.candidates} candidates."
    if trace.vectors:
        yield f"Vectors compared by {trace.vectors}."
    if trace.pending:
        yield f"Without a vector yet: {trace.pending}."
    yield f"Query rewrite: {trace.rewrite}."
    if words := trace.searched or trace.terms:
        yield f"Words searched: {', '.join(words)}."
    dropped = ", ".join(f"{count} {reason}" for reason, count in trace.dropped.items() if count)
    yield f"Left out: {dropped or 'nothing'}."
    yield from trace.notes
    if trace.steps:
        yield "Duration: " + ", ".join(f"{name} {1000 * seconds:.1f} ms" for name, seconds in trace.steps.items()) + "."


def _or_none(value: float | None) -> str:
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.3f}"
