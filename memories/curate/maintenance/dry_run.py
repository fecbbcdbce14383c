"""Say what a run would do now. Nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memories.curate.maintenance import ageing, duplicates, steps
from memories.lifecycle.bulk_write import BATCH
from memories.lifecycle.sweep import planned
from memories.models import Change, Memory, to_utc


@dataclass(slots=True)
class Planned:
    """What a step would do: `did` memories, proposals or discards; `changes` are (memory id, text, reason).

    `counts` are further figures. For a step that asks a model, `did` is None: nobody knows what it will say.
    """

    name: str
    label: str
    did: int | None = 0
    changes: list[tuple[int, str, str]] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)

    def add(self, row: Memory, reason: str) -> None:
        self.did = (self.did or 0) + 1
        self.changes.append((row.pk, row.observation, reason))


def dry_run(*, at: datetime | None = None, most: int = duplicates.LOOKED_AT) -> list[Planned]:
    """Return what each step of a run at `at` (UTC) would do, by the same rules, in their order.

    `most` limits how many memories are compared for duplicates.
    """
    when = to_utc(at)
    plans = {step.name: Planned(step.name, step.label) for step in steps.STEPS}
    overlay: dict[int, dict[str, Any]] = {}
    lowered = plans["lowered"]
    lowered.counts["deactivated"] = 0
    for row, kind, new, reason in planned(when):
        plans["expired" if kind == Change.EXPIRED else "lowered"].add(row, reason)
        if kind == Change.DECAYED and "active" in new:
            lowered.counts["deactivated"] += 1
        overlay[row.pk] = new
    _merge(plans[steps.MERGED], overlay, most)
    for name in (ageing.STALE, ageing.CLOSED):
        _age(plans[name], name, when, overlay)
    plans["proposals"].did = steps.overdue_proposals(when)
    plans["discards"].did = steps.old_discards(when)
    plans["judged"].did = None
    plans["judged"].counts["wait"] = steps.waiting_pairs()
    plans["categories"].did = None
    return list(plans.values())


def _over(rows: Any, overlay: dict[int, dict[str, Any]]) -> dict[int, Memory]:
    """Return memories by id as they would be by now."""
    by_id = {row.pk: row for row in rows}
    for pk, row in by_id.items():
        for name, value in overlay.get(pk, {}).items():
            setattr(row, name, value)
    return by_id


def _merge(plan: Planned, overlay: dict[int, dict[str, Any]], most: int) -> None:
    after, more = steps.start_of_sweep(None), True
    plan.counts |= {"looked": 0, "asked": 0}
    while more and plan.counts["looked"] < most and plan.counts["asked"] < duplicates.MOST_QUESTIONS:
        some, more = duplicates.look(after, duplicates.BATCH, overlay)
        rows = _over(Memory.objects.filter(pk__in=duplicates.ids_of(some)), overlay)
        for one in some:
            after, plan.counts["looked"] = one.newer, plan.counts["looked"] + 1
            decided = duplicates.decide(one, rows)
            if decided is None:
                continue
            if decided.kind:
                plan.counts["asked"] += 1
                if plan.counts["asked"] >= duplicates.MOST_QUESTIONS:
                    break
                continue
            winner, loser = decided.winner, decided.loser
            plan.add(loser, f"Says the same as memory {winner.pk}. {decided.relation.why}")
            for row, new in (
                (loser, {"active": False}),
                (
                    winner,
                    {
                        "confidence": max(winner.confidence, loser.confidence),
                        "updated_at": max(winner.updated_at, loser.updated_at),
                        "merged_count": winner.merged_count + 1,
                    },
                ),
            ):
                overlay[row.pk] = overlay.get(row.pk, {}) | new
                for name, value in new.items():
                    setattr(row, name, value)


def _age(plan: Planned, name: str, at: datetime, overlay: dict[int, dict[str, Any]]) -> None:
    ids = sorted(ageing.due(name, at).values_list("pk", flat=True))
    plan.counts["left"] = 0
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        exempt = ageing.taken_back(name, part, at)
        plan.counts["left"] += len(exempt)
        for row in _over(Memory.objects.filter(pk__in=set(part) - exempt).order_by("pk"), overlay).values():
            if ageing.columns(name, row, at):
                plan.add(row, ageing.reason(name, row))
