"""The registry of actions on many memories. Each is one transaction, with a change row per changed memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from django.db.models import QuerySet

from memories.capture import fields
from memories.capture.statement import Provenance
from memories.errors import InvalidMemory
from memories.lifecycle import merge as merging
from memories.lifecycle import rules, verbs
from memories.lifecycle.bulk_write import change_all, delete_all
from memories.lifecycle.lock import writing
from memories.lifecycle.rules import Lifetimes, after_edit
from memories.lifecycle.write import Why
from memories.models import Change, Memory, MemoryChange, Verdict, to_utc


@dataclass(frozen=True, slots=True)
class BulkResult:
    """`change` is one of the action's change rows, for `lifecycle.undo`; None when nothing can be undone."""

    changed: int
    unchanged: int
    message: str
    change: int | None = None


@dataclass(frozen=True, slots=True)
class Param:
    """A value that an action asks for. `kind` is confidence (0 to 1), memory (an id), service, category or text."""

    name: str
    label: str
    kind: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class BulkAction:
    """One action. `verb(queryset, why, **params)` returns (changed, unchanged, description in words).

    `adds_up`: sent twice, it changes twice. Its verb takes `drawn`, the time of the page that it was sent from.
    """

    name: str
    label: str
    kind: Change
    verb: Callable[..., tuple[int, int, str]]
    confirm: bool = False
    params: tuple[Param, ...] = ()
    adds_up: bool = False

    def run(
        self,
        queryset: QuerySet[Memory],
        *,
        by: str,
        at: datetime | None = None,
        reason: str = "",
        provenance: Provenance | None = None,
        drawn: datetime | None = None,
        **params: Any,
    ) -> BulkResult:
        """Run on all of `queryset`, or on none. Raises InvalidMemory or MemoryNotFound.

        `provenance` is that of a text among `params`: without it the gate judges the text. `drawn` (aware) is when the
        page was drawn that the person saw: an action that adds up leaves alone what was changed alike since then, so
        that a form that arrives twice counts once. Without it each call counts.
        """
        why = Why(by, to_utc(at), reason, provenance=provenance)
        if self.adds_up:
            params["drawn"] = drawn
        with writing():
            changed, unchanged, message = self.verb(queryset, why, **params)
            rest = f"; {_memories(unchanged)} had nothing to change" if unchanged else ""
            last = None
            if changed and self.kind != Change.DELETED:  # the latest change is ours: we hold the write lock
                last = MemoryChange.objects.order_by("-pk").values_list("pk", flat=True).first()
            return BulkResult(changed, unchanged, f"{message}{rest}.", last)


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count:,} memories"


def _changing(
    name: str,
    label: str,
    kind: Change,
    outcome: str,
    columns: Callable[..., dict[str, Any]],
    *,
    params: tuple[Param, ...] = (),
) -> BulkAction:
    """Make an action that gives every memory the columns `columns(row, at, **params)`, as a verb does."""

    def verb(queryset: QuerySet[Memory], why: Why, **values: Any) -> tuple[int, int, str]:
        arguments = {param.name: _checked(param, values.get(param.name)) for param in params}
        changed, unchanged = change_all(queryset, kind, why, lambda row: columns(row, why.at, **arguments))
        return changed, unchanged, f"{_memories(changed)} {outcome.format(**arguments)}"

    return BulkAction(name, label, kind, verb, params=params)


def _checked(param: Param, value: Any) -> Any:
    if value is None:
        raise InvalidMemory(f"{param.name} is missing; allowed is a number from 0 to 1.")
    return rules.clamp(value)


def _merge(
    queryset: QuerySet[Memory], why: Why, *, target: int | None = None, observation: str | None = None
) -> tuple[int, int, str]:
    """Merge `queryset` into `target` (an id; None: the active memory with the highest confidence)."""
    if target is None:
        target = queryset.filter(active=True).order_by("-confidence", "pk").values_list("pk", flat=True).first()
        if target is None:
            raise InvalidMemory("None of these memories is active; there is nothing to merge into.")
    others = queryset.exclude(pk=target)
    count = others.count()
    merging.merge(
        target,
        others,
        by=why.by,
        at=why.at,
        reason=why.reason,
        observation=observation,
        provenance=why.provenance,
    )
    return count + 1, 0, f"{_memories(count)} merged into memory {target}"


def _approve(queryset: QuerySet[Memory], why: Why) -> tuple[int, int, str]:
    """Approve `queryset`, held or unconfirmed. Only a person does."""
    if why.provenance is None or not why.provenance.typed:
        raise InvalidMemory("Only a person approves.", "Approve them in the dashboard, the admin or the command line.")
    user, lifetimes = verbs.user_id(why.by), Lifetimes(queryset)
    changed, unchanged = change_all(
        queryset, Change.APPROVED, why, lambda row: verbs.approved(row, why.at, user, lifetimes)
    )
    return changed, unchanged, f"{_memories(changed)} approved"


def _reactivate(queryset: QuerySet[Memory], why: Why) -> tuple[int, int, str]:
    lifetimes = Lifetimes(queryset)
    changed, unchanged = change_all(
        queryset, Change.REACTIVATED, why, lambda row: verbs.reactivated(row, why.at, lifetimes)
    )
    return changed, unchanged, f"{_memories(changed)} reactivated"


def _set_persistent(queryset: QuerySet[Memory], why: Why, *, persistent: bool) -> tuple[int, int, str]:
    lifetimes = Lifetimes(queryset)
    changed, unchanged = change_all(
        queryset, Change.PERSISTENT_SET, why, lambda row: verbs.persistence(row, persistent, why.at, lifetimes)
    )
    return changed, unchanged, f"{_memories(changed)} {'marked persistent' if persistent else 'set to decay again'}"


def _renew(queryset: QuerySet[Memory], why: Why) -> tuple[int, int, str]:
    lifetimes = Lifetimes()
    why = why._replace(reason=why.reason or "Renewed.")
    changed, unchanged = change_all(queryset, Change.EDITED, why, lambda row: verbs.renewed(row, why.at, lifetimes))
    return changed, unchanged, f"{_memories(changed)} renewed"


def _extend(queryset: QuerySet[Memory], why: Why, *, drawn: datetime | None = None) -> tuple[int, int, str]:
    """Let `queryset` end EXTENDED_DAYS later, but for those whose end was changed since `drawn`."""
    why = why._replace(reason=why.reason or "Renewed.")
    since: set[int | None] = set()
    if drawn is not None:
        rows = MemoryChange.objects.filter(at__gte=drawn, after__has_key="expires_at")
        since = set(rows.filter(memory__in=queryset.order_by().values("pk")).values_list("memory", flat=True))
    changed, unchanged = change_all(
        queryset,
        Change.EDITED,
        why,
        lambda row: {} if row.pk in since else verbs.extended(row, why.at, EXTENDED_DAYS),
    )
    return changed, unchanged, f"{_memories(changed)} renewed by {EXTENDED_DAYS} days"


def _promote(queryset: QuerySet[Memory], why: Why) -> tuple[int, int, str]:
    """Make project memories of `queryset` ones of all projects. Only a person does: a token is limited to its project.

    What is of another taxonomy, of all projects already, or told to them already in the same words stays.
    """
    if why.provenance is None or not why.provenance.typed:
        raise InvalidMemory("Only a person promotes.", "Promote them in the dashboard, the admin or the command line.")
    changed = count = 0
    for row in queryset.order_by("pk").select_related("project").iterator(chunk_size=500):
        count += 1
        if not verbs.promoted(row):
            continue
        verbs.promote(row.pk, by=why.by, at=why.at, reason=why.reason)
        changed += 1
    return changed, count - changed, f"{_memories(changed)} promoted to all projects"


def _reject(queryset: QuerySet[Memory], why: Why) -> tuple[int, int, str]:
    """Deactivate those of `queryset` that wait for a person: read, and not to be told."""
    why = why._replace(reason=f"{REJECTED} {why.reason}".strip())
    changed, unchanged = change_all(
        queryset, Change.DEACTIVATED, why, lambda row: verbs.deactivated(row) if row.waits else {}
    )
    return changed, unchanged, f"{_memories(changed)} rejected"


def _confirm(queryset: QuerySet[Memory], why: Why) -> tuple[int, int, str]:
    """Confirm `queryset`, as a person who knows that they hold. A held one needs an approval and stays."""
    if why.provenance is None or not why.provenance.typed:
        raise InvalidMemory("Only a person confirms.", "Confirm them in the dashboard or the admin.")
    changed, unchanged = change_all(
        queryset,
        Change.REINFORCED,
        why,
        lambda row: {} if row.verdict == Verdict.HOLD else verbs.reinforced(row, why.at, confirms=True, by_person=True),
    )
    return changed, unchanged, f"{_memories(changed)} confirmed"


def _reassign(
    queryset: QuerySet[Memory], why: Why, *, service: str | None = None, category: str | None = None
) -> tuple[int, int, str]:
    """Give `queryset` a service (`general`: none), a category of each one's taxonomy, or both; None stays."""
    if not service and not category:
        raise InvalidMemory("Neither a service nor a category is given.", "Give one of them, or both.")
    values: dict[str, Any] = {"service": fields.checked_service(service)} if service else {}

    def columns(row: Memory) -> dict[str, Any]:
        new = dict(values)
        if category:
            new["category"] = fields.checked_category(category, verbs.policy(row))
        if all(getattr(row, name) == value for name, value in new.items()):
            return {}
        return verbs.confirmed(row, why.at) | new | after_edit(row, row.observation, why.provenance, why.at)

    changed, unchanged = change_all(queryset, Change.EDITED, why, columns)
    to = " and ".join(filter(None, (service and f"service {service}", category and f"category {category}")))
    return changed, unchanged, f"{_memories(changed)} moved to {to}"


def _delete(queryset: QuerySet[Memory], why: Why) -> tuple[int, int, str]:
    count = delete_all(queryset, why)
    return count, 0, f"{_memories(count)} deleted"


CONFIDENCE = Param("confidence", "Confidence, from 0 to 1", "confidence")
TARGET = Param("target", "Merge into memory (empty: the one with the highest confidence)", "memory", required=False)
TEXT = Param("observation", "Text of the merged memory (empty: the target's own)", "text", required=False)
SERVICE = Param("service", "Service (empty: it stays; general: none)", "service", required=False)
CATEGORY = Param("category", "Category", "category", required=False)
REJECTED = "Rejected in review."
EXTENDED_DAYS = 30

BULK_ACTIONS: Mapping[str, BulkAction] = MappingProxyType(
    {
        action.name: action
        for action in (
            BulkAction("approve", "Approve", Change.APPROVED, _approve),
            BulkAction("reject", "Reject", Change.DEACTIVATED, _reject),
            BulkAction("confirm", "Confirm", Change.REINFORCED, _confirm),
            BulkAction("reassign", "Service, category", Change.EDITED, _reassign, params=(SERVICE, CATEGORY)),
            _changing(
                "deactivate", "Deactivate", Change.DEACTIVATED, "deactivated", lambda row, at: verbs.deactivated(row)
            ),
            BulkAction("reactivate", "Reactivate", Change.REACTIVATED, _reactivate),
            BulkAction("promote", "Promote to all projects", Change.EDITED, _promote, confirm=True),
            BulkAction("renew", "Renew (expires later)", Change.EDITED, _renew),
            BulkAction("extend", f"Renew by {EXTENDED_DAYS} days", Change.EDITED, _extend, adds_up=True),
            _changing(
                "set_confidence",
                "Set confidence",
                Change.CONFIDENCE_SET,
                "set to {confidence:g}",
                lambda row, at, confidence: verbs.at_confidence(row, confidence, at),
                params=(CONFIDENCE,),
            ),
            BulkAction(
                "mark_persistent",
                "Mark persistent (never decays)",
                Change.PERSISTENT_SET,
                partial(_set_persistent, persistent=True),
            ),
            BulkAction(
                "unmark_persistent", "Resume decay", Change.PERSISTENT_SET, partial(_set_persistent, persistent=False)
            ),
            BulkAction("merge", "Merge", Change.MERGED, _merge, confirm=True, params=(TARGET, TEXT)),
            BulkAction("delete", "Delete", Change.DELETED, _delete, confirm=True),
        )
    }
)
OF_REVIEW = frozenset(("reactivate", "renew", "extend", "set_confidence", "mark_persistent", "unmark_persistent"))
"""Those that do a part of what an approval does: a token needs the scope review."""
