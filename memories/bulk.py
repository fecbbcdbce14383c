"""What can be done to many memories at once: one registry, for the admin, the dashboard and the API.

Each action is one transaction over the memories it was given, in batches, with a change row for every memory
that changed: 30,000 deactivations happen or do not. Knows no request; who asks is `by=`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Protocol

from django.db.models import QuerySet

from memories.errors import InvalidMemory, MemoryNotFound
from memories.lifecycle import rules, verbs
from memories.lifecycle.batch import change_all, delete_all
from memories.lifecycle.curate import check_mergeable, merged_away, merged_target
from memories.lifecycle.lock import writing
from memories.lifecycle.record import Why, moment
from memories.models import Change, Memory, MemoryChange

MOST_NAMED = 100
"""Memories a merge names in the evidence of its target; each of the others has a row of its own."""


@dataclass(frozen=True, slots=True)
class BulkResult:
    """How many memories changed and how many had nothing to change; `message` says it to a person.

    `change` is one of the action's change rows, by which `lifecycle.undo` takes it back; None where it cannot.
    """

    changed: int
    unchanged: int
    message: str
    change: int | None = None


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


def deactivate(
    queryset: QuerySet[Memory], *, by: str, at: datetime | None = None, reason: str = "", **params: Any
) -> BulkResult:
    why = Why(by, moment(at), reason)
    return _change("deactivated", queryset, Change.DEACTIVATED, why, verbs.deactivated)


def reactivate(
    queryset: QuerySet[Memory], *, by: str, at: datetime | None = None, reason: str = "", **params: Any
) -> BulkResult:
    why = Why(by, moment(at), reason)
    return _change("reactivated", queryset, Change.REACTIVATED, why, lambda row: verbs.reactivated(row, why.at))


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
    done = f"set to {value:g}"
    return _change(done, queryset, Change.CONFIDENCE_SET, why, lambda row: verbs.at_confidence(row, value, why.at))


def mark_persistent(
    queryset: QuerySet[Memory], *, by: str, at: datetime | None = None, reason: str = "", **params: Any
) -> BulkResult:
    why = Why(by, moment(at), reason)
    done = "marked persistent"
    return _change(done, queryset, Change.PERSISTENT_SET, why, lambda row: verbs.persistence(row, True, why.at))


def unmark_persistent(
    queryset: QuerySet[Memory], *, by: str, at: datetime | None = None, reason: str = "", **params: Any
) -> BulkResult:
    why = Why(by, moment(at), reason)
    done = "let age again"
    return _change(done, queryset, Change.PERSISTENT_SET, why, lambda row: verbs.persistence(row, False, why.at))


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
        for other in others.order_by("pk").iterator():
            check_mergeable(into, [other])
            count += 1
            best_confidence = max(best_confidence, other.confidence)
            if len(sample) < MOST_NAMED:
                sample.append({"id": other.pk, "observation": other.observation})
        if not count:
            raise InvalidMemory("There is nothing to merge.", "Choose at least two memories.")
        new = merged_target(into, [], observation, why.at)
        new |= {"confidence": best_confidence, "merged_count": into.merged_count + count}
        change_all(others, Change.MERGED, why._replace(evidence={"into": into.pk}), lambda row: merged_away(into))
        evidence = {"merged": sample, "count": count}
        change_all(Memory.objects.filter(pk=into.pk), Change.MERGED, why._replace(evidence=evidence), lambda row: new)
        change = _last_change()
    return BulkResult(count + 1, 0, f"{_memories(count)} merged into memory {into.pk}.", change)


def delete(
    queryset: QuerySet[Memory], *, by: str, at: datetime | None = None, reason: str = "", **params: Any
) -> BulkResult:
    """Remove memories; their history stays, and its last row holds the whole memory."""
    count = delete_all(queryset, Why(by, moment(at), reason))
    return BulkResult(count, 0, _said("deleted", count, 0))


def _change(
    done: str, queryset: QuerySet[Memory], kind: str, why: Why, new_of: Callable[[Any], dict[str, Any]]
) -> BulkResult:
    """Change them all; `done` is what the message says of them."""
    with writing():
        changed, unchanged = change_all(queryset, kind, why, new_of)
        return BulkResult(changed, unchanged, _said(done, changed, unchanged), _last_change() if changed else None)


def _last_change() -> int | None:
    """Of this transaction, while it holds the write lock and has written one."""
    return MemoryChange.objects.order_by("-pk").values_list("pk", flat=True).first()


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count:,} memories"


def _said(done: str, changed: int, unchanged: int) -> str:
    rest = f"; {_memories(unchanged)} had nothing to change" if unchanged else ""
    return f"{_memories(changed)} {done}{rest}."


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
