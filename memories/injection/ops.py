"""Choose the operational memories of a prompt, and say why each is in or out. Reads only.

The text depends on the memories alone: the same memories give the same bytes.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from memories.injection import rows
from memories.injection.budget import Line, choose, cut, safe, shown
from memories.injection.relevant import Relevant, Task, relevant
from memories.lifecycle.rules import aged
from memories.lifecycle.sweep import is_due, sweep
from memories.models import Inactive, Memory, Verdict, to_utc
from memories.taxonomy import OPS

MOST_LEFT_OUT = 200
"""Memories left out that a receipt names; its counts include all."""

EXPLAIN_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Injection:
    """The block for a prompt, empty when there is none, and the record of it.

    `budget` and `tokens` are in tokens (characters / 4), `sha256` is of the text in UTF-8. `included` and
    `left_out` hold {id, uuid, service, category, confidence, observation, reason}; an included memory has a reason
    when there was a task. `counts` has eligible, included, over_budget, below_threshold,
    inactive, held and other_project.
    """

    text: str
    tokens: int
    budget: int
    sha256: str
    included: list[dict[str, Any]]
    left_out: list[dict[str, Any]]
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Explained:
    """Why one memory is in a prompt or not."""

    memory_id: int
    label: str
    in_: bool
    reason: str


def budget_for(tier: int) -> int:
    """The token budget of a tier: its own setting, or the general one."""
    own: int | None = getattr(settings, f"CLAUDEOPS_TIER{tier}_MEMORY_BUDGET", None)
    return settings.CLAUDEOPS_MEMORY_BUDGET if own is None else own


def build(
    *, budget: int, project_id: int | None = None, at: datetime | None = None, task: Task | None = None
) -> Injection:
    """The block for a session with `budget` tokens: global memories and those of its project.

    Memories relevant to `task` come first, then those of the highest confidence. With `at` (aware UTC) the block is
    what a session that starts then would get: decay and expiry are applied and rolled back. Without `at` the
    memories count as they are stored.
    """
    if at is None or not is_due(at):
        return _build(budget, project_id, task)
    with transaction.atomic():
        sweep(at)
        injection = _build(budget, project_id, task)
        transaction.set_rollback(True)
    return injection


def explain(*, budget: int, project_id: int | None = None, at: datetime | None = None) -> Iterator[Explained]:
    """Why each ops memory is in the block of `build` or not: first those in it, then the others by id.

    Reads in chunks and keeps only the ids of the included memories.
    """
    when = to_utc(at)
    injection = build(budget=budget, project_id=project_id, at=when)
    for place, entry in enumerate(injection.included, start=1):
        label = _label(entry["service"], entry["category"], entry["observation"], entry["confidence"])
        yield Explained(entry["id"], label, True, f"number {place:,} of {injection.counts['eligible']:,} by confidence")
    included = {entry["id"] for entry in injection.included}
    last = 0
    while True:
        chunk = list(Memory.objects.filter(taxonomy=OPS.slug, pk__gt=last).order_by("pk")[:EXPLAIN_CHUNK])
        for memory in chunk:
            if memory.pk not in included:
                yield _left_out(memory, project_id, budget, when)
        if len(chunk) < EXPLAIN_CHUNK:
            return
        last = chunk[-1].pk


def reasons(ids: Collection[int], *, budget: int, project_id: int | None, at: datetime) -> dict[int, str]:
    """Why these few memories are not in the block of `build` at `at` (aware UTC); "deleted" for one that is gone.

    `ids` must hold none that is in the block.
    """
    rows = Memory.objects.filter(pk__in=ids, taxonomy=OPS.slug)
    found = {memory.pk: _left_out(memory, project_id, budget, at).reason for memory in rows}
    return {pk: found.get(pk, "deleted") for pk in ids}


def _build(budget: int, project_id: int | None, task: Task | None = None) -> Injection:
    count = rows.count(project_id)
    asked = task is not None and task.text.strip() and budget > 0
    first = relevant(task, project_id) if task is not None and asked else Relevant()
    why = {memory.pk: reason for memory, reason in zip(first.memories, first.reasons, strict=True)}
    surest = (memory for memory in rows.surest_first(project_id) if memory.pk not in why)
    reading = itertools.chain(first.memories, surest)
    read: dict[int, Memory] = {}

    def lines() -> Iterator[Line]:
        for memory in reading:
            read[memory.pk] = memory
            yield Line(memory.pk, memory.service, memory.category, memory.observation, memory.confidence)

    chosen = choose(lines(), budget, eligible=count.eligible)
    otherwise = first.otherwise if asked else ""
    included = [_entry(read[line.memory_id], why.get(line.memory_id, otherwise)) for line in chosen.lines]
    eligible = max(count.eligible, len(included))
    counts = {
        "eligible": eligible,
        "included": len(included),
        "over_budget": eligible - len(included),
        "below_threshold": count.below_threshold,
        "inactive": count.inactive,
        "held": count.held,
        "other_project": count.other_project,
    }
    left_out: list[dict[str, Any]] = []
    if chosen.first_left_out is not None:
        left_out.append(_entry(read[chosen.first_left_out.memory_id], over_budget(budget)))
        for memory in reading:
            if len(left_out) >= MOST_LEFT_OUT:
                break
            left_out.append(_entry(memory, over_budget(budget)))
    left_out += _others(project_id, count, MOST_LEFT_OUT - len(left_out))
    return Injection(
        text=chosen.text,
        tokens=chosen.tokens,
        budget=budget,
        sha256=hashlib.sha256(chosen.text.encode()).hexdigest(),
        included=included,
        left_out=left_out,
        counts=counts,
    )


def _others(project_id: int | None, count: rows.Counts, room: int) -> list[dict[str, Any]]:
    """Up to `room` memories that were not eligible. Those of other projects are counted, not named."""
    found: list[dict[str, Any]] = []
    if count.held and room > 0:
        # The gate doubts their text, so the receipt does not copy it.
        found += [_entry(m, _held(m)) | {"observation": ""} for m in rows.held(project_id, room)]
    if count.inactive and room > len(found):
        found += [_entry(m, inactive(m.inactive_reason)) for m in rows.inactive(project_id, room - len(found))]
    if count.below_threshold and room > len(found):
        found += [_entry(m, below_threshold(m.confidence)) for m in rows.below_threshold(project_id, room - len(found))]
    return found


def _entry(memory: Memory, reason: str) -> dict[str, Any]:
    return {
        "id": memory.pk,
        "uuid": str(memory.uuid),
        "service": memory.service,
        "category": memory.category,
        "confidence": memory.confidence,
        "observation": cut(memory.observation),
        "reason": reason,
    }


def _left_out(memory: Memory, project_id: int | None, budget: int, at: datetime) -> Explained:
    new = aged(memory, at)
    confidence = new.get("confidence", memory.confidence)
    if memory.verdict == Verdict.HOLD:
        reason = _held(memory)
    elif not new.get("active", memory.active):
        reason = inactive(new.get("inactive_reason", memory.inactive_reason))
    elif memory.project_id is not None and memory.project_id != project_id:
        reason = "belongs to another project"
    elif confidence < (OPS.injected_from or 0.0):
        reason = below_threshold(confidence)
    else:
        reason = over_budget(budget)
    return Explained(memory.pk, _label(memory.service, memory.category, memory.observation, confidence), False, reason)


def _label(service: str | None, category: str, observation: str, confidence: float) -> str:
    text = safe(observation[:300])
    return f"[{category}:{service or 'general'}] {text if len(text) <= 80 else text[:79] + '…'} ({shown(confidence)})"


def over_budget(budget: int) -> str:
    return f"the budget of {budget:,} tokens is full with memories of higher confidence"


def below_threshold(confidence: float) -> str:
    return f"confidence {shown(confidence)} is below {OPS.injected_from}"


def held(reason: str) -> str:
    return f"held for review: {reason}" if reason else "held for review"


def _held(memory: Memory) -> str:
    return held(memory.verdict_reason) if memory.awaits_review else "rejected in review"


def inactive(reason: str) -> str:
    return f"inactive: {Inactive(reason).label}" if reason in Inactive.values else "inactive"
