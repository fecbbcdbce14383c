"""The verbs for one memory: each is one function, one transaction, one change row.

`by=` is a user name, agent:<slug> or system; `at=` is aware UTC (default now). A verb returns the change row, or None
when nothing changed. It raises MemoryNotFound, or InvalidMemory for a value that cannot be stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db.models import Value
from django.db.models.functions import Lower, Substr

from memories.capture import fields
from memories.capture.statement import Provenance
from memories.errors import Conflict, InvalidMemory
from memories.lifecycle import rules
from memories.lifecycle.lock import writing
from memories.lifecycle.merge import delete, merge
from memories.lifecycle.new_text import checked_text
from memories.lifecycle.rules import OWN_END, Lifetimes, after_edit
from memories.lifecycle.write import Why, apply, check_unchanged, difference, locked
from memories.models import Change, Inactive, Memory, MemoryChange, Project, Trust, Verdict, stands_behind, to_utc
from memories.models.memory import TEXT_START
from memories.taxonomy import PROJECT, TAXONOMIES, Taxonomy

__all__ = [
    "approve",
    "confirm",
    "contradict",
    "deactivate",
    "delete",
    "edit",
    "mark_persistent",
    "merge",
    "promote",
    "reactivate",
    "reinforce",
    "renew",
    "set_confidence",
]

STAYS_INACTIVE = (Inactive.OPERATOR, Inactive.MERGED, Inactive.SUPERSEDED, Inactive.EXPIRED)
"""Reasons that do not depend on confidence: a reinforcement does not reactivate such a memory."""


BY_CONFIDENCE = (Inactive.DECAYED, Inactive.CONTRADICTED, Inactive.LOWERED)
"""Reasons that a higher confidence ends."""


class Unset:
    """The type of an argument that was not given; None is a value."""


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
    echo: bool = False,
    confirms: bool = False,
    by_person: bool = False,
    restated: float | None = None,
) -> MemoryChange | None:
    """Confirm a memory: more confidence, active again where allowed. Always writes a change row.

    `echo`: by a session that was told the memory. It counts up to ECHO_LIMIT, and beyond that stops no decay.
    `confirms`: by an independent session, so that the memory is unconfirmed no more; `by_person`: by a person, whose
    word it is from then on. `restated` is the confidence
    (0..1) of the statement, where the taxonomy merges one into the known memory.
    """
    why = Why(by, to_utc(at), reason, evidence, session_id, candidate_key)
    with writing():
        row = locked(memory)
        new = reinforced(row, why.at, echo=echo, confirms=confirms, restated=restated, by_person=by_person)
        return apply(row, Change.REINFORCED, new, why, caller=memory, always=True)


def confirm(
    memory: Memory | int,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    expected_change: int | None = None,
) -> MemoryChange | None:
    """Confirm a memory as a person who knows that it holds: as a session reinforces it, and confirmed for good.

    `expected_change` is the latest change the person saw (0: none): raises Conflict when another one came since, so
    that a second click confirms nothing twice. Raises InvalidMemory for a held memory, which needs an approval.
    """
    with writing():
        row = locked(memory)
        if expected_change is not None:
            check_unchanged(row, expected_change)
        if row.verdict == Verdict.HOLD:
            raise InvalidMemory(f"Memory {row.pk} is held for review.", "Approve it instead.")
        return reinforce(memory, by=by, at=at, reason=reason, confirms=True, by_person=True)


def contradict(
    memory: Memory | int,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    evidence: dict[str, Any] | None = None,
    session_id: int | None = None,
) -> MemoryChange | None:
    """Lower the confidence of a contradicted memory; below the taxonomy's threshold it becomes inactive."""
    why = Why(by, to_utc(at), reason, evidence, session_id)
    with writing():
        row = locked(memory)
        new: dict[str, Any] = {"confidence": rules.contradicted(row.confidence, policy(row))}
        if row.active and not rules.is_active(new["confidence"], policy(row)):
            new |= {"active": False, "inactive_reason": Inactive.CONTRADICTED}
        return apply(row, Change.CONTRADICTED, new, why, caller=memory)


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
    project: int | Unset | None = UNSET,
    agent: str | Unset | None = UNSET,
    relevance_score: float | Unset | None = UNSET,
    surface: str | Unset = UNSET,
    active: bool | Unset = UNSET,
    expected_change: int | None = None,
    provenance: Provenance | None = None,
    check: Callable[[Memory, dict[str, Any]], None] | None = None,
) -> MemoryChange | None:
    """Change the given columns and confirm the memory.

    `project` is an id, None makes it global; `agent` is a slug, None makes it that of every agent; `surface` is its
    window of time, "" for none. New text keeps the confidence; only a person's change confirms it
    (`lifecycle.rules`). A confidence is clamped to 0..1; from the threshold on it reactivates, below it
    deactivates. A new text passes the gate unless `provenance` says that a person typed it (raises TextHeld).
    `expected_change` is the latest change the person saw (0: none): raises Conflict when another one came since.
    `check` gets the locked memory and its new columns, and raises for what the caller may not change.
    """
    why = Why(by, to_utc(at), reason, None if isinstance(expires_at, Unset) else {OWN_END: True})
    with writing():
        row = locked(memory)
        if expected_change is not None:
            check_unchanged(row, expected_change)
        new: dict[str, Any] = {}
        if not isinstance(observation, Unset):
            new["observation"] = checked_text(observation, provenance, current=row.observation, taxonomy=row.taxonomy)
        if not isinstance(service, Unset):
            new["service"] = fields.checked_service(service)
        if not isinstance(category, Unset):
            new["category"] = fields.checked_category(category, policy(row))
        if not isinstance(tags, Unset):
            new["tags"] = fields.checked_tags(tags)
        if not isinstance(confidence, Unset):
            new |= at_confidence(row, confidence, why.at)
        end = {} if isinstance(expires_at, Unset) else {"expires_at": expires_at and fields.checked_end(expires_at)}
        if not isinstance(persistent, Unset):
            new |= persistence(row, persistent, why.at)
        new |= end
        new |= _further_columns(row, project, agent, relevance_score, surface)
        if any(getattr(row, name) != value for name, value in new.items()):
            text = str(new.get("observation", row.observation))
            new = confirmed(row, why.at) | new | after_edit(row, text, provenance, why.at)
        kind: str = Change.EDITED
        if not isinstance(active, Unset) and active != row.active:
            if not difference(row, new)[1]:
                kind = Change.REACTIVATED if active else Change.DEACTIVATED
            new |= _switched(row, active, new.get("confidence", row.confidence), why.at) | end
        if check is not None:
            check(row, new)
        return apply(row, kind, new, why, caller=memory)


def _further_columns(
    row: Memory,
    project: int | Unset | None,
    agent: str | Unset | None,
    relevance_score: float | Unset | None,
    surface: str | Unset,
) -> dict[str, Any]:
    new: dict[str, Any] = {}
    if not isinstance(project, Unset):
        if project is not None and not Project.objects.filter(pk=project).exists():
            raise InvalidMemory(f"There is no project {project}.", "It may have been deleted.")
        new["project_id"] = project
    if not isinstance(agent, Unset):
        new["agent"] = None if agent is None else fields.checked_agent(agent, row.taxonomy)
    if not isinstance(relevance_score, Unset):
        new["relevance_score"] = None if relevance_score is None else fields.checked_confidence(relevance_score)
    if not isinstance(surface, Unset):
        new["surface"] = fields.checked_surface(surface, policy(row))
    return new


def _switched(row: Memory, active: bool, confidence: float, at: datetime) -> dict[str, Any]:
    """Return the columns of a deactivated memory, or of one reactivated with at least the threshold."""
    if not active:
        return deactivated(row)
    return reactivated(row, at) | {"confidence": max(confidence, policy(row).inactive_below or 0.0)}


def set_confidence(
    memory: Memory | int, confidence: float, *, by: str, at: datetime | None = None, reason: str = ""
) -> MemoryChange | None:
    """Set the confidence, clamped to 0..1; reactivates and deactivates as `edit` does."""
    why = Why(by, to_utc(at), reason)
    with writing():
        row = locked(memory)
        return apply(row, Change.CONFIDENCE_SET, at_confidence(row, confidence, why.at), why, caller=memory)


def deactivate(
    memory: Memory | int, *, by: str, at: datetime | None = None, reason: str = "", session_id: int | None = None
) -> MemoryChange | None:
    """Deactivate a memory for good: sessions that state it again do not reactivate it."""
    why = Why(by, to_utc(at), reason, session_id=session_id)
    with writing():
        row = locked(memory)
        return apply(row, Change.DEACTIVATED, deactivated(row), why, caller=memory)


def reactivate(memory: Memory | int, *, by: str, at: datetime | None = None, reason: str = "") -> MemoryChange | None:
    """Reactivate a memory, with at least the threshold of its taxonomy as confidence."""
    why = Why(by, to_utc(at), reason)
    with writing():
        row = locked(memory)
        return apply(row, Change.REACTIVATED, reactivated(row, why.at), why, caller=memory)


def mark_persistent(
    memory: Memory | int, persistent: bool = True, *, by: str, at: datetime | None = None, reason: str = ""
) -> MemoryChange | None:
    """Exempt a memory from decay, or (False) resume its decay from now on."""
    why = Why(by, to_utc(at), reason)
    with writing():
        row = locked(memory)
        return apply(row, Change.PERSISTENT_SET, persistence(row, persistent, why.at), why, caller=memory)


def renew(
    memory: Memory | int,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    days: int | None = None,
    end: datetime | None = None,
) -> MemoryChange | None:
    """Let an active memory that expires live longer: a whole lifetime of its type from now; None where it has none.

    With `days` it ends so many days after its end, or after now where that is over; None for one that never expires.
    `end` is the end that the caller saw: None when the memory ends at another time by now, so that a request that
    arrives twice renews once.
    """
    why = Why(by, to_utc(at), reason or "Renewed.")
    with writing():
        row = locked(memory)
        if end is not None and row.expires_at != end:
            return None
        new = renewed(row, why.at) if days is None else extended(row, why.at, days)
        return apply(row, Change.EDITED, new, why, caller=memory)


def promote(memory: Memory | int, *, by: str, at: datetime | None = None, reason: str = "") -> MemoryChange | None:
    """Make a project's memory one of all projects; its history stays. None when it is one already.

    Raises InvalidMemory for a memory of another taxonomy, and when all projects have this text already.
    """
    why = Why(by, to_utc(at), reason)
    with writing():
        row = locked(memory)
        if row.taxonomy != PROJECT.slug:
            raise InvalidMemory(
                f"Memory {row.pk} is of the taxonomy {row.taxonomy}.", "Only project memories are promoted."
            )
        if row.project is None:
            return None
        if (twin := said_to_all(row)) is not None:
            raise InvalidMemory(f"Memory {twin} tells all projects this already.", "Deactivate or merge one of them.")
        why = why._replace(reason=reason or promoted_from(row), evidence={"promoted_from": row.project.slug})
        return apply(row, Change.EDITED, promoted(row), why, caller=memory)


def approve(
    memory: Memory | int,
    *,
    by: str,
    at: datetime | None = None,
    reason: str = "",
    expected_text: str | None = None,
    expected_change: int | None = None,
) -> MemoryChange | None:
    """Approve a memory: it is allowed and confirmed; in the project taxonomy its confidence rises to 1.0.

    Raises Conflict when its text is no longer `expected_text`, which the person read, and when another change came
    after `expected_change` (0: none).
    """
    why = Why(by, to_utc(at), reason)
    with writing():
        row = locked(memory)
        if expected_change is not None:
            check_unchanged(row, expected_change)
        if expected_text is not None and row.observation != expected_text:
            latest = MemoryChange.objects.filter(memory=row).order_by("-pk").first()
            raise Conflict(f"The text of memory {row.pk} was changed.", "Read it again.", current=row, change=latest)
        new = approved(row, why.at, user_id(by), by_person=stands_behind(by))
        return apply(row, Change.APPROVED, new, why, caller=memory)


# The columns that a verb gives a row; the bulk actions use them as well.


def user_id(name: str) -> int | None:
    """Return the account of an actor, None for one without an account."""
    accounts = get_user_model().objects.filter(**{get_user_model().USERNAME_FIELD: name})
    return accounts.values_list("pk", flat=True).first()


def approved(
    row: Memory, at: datetime, user: int | None, lifetimes: Lifetimes | None = None, *, by_person: bool = True
) -> dict[str, Any]:
    """Return the columns of an approval; {} for a memory that is approved and confirmed.

    A person's approval makes it as trusted as an operator. Where its taxonomy says so, its confidence rises; its life
    begins anew where it has a lifetime.
    """
    raised = max(row.confidence, policy(row).approved_confidence or 0.0)
    is_approved = row.verdict == Verdict.ALLOW and row.approved_at is not None and row.confirmed_at is not None
    is_approved = is_approved and (row.trust == Trust.OPERATOR or not by_person)
    if is_approved and raised == row.confidence:
        return {}
    new = {"verdict": Verdict.ALLOW, "approved_at": at, "approved_by_id": user, "confirmed_at": row.confirmed_at or at}
    if by_person:
        new["trust"] = Trust.OPERATOR.value
    new |= {"confidence": raised, **_new_end(row, at, lifetimes)}
    if not row.active and row.inactive_reason in BY_CONFIDENCE and rules.is_active(raised, policy(row)):
        new |= {"active": True, "inactive_reason": ""}
    return new | confirmed(row, at)


def promoted(row: Memory) -> dict[str, Any]:
    """Return the columns of a memory of all projects; {} where that changes nothing, or repeats what they are told."""
    if row.taxonomy != PROJECT.slug or row.project_id is None or said_to_all(row) is not None:
        return {}
    return {"project_id": None}


def promoted_from(row: Memory) -> str:
    return f"Promoted from project {row.project.slug} to all projects." if row.project else ""


def said_to_all(row: Memory) -> int | None:
    """Return the active memory of all projects, of its type, with exactly the text of `row`."""
    start = Lower(Substr(Value(row.observation), 1, 100))  # for the index on the beginnings of texts
    rows = (
        Memory.objects.active()
        .alias(start=TEXT_START)
        .filter(start=start, observation=row.observation, taxonomy=PROJECT.slug, project=None, category=row.category)
    )
    return rows.exclude(pk=row.pk).order_by("pk").values_list("pk", flat=True).first()


def renewed(row: Memory, at: datetime, lifetimes: Lifetimes | None = None) -> dict[str, Any]:
    """Return the columns that begin the life of an active memory anew; {} for one without a lifetime."""
    end = (lifetimes or Lifetimes()).end(row, at) if row.active else None
    return {} if end is None else {"expires_at": end}


def extended(row: Memory, at: datetime, days: int) -> dict[str, Any]:
    """Return the columns of an end that is `days` later; {} for an inactive memory, and for one that never expires."""
    if not row.active or row.expires_at is None:
        return {}
    return {"expires_at": fields.checked_end(max(row.expires_at, at) + timedelta(days=days))}


def _new_end(row: Memory, at: datetime, lifetimes: Lifetimes | None = None) -> dict[str, Any]:
    """Return a new `expires_at` where type or project set a lifetime; an end to come that a person set stays."""
    lifetimes = lifetimes or Lifetimes()
    end = lifetimes.end(row, at)
    stays = end is None or ((row.expires_at is None or row.expires_at > at) and lifetimes.is_own(row))
    return {} if stays else {"expires_at": end}


def reinforced(
    row: Memory,
    at: datetime,
    *,
    echo: bool = False,
    confirms: bool = False,
    restated: float | None = None,
    by_person: bool = False,
) -> dict[str, Any]:
    merges = policy(row).merges
    new = {} if echo and (merges or row.confidence > rules.ECHO_LIMIT) else confirmed(row, at)
    new |= {"confidence": rules.reinforced(row.confidence, policy(row), echo=echo)}
    if merges and restated is not None and not echo:
        new |= {"confidence": max(row.confidence, rules.clamp(restated)), "merged_count": row.merged_count + 1}
    if confirms and row.confirmed_at is None:
        new["confirmed_at"] = at
    if by_person:
        new["trust"] = Trust.OPERATOR.value
    back = not row.active and row.inactive_reason not in STAYS_INACTIVE
    if back and rules.is_active(new["confidence"], policy(row)):
        new |= {"active": True, "inactive_reason": ""}
    return new


def deactivated(row: Memory) -> dict[str, Any]:
    """Return the columns of a deactivation; a merged or superseded memory keeps its more specific reason."""
    if not row.active and row.inactive_reason in (Inactive.MERGED, Inactive.SUPERSEDED):
        return {}
    return {"active": False, "inactive_reason": Inactive.OPERATOR}


def reactivated(row: Memory, at: datetime, lifetimes: Lifetimes | None = None) -> dict[str, Any]:
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
    return new | _new_end(row, at, lifetimes) | confirmed(row, at)


def at_confidence(row: Memory, confidence: float, at: datetime) -> dict[str, Any]:
    """Return the columns for a confidence (clamped); reaching the threshold reactivates unless merged or superseded."""
    value = rules.clamp(confidence)
    if value == row.confidence:
        return {}
    new = confirmed(row, at) | {"confidence": value}
    if not rules.is_active(value, policy(row)):
        return new | ({"active": False, "inactive_reason": Inactive.LOWERED} if row.active else {})
    replaced = row.inactive_reason in (Inactive.MERGED, Inactive.SUPERSEDED)
    return reactivated(row, at) | new if value > row.confidence and not replaced else new


def persistence(row: Memory, persistent: bool, at: datetime, lifetimes: Lifetimes | None = None) -> dict[str, Any]:
    """Return the columns that exempt from decay and from the lifetime of a type, or resume both from `at` on."""
    new: dict[str, Any] = {"persistent": persistent}
    lifetimes = lifetimes or Lifetimes()
    if persistent != row.persistent and (lasts := lifetimes.of(row)) is not None and not lifetimes.is_own(row):
        new["expires_at"] = None if persistent else at + lasts
    if row.persistent and not persistent:
        new["decayed_until"] = max(row.decayed_until or at, at)
    return new


def confirmed(row: Memory, at: datetime) -> dict[str, Any]:
    """Return the columns of a confirmation; what is confirmed is stale no more."""
    updated_at = max(row.updated_at, at)
    return {
        "updated_at": updated_at,
        "decayed_until": rules.kept_decay(updated_at, row.decayed_until, policy(row).decay),
        "stale_at": None,
    }
