"""What can be done to one memory. Each verb is one function, one transaction, one change row.

Every verb takes a memory or its id, `by=` (user name, agent:<slug> or system), `at=` (aware UTC, default now)
and `reason=` in words. It returns the change row, or None when there was nothing to change, and raises
MemoryNotFound, or InvalidMemory for a value that cannot be stored. What many memories get at once is in
`memories/bulk.py`; merging and deleting in `curate.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from django.contrib.auth import get_user_model

from memories.capture import fields
from memories.errors import Conflict
from memories.lifecycle import rules
from memories.lifecycle.curate import delete, merge
from memories.lifecycle.lock import writing
from memories.lifecycle.record import Why, apply, difference, locked, moment
from memories.models import Change, Inactive, Memory, MemoryChange, Verdict
from memories.taxonomy import TAXONOMIES, Taxonomy

__all__ = [
    "approve",
    "contradict",
    "deactivate",
    "delete",
    "edit",
    "mark_persistent",
    "merge",
    "reactivate",
    "reinforce",
    "set_confidence",
]

STAYS_INACTIVE = (Inactive.OPERATOR, Inactive.MERGED, Inactive.SUPERSEDED, Inactive.EXPIRED)
"""Why a memory is inactive although its confidence would carry it: an agent's word does not bring it back."""


class Unset:
    """Of an argument that was not given; None is a value."""


UNSET: Final = Unset()


def policy(row: Memory) -> Taxonomy:
    return TAXONOMIES[row.taxonomy]


def reinforce(
    memory: Memory | int,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    evidence: dict[str, Any] | None = None,
    session_id: int | None = None,
    candidate_key: str | None = None,
) -> MemoryChange | None:
    """Somebody said the same again: more confidence, a fresh `updated_at`, and active again where it may be.

    Always writes its change row, also at full confidence: that it was confirmed is worth knowing.
    """
    why = Why(by, moment(at), reason, evidence, session_id, candidate_key)
    with writing():
        row = locked(memory)
        taxonomy = policy(row)
        new = confirmed(row, why.at) | {"confidence": rules.reinforced(row.confidence, taxonomy)}
        back = not row.active and row.inactive_reason not in STAYS_INACTIVE
        if back and rules.is_active(new["confidence"], taxonomy):
            new |= {"active": True, "inactive_reason": ""}
        return apply(row, Change.REINFORCED, new, why, handed=memory, always=True)


def contradict(
    memory: Memory | int,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    evidence: dict[str, Any] | None = None,
    session_id: int | None = None,
) -> MemoryChange | None:
    """Somebody said otherwise: less confidence, and inactive below the taxonomy's threshold."""
    why = Why(by, moment(at), reason, evidence, session_id)
    with writing():
        row = locked(memory)
        new: dict[str, Any] = {"confidence": rules.contradicted(row.confidence, policy(row))}
        if row.active and not rules.is_active(new["confidence"], policy(row)):
            new |= {"active": False, "inactive_reason": Inactive.CONTRADICTED}
        return apply(row, Change.CONTRADICTED, new, why, handed=memory)


def edit(
    memory: Memory | int,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    observation: str | Unset = UNSET,
    service: str | Unset | None = UNSET,
    category: str | Unset = UNSET,
    confidence: float | Unset = UNSET,
    tags: Iterable[str] | Unset = UNSET,
    expires_at: datetime | Unset | None = UNSET,
    persistent: bool | Unset = UNSET,
    active: bool | Unset = UNSET,
    expected_change: int | None = None,
) -> MemoryChange | None:
    """A person changes what a memory says or how it counts; what is not given stays.

    New text keeps the confidence. A confidence beyond 0..1 is clamped, from the threshold on it brings an
    inactive memory back, below it deactivates. What a person edits is confirmed by it (`updated_at`).
    `expected_change` is the id of the latest change the person saw (0 for none): raises Conflict when another
    one came since.
    """
    why = Why(by, moment(at), reason)
    with writing():
        row = locked(memory)
        if expected_change is not None:
            check_unchanged(row, expected_change)
        new: dict[str, Any] = {}
        if not isinstance(observation, Unset):
            new["observation"] = fields.checked_observation(observation)
        if not isinstance(service, Unset):
            new["service"] = fields.checked_service(service)
        if not isinstance(category, Unset):
            new["category"] = fields.checked_category(category, policy(row))
        if not isinstance(tags, Unset):
            new["tags"] = fields.checked_tags(tags)
        if not isinstance(confidence, Unset):
            new |= at_confidence(row, confidence, why.at)
        if not isinstance(expires_at, Unset):
            new["expires_at"] = expires_at and moment(expires_at)
        if not isinstance(persistent, Unset):
            new |= persistence(row, persistent, why.at)
        if any(getattr(row, name) != value for name, value in new.items()):
            new = confirmed(row, why.at) | new
        kind: str = Change.EDITED
        if not isinstance(active, Unset) and active != row.active:
            if not difference(row, new)[1]:
                kind = Change.REACTIVATED if active else Change.DEACTIVATED
            new |= _switched(row, active, new.get("confidence", row.confidence), why.at)
        return apply(row, kind, new, why, handed=memory)


def check_unchanged(row: Memory, expected: int) -> None:
    """Raises Conflict unless the latest change of the locked `row` is the `expected` one (0: it has none)."""
    latest = MemoryChange.objects.filter(memory=row).order_by("-pk").first()
    if (latest.pk if latest else 0) != expected:
        raise Conflict(
            f"Memory {row.pk} was changed meanwhile.",
            "Look at what it says now, then save again.",
            current=row,
            change=latest,
        )


def _switched(row: Memory, active: bool, confidence: float, at: datetime) -> dict[str, Any]:
    """Taken out of use, or brought back with what `confidence` it is given, at least the threshold."""
    if not active:
        return deactivated(row)
    return reactivated(row, at) | {"confidence": max(confidence, policy(row).inactive_below or 0.0)}


def set_confidence(
    memory: Memory | int, confidence: float, *, by: str, at: datetime | None = None, reason: str = ""
) -> MemoryChange | None:
    """Set how much a memory counts, clamped to 0..1; activates and deactivates as `edit` does."""
    why = Why(by, moment(at), reason)
    with writing():
        row = locked(memory)
        return apply(row, Change.CONFIDENCE_SET, at_confidence(row, confidence, why.at), why, handed=memory)


def deactivate(memory: Memory | int, *, by: str, at: datetime | None = None, reason: str = "") -> MemoryChange | None:
    """Take a memory out of use, for good: sessions that say it again do not bring it back."""
    why = Why(by, moment(at), reason)
    with writing():
        row = locked(memory)
        return apply(row, Change.DEACTIVATED, deactivated(row), why, handed=memory)


def reactivate(memory: Memory | int, *, by: str, at: datetime | None = None, reason: str = "") -> MemoryChange | None:
    """Bring an inactive memory back, with at least the confidence its taxonomy asks of an active one."""
    why = Why(by, moment(at), reason)
    with writing():
        row = locked(memory)
        return apply(row, Change.REACTIVATED, reactivated(row, why.at), why, handed=memory)


def mark_persistent(
    memory: Memory | int, persistent: bool = True, *, by: str, at: datetime | None = None, reason: str = ""
) -> MemoryChange | None:
    """Exempt a memory from decay, or (False) let it decay again from now on."""
    why = Why(by, moment(at), reason)
    with writing():
        row = locked(memory)
        return apply(row, Change.PERSISTENT_SET, persistence(row, persistent, why.at), why, handed=memory)


def approve(
    memory: Memory | int,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    expected_text: str | None = None,
) -> MemoryChange | None:
    """A person has looked at a memory and lets it be used; for a held one this is the way into prompts.

    `expected_text` is the observation the person read: raises Conflict when it says something else by now.
    """
    why = Why(by, moment(at), reason)
    with writing():
        row = locked(memory)
        if expected_text is not None and row.observation != expected_text:
            latest = MemoryChange.objects.filter(memory=row).order_by("-pk").first()
            raise Conflict(f"Memory {row.pk} says something else by now.", "Read it again.", current=row, change=latest)
        if row.verdict == Verdict.ALLOW and row.approved_at is not None:
            return None
        users = get_user_model().objects
        user = users.filter(**{get_user_model().USERNAME_FIELD: by}).first()
        new = {"verdict": Verdict.ALLOW, "approved_at": why.at, "approved_by_id": user and user.pk}
        return apply(row, Change.APPROVED, new | confirmed(row, why.at), why, handed=memory)


# The columns a verb gives a row. `memories/bulk.py` gives them to many.


def deactivated(row: Memory) -> dict[str, Any]:
    """Taken out of use by a person; a memory that went into another stays just that, which says more."""
    if not row.active and row.inactive_reason in (Inactive.MERGED, Inactive.SUPERSEDED):
        return {}
    return {"active": False, "inactive_reason": Inactive.OPERATOR}


def reactivated(row: Memory, at: datetime) -> dict[str, Any]:
    """Brought back; empty for an active one."""
    if row.active:
        return {}
    new = {
        "active": True,
        "inactive_reason": "",
        "confidence": max(row.confidence, policy(row).inactive_below or 0.0),
        "superseded_by_id": None,
    }
    if row.expires_at is not None and row.expires_at <= at:
        new["expires_at"] = None  # or the next sweep would end it again
    return new | confirmed(row, at)


def at_confidence(row: Memory, confidence: float, at: datetime) -> dict[str, Any]:
    """At another confidence (clamped), and active or not as it follows; empty when it has it already.

    Raised to the threshold or above, an inactive memory comes back, unless another one took its place.
    """
    value = rules.clamp(confidence)
    if value == row.confidence:
        return {}
    new = confirmed(row, at) | {"confidence": value}
    if not rules.is_active(value, policy(row)):
        return new | ({"active": False, "inactive_reason": Inactive.LOWERED} if row.active else {})
    replaced = row.inactive_reason in (Inactive.MERGED, Inactive.SUPERSEDED)
    return reactivated(row, at) | new if value > row.confidence and not replaced else new


def persistence(row: Memory, persistent: bool, at: datetime) -> dict[str, Any]:
    """Exempt from decay or not; the time a memory was exempt is not taken from it afterwards."""
    new: dict[str, Any] = {"persistent": persistent}
    if row.persistent and not persistent:
        new["decayed_until"] = max(row.decayed_until or at, at)
    return new


def confirmed(row: Memory, at: datetime) -> dict[str, Any]:
    """Known to hold at `at`."""
    updated_at = max(row.updated_at, at)
    return {
        "updated_at": updated_at,
        "decayed_until": rules.kept_decay(updated_at, row.decayed_until, policy(row).decay),
    }
