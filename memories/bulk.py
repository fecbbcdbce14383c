"""What can be done to many memories at once: one registry, for the admin, the dashboard and the API.

Each action is one transaction over the memories it was given, in batches, with a change row for every memory
that changed: 30,000 deactivations happen or do not. Knows no request; who asks is `by=`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Protocol

from django.db.models import QuerySet

from memories.errors import InvalidMemory, MemoryNotFound
from memories.lifecycle import rules, verbs
from memories.lifecycle.curate import check_mergeable, merged_away, merged_target
from memories.lifecycle.lock import writing
from memories.lifecycle.record import Why, change_of, difference, moment, whole_row
from memories.models import Change, Memory, MemoryChange

BATCH = 1000
"""Rows in memory at once; also far below what either database takes as parameters of one statement."""


@dataclass(frozen=True, slots=True)
class BulkResult:
    """How many memories changed and how many had nothing to change; `message` says it to a person."""

    changed: int
    unchanged: int
    message: str


@dataclass(frozen=True, slots=True)
class Param:
    """A value an action asks for. `kind` is confidence (number from 0 to 1), memory (an id) or text."""

    name: str
    label: str
    kind: str
    required: bool = True


class Run(Protocol):
    def __call__(
        self, queryset: QuerySet[Memory], *, by: str, at: datetime | None = None, reason: str = "", **params: Any
    ) -> BulkResult: ...


@dataclass(frozen=True, slots=True)
class BulkAction:
    """One action: its button, and `run(queryset, by=, at=, reason=, **params)`.

    `confirm` is set where it cannot be taken back; `params` are the further values it needs.
    """

    name: str
    label: str
    run: Run
    confirm: bool = False
    params: tuple[Param, ...] = ()


def batches(queryset: QuerySet[Memory]) -> Iterator[list[Memory]]:
    """The memories of `queryset`, locked, in batches by id.

    The ids are taken first: an action may change what the queryset filters by.
    """
    ids = sorted(queryset.order_by().values_list("pk", flat=True))
    for start in range(0, len(ids), BATCH):
        rows = Memory.objects.select_for_update(of=("self",)).filter(pk__in=ids[start : start + BATCH])
        yield list(rows.order_by("pk"))


def change_all(
    queryset: QuerySet[Memory], kind: str, why: Why, new_of: Callable[[Memory], dict[str, Any]]
) -> tuple[int, int]:
    """Give every memory the columns `new_of` names for it. Returns (changed, unchanged)."""
    changed = unchanged = 0
    with writing():
        for rows in batches(queryset):
            moved: list[Memory] = []
            changes: list[MemoryChange] = []
            columns: set[str] = set()
            for row in rows:
                new = new_of(row)
                before, after = difference(row, new)
                if not after:
                    unchanged += 1
                    continue
                for name in after:
                    setattr(row, name, new[name])
                columns |= set(after)
                moved.append(row)
                changes.append(change_of(row, kind, before, after, why))
            write(moved, columns)
            MemoryChange.objects.bulk_create(changes, batch_size=BATCH)
            changed += len(moved)
    return changed, unchanged


def write(rows: list[Memory], columns: set[str]) -> None:
    """Save `columns` of `rows`: one UPDATE for all rows that get the same values."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    names = sorted(columns)
    for row in rows:
        groups.setdefault(tuple(getattr(row, name) for name in names), []).append(row.pk)
    for values, ids in groups.items():
        Memory.objects.filter(pk__in=ids).update(**dict(zip(names, values, strict=True)))


def deactivate(
    queryset: QuerySet[Memory], *, by: str, at: datetime | None = None, reason: str = "", **params: Any
) -> BulkResult:
    why = Why(by, moment(at), reason)
    return _result("deactivated", *change_all(queryset, Change.DEACTIVATED, why, verbs.deactivated))


def reactivate(
    queryset: QuerySet[Memory], *, by: str, at: datetime | None = None, reason: str = "", **params: Any
) -> BulkResult:
    why = Why(by, moment(at), reason)
    done = change_all(queryset, Change.REACTIVATED, why, lambda row: verbs.reactivated(row, why.at))
    return _result("reactivated", *done)


def set_confidence(
    queryset: QuerySet[Memory],
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    confidence: float | None = None,
    **params: Any,
) -> BulkResult:
    if confidence is None:
        raise InvalidMemory("confidence is missing; allowed is a number from 0 to 1.")
    value = rules.clamp(confidence)
    why = Why(by, moment(at), reason)
    done = change_all(queryset, Change.CONFIDENCE_SET, why, lambda row: verbs.at_confidence(row, value, why.at))
    return _result(f"set to {value:g}", *done)


def mark_persistent(
    queryset: QuerySet[Memory], *, by: str, at: datetime | None = None, reason: str = "", **params: Any
) -> BulkResult:
    why = Why(by, moment(at), reason)
    done = change_all(queryset, Change.PERSISTENT_SET, why, lambda row: verbs.persistence(row, True, why.at))
    return _result("marked persistent", *done)


def unmark_persistent(
    queryset: QuerySet[Memory], *, by: str, at: datetime | None = None, reason: str = "", **params: Any
) -> BulkResult:
    why = Why(by, moment(at), reason)
    done = change_all(queryset, Change.PERSISTENT_SET, why, lambda row: verbs.persistence(row, False, why.at))
    return _result("let age again", *done)


def merge(
    queryset: QuerySet[Memory],
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    target: int | None = None,
    observation: str | None = None,
    **params: Any,
) -> BulkResult:
    """Merge the others of `queryset` into `target` (an id; the surest active one when None)."""
    why = Why(by, moment(at), reason)
    with writing():
        if target is None:
            best = queryset.filter(active=True).order_by("-confidence", "pk").first()
            if best is None:
                raise InvalidMemory("None of these memories is active; there is nothing to merge into.")
            target = best.pk
        into = Memory.objects.select_for_update(of=("self",)).filter(pk=target).first()
        if into is None:
            raise MemoryNotFound(f"There is no memory {target}.")
        others = queryset.exclude(pk=into.pk)
        count, best_confidence = 0, into.confidence
        sample: list[dict[str, Any]] = []
        for rows in batches(others):
            check_mergeable(into, rows)
            count += len(rows)
            best_confidence = max([best_confidence, *(row.confidence for row in rows)])
            sample += [{"id": row.pk, "observation": row.observation} for row in rows[: 100 - len(sample)]]
        if not count:
            raise InvalidMemory("There is nothing to merge.", "Choose at least two memories.")
        new = merged_target(into, [], observation, why.at)
        new |= {"confidence": best_confidence, "merged_count": into.merged_count + count}
        change_all(others, Change.MERGED, why._replace(evidence={"into": into.pk}), lambda row: merged_away(into))
        evidence = {"merged": sample, "count": count}
        change_all(Memory.objects.filter(pk=into.pk), Change.MERGED, why._replace(evidence=evidence), lambda row: new)
    return BulkResult(count + 1, 0, f"{_memories(count)} merged into memory {into.pk}.")


def delete(
    queryset: QuerySet[Memory], *, by: str, at: datetime | None = None, reason: str = "", **params: Any
) -> BulkResult:
    """Remove memories; their history stays, and its last row holds the whole memory."""
    why = Why(by, moment(at), reason)
    count = 0
    with writing():
        for rows in batches(queryset):
            changes = [change_of(row, Change.DELETED, whole_row(row), {}, why) for row in rows]
            for change in changes:
                change.memory_id = None
            MemoryChange.objects.bulk_create(changes, batch_size=BATCH)
            Memory.objects.filter(pk__in=[row.pk for row in rows]).delete()
            count += len(rows)
    return _result("deleted", count, 0)


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count:,} memories"


def _result(done: str, changed: int, unchanged: int) -> BulkResult:
    message = f"{_memories(changed)} {done}"
    if unchanged:
        message += f"; {_memories(unchanged)} had nothing to change"
    return BulkResult(changed, unchanged, message + ".")


CONFIDENCE = Param("confidence", "Confidence, from 0 to 1", "confidence")
TARGET = Param("target", "Merge into memory (empty: the surest one)", "memory", required=False)
TEXT = Param("observation", "Text of the merged memory (empty: the target's own)", "text", required=False)

BULK_ACTIONS: Mapping[str, BulkAction] = MappingProxyType(
    {
        action.name: action
        for action in (
            BulkAction("deactivate", "Deactivate", deactivate),
            BulkAction("reactivate", "Reactivate", reactivate),
            BulkAction("set_confidence", "Set confidence", set_confidence, params=(CONFIDENCE,)),
            BulkAction("mark_persistent", "Mark persistent (never decays)", mark_persistent),
            BulkAction("unmark_persistent", "Let decay again", unmark_persistent),
            BulkAction("merge", "Merge", merge, confirm=True, params=(TARGET, TEXT)),
            BulkAction("delete", "Delete", delete, confirm=True),
        )
    }
)
