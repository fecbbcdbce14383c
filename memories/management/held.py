"""`manage.py memory held` and `memory discarded`: see and decide what the gate stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from claudeops.lib.cli import NextAction, Refusal, Result
from claudeops.lib.diff import GONE, NEW, word_diff
from claudeops.lib.humanize import exact
from memories import store
from memories.api.serializers import as_data
from memories.capture.statement import Provenance
from memories.lifecycle import gate_decisions, verbs
from memories.lifecycle import undo as lifecycle
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.lifecycle.projects import find_project
from memories.management.arguments import MOST_SHOWN
from memories.models import Fact, GateDecision, Label, Memory, to_utc
from memories.queries.similar import HeldMemory, because, held_memories

LONGEST_EXCERPT = 400
WORDS = {"allow": "allowed", "confirm": "confirmed as discards", "undo": "undecided again"}
LOOK = (NextAction("manage.py memory held list", "see what still waits"),)


def held(
    rows: QuerySet[Memory],
    *,
    action: str,
    ids: list[Memory],
    code: str | None,
    observation: str | None,
    all_matching: bool,
    yes: bool,
    limit: int,
    by: str,
    reason: str,
) -> Result:
    """List or decide held memories: `ids`, or with `all_matching` those of `rows`. All of the named ones, or none."""
    rows = because(rows, code) if code else rows
    if action == "list":
        return _list_held(rows, ids, limit)
    if action == "edit":
        return _edit(ids, observation, by, reason)
    _check_choice(bool(ids), all_matching)
    if observation is not None:
        raise Refusal("usage", "--observation goes with edit alone.", "Example: memory held edit ID --observation TEXT")
    chosen = rows if all_matching else Memory.objects.filter(pk__in=[_held(one).pk for one in ids])
    word, name = ("allowed", "approve") if action == "allow" else ("discarded", "reject")
    if all_matching and not yes:
        count = chosen.count()
        return Result({"changed": 0, "would_change": count}, f"{_memories(count)} would be {word}. Add --yes to do it.")
    done = BULK_ACTIONS[name].run(chosen, by=by, reason=reason, provenance=Provenance.typed_by(by))
    back = [NextAction(f"manage.py memory held undo {done.change}", "take it back")] if done.change else []
    text = "\n".join([f"{_memories(done.changed)} {word}.", *(f"To take it back: {one.command}" for one in back)])
    return Result({"changed": done.changed, "would_change": 0, "undo": done.change}, text, [*back, *LOOK])


def undo(ids: list[str], *, by: str, reason: str) -> Result:
    """Take back what `held` decided, by the number of the change that it printed."""
    if len(ids) != 1 or not _is_number(ids[0]):
        raise Refusal("usage", "undo takes the number that allow or discard printed.", "Example: memory held undo 345")
    done = lifecycle.undo(int(ids[0]), by=by, reason=reason)
    return Result({"back": done.back, "already": done.already}, done.message, LOOK)


def _list_held(rows: QuerySet[Memory], ids: list[Memory], limit: int) -> Result:
    _check_limit(limit)
    if ids:
        rows = Memory.objects.filter(pk__in=[_held(one).pk for one in ids])
    count = rows.count()
    found = held_memories(rows.order_by("-updated_at", "-pk"), limit)
    text = "\n\n".join(map(_held_text, found)) or "Nothing is held."
    if count > len(found):
        text += f"\n\n{len(found):,} of {count:,}; --limit shows more."
    data = [
        as_data(one.memory)
        | {
            "source": _source_data(one.fact),
            "nearest": one.nearest and {"memory": as_data(one.nearest.memory), "similarity": one.nearest.words},
        }
        for one in found
    ]
    return Result({"count": count, "memories": data}, text)


def _held_text(one: HeldMemory) -> str:
    memory = one.memory
    lines = [
        f"{memory.pk}  {memory.observation}",
        f"    held: {memory.verdict_reason or 'no reason given'}; read before: {memory.read_before}",
    ]
    if one.fact is not None:
        lines.append(f"    {_source_text(one.fact)}")
    if one.nearest is not None:
        known = one.nearest.memory
        lines.append(f"    nearest: memory {known.pk} {one.nearest.words}: {_difference(known.observation, memory)}")
    return "\n".join(lines)


def _difference(known: str, memory: Memory) -> str:
    """Show the word difference from a known text to the held one: "Takes [-60-]{+90+} s"."""
    marks = {GONE: "[-{}-]", NEW: "{{+{}+}}"}
    return "".join(marks.get(piece.kind, "{}").format(piece.text) for piece in word_diff(known, memory.observation))


def _source_text(fact: Fact) -> str:
    where = f"turn {fact.turn} of {fact.source}" if fact.turn is not None else fact.source
    excerpt = " ".join(fact.excerpt.split())
    cut = excerpt if len(excerpt) <= LONGEST_EXCERPT else f"{excerpt[: LONGEST_EXCERPT - 1]}…"
    return f"source: {where}" + (f": {cut}" if cut else "")


def _source_data(fact: Fact | None) -> dict[str, Any] | None:
    if fact is None:
        return None
    return {"source": fact.source, "turn": fact.turn, "excerpt": fact.excerpt, "narrative": fact.segment.narrative}


def _edit(ids: list[Memory], observation: str | None, by: str, reason: str) -> Result:
    if len(ids) != 1 or observation is None:
        raise Refusal(
            "usage", "edit takes one ID and --observation TEXT.", "Example: memory held edit 12 --observation TEXT"
        )
    memory = _held(ids[0])
    with transaction.atomic():
        typed = Provenance.typed_by(by)
        verbs.edit(memory.pk, by=by, reason=reason, observation=observation, provenance=typed)
        verbs.approve(memory.pk, by=by, reason=reason)
    after = Memory.objects.get(pk=memory.pk)
    return Result(as_data(after), f"Memory {memory.pk} is corrected and allowed: {after.observation}", LOOK)


def _held(memory: Memory) -> Memory:
    if not memory.awaits_review:
        raise Refusal("not_held", f"Memory {memory.pk} is not held for review.", "Run: manage.py memory held list")
    return memory


def discarded(
    *,
    action: str,
    ids: list[str],
    because: str | None,
    channel: str | None,
    project: str | None,
    text: str | None,
    observation: str | None,
    all_matching: bool,
    yes: bool,
    limit: int,
    by: str,
) -> Result:
    """List or decide what the gate discarded. `project` is a slug, or global; None: all."""
    rows = gate_decisions.discarded()
    rows = rows.filter(reasons__0=because) if because else rows
    rows = rows.filter(channel=channel) if channel else rows
    if project is not None:
        rows = rows.filter(project=None if project == "global" else find_project(project))
    for word in (text or "").split():
        rows = rows.filter(text__icontains=word)
    if action == "list":
        return _list_discarded(rows.filter(pk__in=[_discard(one).pk for one in ids]) if ids else rows, limit)
    if action == "undo" and all_matching:
        raise Refusal("usage", "undo takes IDs.", "Example: memory discarded undo 7")
    _check_choice(bool(ids), all_matching)
    if observation is not None and (action != "allow" or len(ids) != 1):
        raise Refusal(
            "usage", "--observation goes with one ID to allow.", "Example: memory discarded allow 7 --observation TEXT"
        )
    chosen = rows if all_matching else rows.model.objects.filter(pk__in=[_discard(one).pk for one in ids])
    word = WORDS[action]
    if all_matching and not yes:
        count = chosen.count()
        return Result({"changed": 0, "would_change": count}, f"{_texts(count)} would be {word}. Add --yes to do it.")
    decide = {"allow": _allow(by, observation), "confirm": _confirm(by), "undo": _undo(by)}[action]
    with transaction.atomic():
        made = [decide(row) for row in chosen.order_by("pk")]
    memories = [one for one in made if one is not None]
    look = [NextAction(f"manage.py memory show {memories[0]}", "see it with its history")] if memories else []
    return Result({"changed": len(made), "would_change": 0, "memories": memories}, f"{_texts(len(made))} {word}.", look)


def _allow(by: str, observation: str | None) -> Callable[[GateDecision], int | None]:
    return lambda row: store.allow_discarded(row, by=by, text=observation).memory_id


def _confirm(by: str) -> Callable[[GateDecision], None]:
    return lambda row: gate_decisions.confirm_discard(row, by=by)


def _undo(by: str) -> Callable[[GateDecision], None]:
    def undo_one(row: GateDecision) -> None:
        if row.label == Label.DISCARDED:
            gate_decisions.label(row, Label.UNDONE, by=by, at=to_utc(None))
        else:
            store.discard_again(row, by=by)

    return undo_one


def _is_number(given: str) -> bool:
    return given.isdecimal() and len(given) < 19


def _discard(given: str) -> GateDecision:
    if not _is_number(given):
        raise Refusal("not_found", f"{given!r} is not the number of a discard.", "Run: manage.py memory discarded list")
    return gate_decisions.find(int(given))


def _list_discarded(rows: QuerySet[GateDecision], limit: int) -> Result:
    _check_limit(limit)
    count = rows.count()
    found = list(rows.select_related("project", "fact")[:limit])
    text = "\n\n".join(map(_discarded_text, found)) or "Nothing was discarded in the last 14 days."
    if count > len(found):
        text += f"\n\n{len(found):,} of {count:,}; --limit shows more."
    data = [
        {
            "id": row.pk,
            "at": row.at,
            "text": row.text,
            "reasons": row.reasons,
            "words": row.words,
            "channel": row.channel,
            "category": row.category,
            "project": row.project.slug if row.project else None,
            "session": row.session_id,
            "exposure": row.exposure,
        }
        for row in found
    ]
    return Result({"count": count, "discards": data}, text)


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


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MOST_SHOWN:
        raise Refusal("usage", f"--limit is {limit}; allowed is 1 to {MOST_SHOWN}.")


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count:,} memories"


def _texts(count: int) -> str:
    return "1 text" if count == 1 else f"{count:,} texts"
