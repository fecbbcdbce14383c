"""Take back what a run did, step by step: memories that nobody changed since are as they were before."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils import timezone

from memories.curate.maintenance.run import Place
from memories.curate.maintenance.steps import BY_NAME, STEPS, Step, changes_of
from memories.errors import Conflict, InvalidMemory
from memories.lifecycle import disagreements
from memories.lifecycle.bulk_write import BATCH, change_all
from memories.lifecycle.lock import writing
from memories.lifecycle.rules import Lifetimes
from memories.lifecycle.undo import Undone
from memories.lifecycle.write import Why
from memories.models import (
    Change,
    Disagreement,
    DisagreementKind,
    MaintenanceRun,
    MaintenanceStep,
    Memory,
    MemoryChange,
    RunState,
    states_before,
    to_utc,
)

UNDOABLE = tuple(step.name for step in STEPS if step.kind is not None)


def undo_until(run: MaintenanceRun) -> datetime:
    """Return until when a run can be undone: when that of the next night begins."""
    return Place.of_settings().next(run.finished_at or run.at)


def undo(run: MaintenanceRun, step: str = "", *, by: str, at: datetime | None = None) -> Undone:
    """Undo a step of a run, or all of it (""); a second time changes nothing.

    What somebody changed since is left alone, and a merge goes back whole or not at all. What is taken back is not done
    again by the next night: decay goes on from here, an end that is over is renewed, a person is asked about a pair.
    Raises Conflict while it runs and after its time, InvalidMemory for a step that cannot be undone.
    """
    when = to_utc(at)
    if step and step not in UNDOABLE:
        raise InvalidMemory(f"The step {step!r} cannot be undone.", f"Steps to undo: {', '.join(UNDOABLE)}.")
    with writing():
        row = MaintenanceRun.objects.select_for_update().get(pk=run.pk)
        if row.state == RunState.RUNNING:
            raise Conflict("The run is not finished.", "Undo it when it is.")
        if when >= undo_until(row):
            raise Conflict(f"{row} can no longer be undone.", "Each memory's page shows what it can go back to.")
        total = Undone(0)
        for one in reversed(STEPS):
            if one.kind is not None and step in ("", one.name):
                total = _sum(total, _undo_step(row, one, by, when))
        remaining = row.steps.filter(name__in=UNDOABLE, undone_at=None).exists()
        if not remaining and row.undone_at is None:
            MaintenanceRun.objects.filter(pk=row.pk).update(undone_at=when, undone_by=by[:150])
        return total


def _sum(one: Undone, other: Undone) -> Undone:
    return Undone(
        one.back + other.back,
        one.already + other.already,
        one.changed_since + other.changed_since,
        one.deleted_since + other.deleted_since,
    )


def _undo_step(run: MaintenanceRun, step: Step, by: str, at: datetime) -> Undone:
    first = MaintenanceStep.objects.filter(run=run, name=step.name, undone_at=None).update(undone_at=at)
    rows = list(changes_of(run, step.name))
    if not first:
        return Undone(0, already=_restored(run, step))
    deleted = sum(row.memory_id is None for row in rows)
    here = [row for row in rows if row.memory_id is not None]
    since = _changed_since(run, here)
    if step.kind == Change.MERGED:
        since |= _with_partners(rows, since)
    back = [row for row in here if row.memory_id not in since]
    words = f"The maintenance of {run.at:%Y-%m-%d} was undone: {step.label.lower()}."
    why = Why(by, at, words, {"undone_maintenance": run.pk, "undone_step": step.name})
    lifetimes = Lifetimes()
    ids = sorted({row.memory_id for row in back if row.memory_id is not None})
    restored = 0
    for start in range(0, len(ids), BATCH):
        part = set(ids[start : start + BATCH])
        states = states_before(row for row in reversed(back) if row.memory_id in part)

        def columns(row: Memory, states: dict[int, dict[str, Any]] = states) -> dict[str, Any]:
            return _columns(row, states[row.pk], step, at, lifetimes)

        restored += change_all(Memory.objects.filter(pk__in=part), Change.RESTORED, why, columns)[0]
    if step.kind == Change.MERGED:
        _ask_about(back, by, at)
    return Undone(restored, changed_since=len(since), deleted_since=deleted)


def _columns(row: Memory, state: dict[str, Any], step: Step, at: datetime, lifetimes: Lifetimes) -> dict[str, Any]:
    """Return the columns that give back what the step took, so that the next sweep does not take it again."""
    if step.name == "lowered":
        return {name: value for name, value in state.items() if name != "decayed_until"}
    if step.name == "expired":
        return state | {"expires_at": lifetimes.end(row, at)}
    return state


def _restored(run: MaintenanceRun, step: Step) -> int:
    conditions = {"kind": Change.RESTORED, "evidence__undone_maintenance": run.pk, "evidence__undone_step": step.name}
    ids = {pk for pk in changes_of(run, step.name).values_list("memory", flat=True) if pk is not None}
    return sum(MemoryChange.objects.filter(memory__in=part, **conditions).count() for part in _parts(ids))


def _changed_since(run: MaintenanceRun, rows: Collection[MemoryChange]) -> set[int]:
    """Return the memories that were changed after these rows, but for what this run did and was undone already."""
    last: dict[int, int] = {}
    for row in rows:
        assert row.memory_id is not None  # noqa: S101
        last[row.memory_id] = max(row.pk, last.get(row.memory_id, 0))
    undone = list(run.steps.exclude(undone_at=None).values_list("name", flat=True))
    ours = Q(evidence__maintenance=run.pk, evidence__step__in=undone) | Q(evidence__undone_maintenance=run.pk)
    ids = set()
    for part in _parts(last):
        later = MemoryChange.objects.filter(memory__in=part, at__gte=run.at).order_by()
        mine = set(later.filter(ours).values_list("pk", flat=True))
        for pk, memory in later.values_list("pk", "memory"):
            if memory is not None and pk > last[memory] and pk not in mine:
                ids.add(memory)
    return ids


def _with_partners(rows: Iterable[MemoryChange], since: set[int]) -> set[int]:
    """Return the memories of the merges that do not go back, since one of their memories was changed or deleted."""
    into = {row.memory_uuid: row.evidence["into"] for row in rows if "into" in row.evidence}
    members: dict[int, set[int]] = {}
    broken = set()
    ids = {row.memory_uuid: row.memory_id for row in rows}
    targets = {ids[uuid]: target for uuid, target in into.items() if ids[uuid] is not None}
    for uuid, target in into.items():
        root = target
        while root in targets:
            root = targets[root]
        members.setdefault(root, {root}).add(target)
        if (loser := ids[uuid]) is None:
            broken.add(root)
        else:
            members[root].add(loser)
    standing = {pk for pk in ids.values() if pk is not None}
    return {
        pk
        for root, group in members.items()
        if root in broken or group & since or not group <= standing
        for pk in group & standing
    }


def _ask_about(back: Iterable[MemoryChange], by: str, at: datetime) -> None:
    """Leave each pair whose merge was undone to a person: neither the next night nor the judge merges it again."""
    for row in back:
        if "into" not in row.evidence:
            continue
        pair = sorted((row.memory_id or 0, int(row.evidence["into"])))
        older, newer = (Memory.objects.get(pk=pk) for pk in pair)
        disagreement = disagreements.note(older, newer, DisagreementKind.DUPLICATE, at=at)
        if disagreement is not None:
            judgement = {"why": f"{by} undid the merge of the nightly maintenance"}
            Disagreement.objects.filter(pk=disagreement.pk).update(judged=judgement, judged_at=at)


def _parts(ids: Iterable[int]) -> list[list[int]]:
    some = sorted(ids)
    return [some[start : start + BATCH] for start in range(0, len(some), BATCH)]


def can_undo(run: MaintenanceRun, at: datetime | None = None) -> bool:
    return run.state != RunState.RUNNING and (at or timezone.now()) < undo_until(run)


__all__ = ["BY_NAME", "UNDOABLE", "can_undo", "undo", "undo_until"]
