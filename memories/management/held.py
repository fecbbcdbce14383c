"""The verbs `held` and `discarded` of `manage.py memory`: see and decide what the gate stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from claudeops.lib.cli import Refusal, Result, VerbCommand, arg, by, columns, more, verb
from claudeops.lib.diff import marked, word_diff
from claudeops.lib.humanize import exact, quantity
from memories import store
from memories.api.serializers import as_data
from memories.capture.reasons import Reason as Code
from memories.capture.statement import Provenance
from memories.lifecycle import gate_decisions, verbs
from memories.lifecycle import undo as lifecycle
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.lifecycle.projects import find_project
from memories.management.parameters import (
    ALL_MATCHING,
    REASON,
    SHOWN,
    YES_TO_ALL,
    Filters,
    filter_rows,
    find_memory,
    is_number,
)
from memories.models import Fact, GateDecision, Label, Memory, to_utc
from memories.queries.filters import HELD, MemoryFilterSet
from memories.queries.similar import HeldMemory, held_memories
from memories.queries.similar import because as held_because

LONGEST_EXCERPT = 400
LOOK = {"manage.py memory held list": "see what still waits"}


@verb
def held(
    self: VerbCommand,
    action: str = arg("edit corrects one and allows it", choices=("list", "allow", "edit", "discard", "undo")),
    ids: Sequence[str] = arg(
        "numbers or UUIDs of held memories; for undo the number that was printed", metavar="ID", default=()
    ),
    *,
    observation: str | None = arg("the corrected text, for edit", metavar="TEXT"),
    because: str | None = arg("only those held for this reason", metavar="CODE", choices=list(Code)),
    all_matching: bool = ALL_MATCHING,
    yes: bool = YES_TO_ALL,
    limit: int = SHOWN,
    by: str = by(),
    reason: str = REASON,
    filters: Filters,
) -> Result:
    """What the gate held, with its source and the nearest known memory: list, allow, edit, discard, undo."""
    if action == "undo":
        if len(ids) != 1 or not is_number(ids[0]):
            fix = "Example: memory held undo 345"
            raise Refusal("usage", "undo takes the number that allow or discard printed.", fix)
        undone = lifecycle.undo(int(ids[0]), by=by, reason=reason)
        return Result(columns(undone, "back", "already"), undone.message, LOOK)
    named = [find_memory(one) for one in ids]
    rows = filter_rows(MemoryFilterSet, {**vars(filters), "status": HELD}, Memory.objects.all())
    rows = held_because(rows, because) if because else rows
    if action == "list":
        return _list_held(rows, named, limit)
    if action == "edit":
        return _edit(named, observation, by, reason)
    _check_choice(bool(named), all_matching)
    if observation is not None:
        raise Refusal("usage", "--observation goes with edit alone.", "Example: memory held edit ID --observation TEXT")
    chosen = rows if all_matching else _held(named)
    word, name = ("allowed", "approve") if action == "allow" else ("discarded", "reject")
    if all_matching and not yes:
        count = chosen.count()
        text = f"{quantity(count, 'memory', 'memories')} would be {word}. Add --yes to do it."
        return Result({"changed": 0, "would_change": count}, text)
    result = BULK_ACTIONS[name].run(chosen, by=by, reason=reason, provenance=Provenance.typed_by(by))
    back = {f"manage.py memory held undo {result.change}": "take it back"} if result.change else {}
    lines = [f"{quantity(result.changed, 'memory', 'memories')} {word}."]
    lines += [f"To take it back: {command}" for command in back]
    data = {"changed": result.changed, "would_change": 0, "undo": result.change}
    return Result(data, "\n".join(lines), back | LOOK)


def _list_held(rows: QuerySet[Memory], named: list[Memory], limit: int) -> Result:
    rows = _held(named) if named else rows
    count = rows.count()
    memories = held_memories(rows.order_by("-updated_at", "-pk"), limit)
    text = "\n\n".join(map(_held_text, memories)) or "Nothing is held."
    data = [
        as_data(one.memory)
        | {
            "source": _source_data(one.fact),
            "nearest": one.nearest and {"memory": as_data(one.nearest.memory), "similarity": one.nearest.words},
        }
        for one in memories
    ]
    return Result({"count": count, "memories": data}, text + more(len(memories), count, "\n\n"))


def _held_text(one: HeldMemory) -> str:
    memory = one.memory
    lines = [
        f"{memory.pk}  {memory.observation}",
        f"    held: {memory.verdict_reason or 'no reason given'}; read before: {memory.read_before}",
    ]
    if one.fact is not None:
        lines.append(f"    {_source_text(one.fact)}")
    if one.nearest is not None:
        nearest = one.nearest.memory
        difference = marked(word_diff(nearest.observation, memory.observation))
        lines.append(f"    nearest: memory {nearest.pk} {one.nearest.words}: {difference}")
    return "\n".join(lines)


def _source_text(fact: Fact) -> str:
    where = f"turn {fact.turn} of {fact.source}" if fact.turn is not None else fact.source
    excerpt = " ".join(fact.excerpt.split())
    cut = excerpt if len(excerpt) <= LONGEST_EXCERPT else f"{excerpt[: LONGEST_EXCERPT - 1]}…"
    return f"source: {where}" + (f": {cut}" if cut else "")


def _source_data(fact: Fact | None) -> dict[str, Any] | None:
    if fact is None:
        return None
    return {"source": fact.source, "turn": fact.turn, "excerpt": fact.excerpt, "narrative": fact.segment.narrative}


def _edit(named: list[Memory], observation: str | None, by: str, reason: str) -> Result:
    if len(named) != 1 or observation is None:
        raise Refusal(
            "usage", "edit takes one ID and --observation TEXT.", "Example: memory held edit 12 --observation TEXT"
        )
    memory = _held(named).get()
    with transaction.atomic():
        typed = Provenance.typed_by(by)
        verbs.edit(memory.pk, by=by, reason=reason, observation=observation, provenance=typed)
        verbs.approve(memory.pk, by=by, reason=reason)
    after = Memory.objects.get(pk=memory.pk)
    return Result(as_data(after), f"Memory {memory.pk} is corrected and allowed: {after.observation}", LOOK)


def _held(named: list[Memory]) -> QuerySet[Memory]:
    for one in named:
        if not one.awaits_review:
            raise Refusal("not_held", f"Memory {one.pk} is not held for review.", "Run: manage.py memory held list")
    return Memory.objects.filter(pk__in=[one.pk for one in named])


def _find_discard(text: str) -> GateDecision:
    if not is_number(text):
        raise Refusal("not_found", f"{text!r} is not the number of a discard.", "Run: manage.py memory discarded list")
    return gate_decisions.find(int(text))


@verb
def discarded(
    self: VerbCommand,
    action: str = arg("confirm says that the gate was right", choices=("list", "allow", "confirm", "undo")),
    ids: Sequence[GateDecision] = arg(
        "numbers of discards, as list shows them", metavar="ID", read=_find_discard, default=()
    ),
    *,
    observation: str | None = arg("the corrected text, to allow one", metavar="TEXT"),
    because: str | None = arg("only those discarded for this reason", metavar="CODE", choices=list(Code)),
    channel: str | None = arg("over which they arrived: text, structured, mcp, api, import, file, observer"),
    project: str | None = arg("a project's slug, or global"),
    text: str | None = arg("words that they contain"),
    all_matching: bool = ALL_MATCHING,
    yes: bool = YES_TO_ALL,
    limit: int = SHOWN,
    by: str = by("who decides (default: your account)"),
) -> Result:
    """What the gate discarded in the last 14 days: list, allow, confirm."""
    rows = gate_decisions.discarded()
    rows = rows.filter(reasons__0=because) if because else rows
    rows = rows.filter(channel=channel) if channel else rows
    if project is not None:
        rows = rows.filter(project=None if project == "global" else find_project(project))
    for word in (text or "").split():
        rows = rows.filter(text__icontains=word)
    named = [one.pk for one in ids]
    if action == "list":
        return _list_discarded(rows.filter(pk__in=named) if ids else rows, limit)
    if action == "undo" and all_matching:
        raise Refusal("usage", "undo takes IDs.", "Example: memory discarded undo 7")
    _check_choice(bool(ids), all_matching)
    if observation is not None and (action != "allow" or len(ids) != 1):
        raise Refusal(
            "usage", "--observation goes with one ID to allow.", "Example: memory discarded allow 7 --observation TEXT"
        )
    chosen = rows if all_matching else GateDecision.objects.filter(pk__in=named)
    word = {"allow": "allowed", "confirm": "confirmed as discards", "undo": "undecided again"}[action]
    if all_matching and not yes:
        count = chosen.count()
        text = f"{quantity(count, 'text')} would be {word}. Add --yes to do it."
        return Result({"changed": 0, "would_change": count}, text)
    memories: list[int] = []
    with transaction.atomic():
        decided = list(chosen.order_by("pk"))
        for row in decided:
            if action == "allow":
                stored = store.allow_discarded(row, by=by, text=observation).memory_id
                memories += [] if stored is None else [stored]
            elif action == "confirm":
                gate_decisions.confirm_discard(row, by=by)
            elif row.label == Label.DISCARDED:
                gate_decisions.label(row, Label.UNDONE, by=by, at=to_utc(None))
            else:
                store.discard_again(row, by=by)
    see = {f"manage.py memory show {memories[0]}": "see it with its history"} if memories else {}
    data = {"changed": len(decided), "would_change": 0, "memories": memories}
    return Result(data, f"{quantity(len(decided), 'text')} {word}.", see)


def _list_discarded(rows: QuerySet[GateDecision], limit: int) -> Result:
    count = rows.count()
    discards = list(rows.select_related("project", "fact")[:limit])
    text = "\n\n".join(map(_discarded_text, discards)) or "Nothing was discarded in the last 14 days."
    data = [
        {"id": row.pk}
        | columns(row, "at", "text", "reasons", "words", "channel", "category")
        | {"project": row.project.slug if row.project else None, "session": row.session_id, "exposure": row.exposure}
        for row in discards
    ]
    return Result({"count": count, "discards": data}, text + more(len(discards), count, "\n\n"))


def _discarded_text(row: GateDecision) -> str:
    lines = [
        f"{row.pk}  {' '.join(row.text.split())}",
        f"    discarded {exact(row.at)} over {row.channel}: {row.words}",
    ]
    if row.fact is not None:
        lines.append(f"    {_source_text(row.fact)}")
    return "\n".join(lines)


def _check_choice(has_ids: bool, all_matching: bool) -> None:
    if has_ids == all_matching:
        raise Refusal("usage", "Give IDs or --all-matching, one of the two.", "Example: memory held allow 12 14")
