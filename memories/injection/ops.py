"""Choose the operational memories of a prompt, and say why. The same memories give the same bytes."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from django.conf import settings
from django.db import transaction

from memories.injection import rows
from memories.injection.budget import Line, choose, cut, shown
from memories.injection.escape import safe
from memories.injection.relevant import BY_CONFIDENCE, RELEVANT_SHARE, Found, Task, memories_of, relevant
from memories.injection.selector import NOTHING, TOLD_ONCE, Texts, key_of
from memories.injection.windows import Windowed, usable, windowed, windows_at
from memories.lifecycle.rules import aged
from memories.lifecycle.sweep import is_due, sweep
from memories.models import Inactive, Memory, Verdict, to_utc
from memories.models.memory import ANY_AGENT
from memories.models.trust import kept_back
from memories.taxonomy import OPS

MOST_LEFT_OUT = 200
"""Memories left out that a receipt names; its counts include all."""

EXPLAIN_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Injection:
    """The block for a prompt, empty when there is none, and the record of it.

    `budget` and `tokens` are in tokens (characters / 4), `sha256` is of the text in UTF-8. `included` and
    `left_out` hold {id, uuid, service, category, confidence, observation, reason}; an included memory has a reason
    when there was a task, and when its window of time is open. `counts` has eligible, included, over_budget,
    outside_window, unconfirmed (what CLAUDEOPS_TRUST keeps back), below_threshold, inactive, held and other_project.
    """

    text: str
    tokens: int
    budget: int
    sha256: str
    included: list[dict[str, Any]]
    left_out: list[dict[str, Any]]
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class AsIf:
    """A decision that nobody has made yet: `added` memories would be injected too, those with the ids `without` not."""

    added: tuple[Memory, ...] = ()
    without: frozenset[int] = frozenset()

    def applied(self, surest_first: Iterable[Memory]) -> Iterator[Memory]:
        """Yield memories, the surest first, as if the decision were made."""
        added = sorted((memory for memory in self.added if not memory.surface), key=_surest)
        left_out = self.without | {memory.pk for memory in added}
        memories = (memory for memory in surest_first if memory.pk not in left_out)
        return heapq.merge(memories, added, key=_surest)

    def windows(self, known: Iterable[Windowed], at: datetime) -> list[Windowed]:
        """Return the memories with a window, the surest first, as if the decision were made."""
        left_out = self.without | {memory.pk for memory in self.added}
        entries = [one for one in known if one.memory.pk not in left_out]
        entries += [windowed(memory, at) for memory in self.added if memory.surface]
        return sorted(entries, key=lambda one: _surest(one.memory))


def _surest(memory: Memory) -> tuple[float, int]:
    return -memory.confidence, memory.pk


@dataclass(frozen=True, slots=True)
class Explained:
    memory_id: int
    label: str
    in_: bool
    reason: str


def budget_for(own: int | None = None) -> int:
    """Return the token budget of a prompt: that of its agent if it has its own, or the setting."""
    return settings.CLAUDEOPS_MEMORY_BUDGET if own is None else own


def build(
    *,
    budget: int,
    project_id: int | None = None,
    at: datetime | None = None,
    task: Task | None = None,
    as_if: AsIf = AsIf(),
    told: Texts = NOTHING,
) -> Injection:
    """Build the block for a session: global memories and those of its project, within `budget` tokens.

    Memories whose window of time is open come first; those outside theirs are left out. Then come those relevant to
    `task`, in a part of the budget (RELEVANT_SHARE), then those of the highest confidence. With `at`
    (aware UTC) decay and expiry up to then are applied and rolled back; without it the memories count as stored.
    `as_if`: what the block would be after that decision. What the prompt has `told` already is left out.
    """
    # Before the transaction, in which no index is read that other processes share.
    matches = relevant(task, project_id) if task is not None and task.text.strip() and budget > 0 else None
    when = to_utc(at)
    if at is None or not is_due(at):
        return _build(budget, project_id, matches, as_if, told, when)
    with transaction.atomic():
        sweep(at)
        injection = _build(budget, project_id, matches, as_if, told, when)
        transaction.set_rollback(True)
    return injection


def explain(
    *,
    budget: int,
    project_id: int | None = None,
    at: datetime | None = None,
    task: Task | None = None,
    told: Texts = NOTHING,
) -> Iterator[Explained]:
    """Say why each ops memory is in the block of `build` or not: first those in it, then the others by id."""
    when = to_utc(at)
    injection = build(budget=budget, project_id=project_id, at=when, task=task, told=told)
    for place, entry in enumerate(injection.included, start=1):
        label = _label(entry["service"], entry["category"], entry["observation"], entry["confidence"])
        why = entry["reason"] or BY_CONFIDENCE
        yield Explained(entry["id"], label, True, f"number {place:,} of {injection.counts['eligible']:,} {why}")
    included = {entry["id"] for entry in injection.included}
    last = 0
    while True:
        chunk = list(Memory.objects.filter(taxonomy=OPS.slug, pk__gt=last).order_by("pk")[:EXPLAIN_CHUNK])
        for memory in chunk:
            if memory.pk not in included:
                yield _left_out(memory, project_id, budget, when, told)
        if len(chunk) < EXPLAIN_CHUNK:
            return
        last = chunk[-1].pk


def reasons(ids: Collection[int], *, budget: int, project_id: int | None, at: datetime) -> dict[int, str]:
    """Say why these memories, none of them in the block, are not in `build` at `at` (aware UTC)."""
    rows = Memory.objects.filter(pk__in=ids, taxonomy=OPS.slug)
    by_id = {memory.pk: _left_out(memory, project_id, budget, at).reason for memory in rows}
    return {pk: by_id.get(pk, "deleted") for pk in ids}


def _build(
    budget: int, project_id: int | None, matches: Found | None, as_if: AsIf, told: Texts, at: datetime
) -> Injection:
    count = rows.count(project_id)
    candidates = usable(project_id, ANY_AGENT).filter(taxonomy=OPS.slug)
    windows = as_if.windows(windows_at(candidates, at), at)
    shut = [one for one in windows if not one.is_open]
    eligible = count.eligible - len(shut)
    read: dict[int, Memory] = {}

    def lines(memories: Iterable[Memory]) -> Iterator[Line]:
        for memory in memories:
            read[memory.pk] = memory
            yield Line(memory.pk, memory.service, memory.category, memory.observation, memory.confidence)

    in_window = {one.memory.pk: one for one in windows if one.is_open}
    opened = choose(lines(one.memory for one in in_window.values()), budget, eligible=eligible, told=told, named=None)
    no_room = [read[line.memory_id] for line in opened.left_out]
    share = 0 if no_room else int(budget * RELEVANT_SHARE)
    first = choose(
        lines(memories_of(matches or Found())),
        min(budget, opened.tokens + share),
        eligible=eligible,
        after=opened.included,
        told=told,
    )
    brought = {line.memory_id for line in first.included}
    by_rank = (memory for memory in as_if.applied(rows.surest_first(project_id)) if memory.pk not in brought)
    named = max(1, MOST_LEFT_OUT - len(shut))
    chosen = choose(
        lines(chain(no_room, by_rank)), budget, eligible=eligible, after=first.included, told=told, named=named
    )
    again = {line.memory_id: read[line.memory_id] for part in (opened, first, chosen) for line in part.again}
    otherwise = matches.otherwise if matches else ""

    def reason(memory_id: int) -> str:
        if memory_id in in_window:
            return in_window[memory_id].reason
        return matches.reason(memory_id) if matches and memory_id in brought else otherwise

    included = [_entry(read[line.memory_id], reason(line.memory_id)) for line in chosen.included]
    eligible = max(eligible - len(again), len(included))
    counts = {
        "eligible": eligible,
        "included": len(included),
        "over_budget": eligible - len(included),
        "outside_window": len(shut),
        "unconfirmed": count.unconfirmed,
        "below_threshold": count.below_threshold,
        "inactive": count.inactive,
        "held": count.held,
        "other_project": count.other_project,
    }
    left_out = [_entry(one.memory, one.reason) for one in shut[:MOST_LEFT_OUT]]
    left_out += [
        _entry(read[line.memory_id], over_budget(budget)) for line in chosen.left_out[: MOST_LEFT_OUT - len(left_out)]
    ]
    left_out += [_entry(memory, TOLD_ONCE) for memory in again.values()][: MOST_LEFT_OUT - len(left_out)]
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
    """Return up to `room` ineligible memories. Those of other projects are counted, not named."""
    entries: list[dict[str, Any]] = []
    if count.held and room > 0:
        # The gate held their text, so the receipt does not copy it.
        entries += [_entry(m, _held(m)) | {"observation": ""} for m in rows.held(project_id, room)]
    if count.unconfirmed and room > len(entries):
        entries += [_entry(m, kept_back(m)) for m in rows.unconfirmed(project_id, room - len(entries))]
    if count.inactive and room > len(entries):
        entries += [_entry(m, inactive(m.inactive_reason)) for m in rows.inactive(project_id, room - len(entries))]
    if count.below_threshold and room > len(entries):
        entries += [
            _entry(m, below_threshold(m.confidence)) for m in rows.below_threshold(project_id, room - len(entries))
        ]
    return entries


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


def _left_out(memory: Memory, project_id: int | None, budget: int, at: datetime, told: Texts = NOTHING) -> Explained:
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
    elif unconfirmed := kept_back(memory):
        reason = unconfirmed
    elif memory.surface and not (own := windowed(memory, at)).is_open:
        reason = own.reason
    elif key_of(memory.observation) in told:
        reason = TOLD_ONCE
    else:
        reason = over_budget(budget)
    return Explained(memory.pk, _label(memory.service, memory.category, memory.observation, confidence), False, reason)


def _label(service: str | None, category: str, observation: str, confidence: float) -> str:
    text = safe(observation[:300])
    return f"[{category}:{service or 'general'}] {text if len(text) <= 80 else text[:79] + '…'} ({shown(confidence)})"


def explained(entry: Mapping[str, Any], *, is_in: bool) -> Explained:
    """Say of another taxonomy's entry of a receipt why it is in the prompt, or not."""
    label = _label(entry["taxonomy"], entry["category"], str(entry.get("observation") or ""), entry["confidence"])
    return Explained(entry["id"], label, is_in, entry["reason"] or "among those that match best")


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
