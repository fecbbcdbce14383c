"""Credit the outcome of a session to the memories that it used: the verb for all of one session's.

`learned()` is the arithmetic, and pure; where the outcomes come from, the caller knows.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from memories.lifecycle import rules
from memories.lifecycle.bulk_write import BATCH, batches, write_all
from memories.lifecycle.lock import writing
from memories.lifecycle.sweep import PAUSE
from memories.lifecycle.verbs import BY_CONFIDENCE, policy
from memories.lifecycle.write import Why
from memories.models import Change, Inactive, Memory, MemoryChange, to_utc

ACTOR = "system"


def credit(memories: Collection[int], *, helped: bool, session_id: int, reason: str, at: datetime | None = None) -> int:
    """Raise or lower the memories whose taxonomy says so, with a change row each; return how many changed.

    One transaction. The session is the evidence. It confirms nothing: a memory ages as before.
    """
    why = Why(ACTOR, to_utc(at), reason, {"helped": helped}, session_id)
    changed = 0
    with writing():
        for rows in batches(Memory.objects.filter(pk__in=memories)):
            changed += write_all((row, Change.CREDITED, credited(row, helped=helped), why) for row in rows)
    return changed


def credited(row: Memory, *, helped: bool) -> dict[str, Any]:
    """Return the columns of a credit; {} where the taxonomy knows none. Below its threshold a memory is inactive."""
    confidence = rules.credited(row.confidence, policy(row), helped=helped)
    if confidence == row.confidence:
        return {}
    new: dict[str, Any] = {"confidence": confidence}
    stands = rules.is_active(confidence, policy(row))
    if row.active and not stands:
        new |= {"active": False, "inactive_reason": Inactive.LOWERED}
    elif helped and stands and not row.active and row.inactive_reason in BY_CONFIDENCE:
        new |= {"active": True, "inactive_reason": ""}
    return new


STRENGTH = 4.0
"""How many uses the project's base rate weighs: a memory with few uses stays near 0.5."""
NEUTRAL = 0.5
"""The score of a memory that helps as often as the others, and of one without evidence."""
REASON = "Learned from sessions that used it."


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Of the uses of a memory whose session completed or failed (`decided`): how many completed (`helped`)."""

    helped: int
    decided: int


@dataclass(frozen=True, slots=True)
class Adjustment:
    """One memory and its scores. `kept`: a person set the score, so it stays."""

    memory_id: int
    outcomes: Outcomes
    before: float | None
    after: float
    kept: bool = False


def base_rate(outcomes: Sequence[Outcomes]) -> float:
    """Return the share of decided uses that helped, over all memories of a project; 0.0 when none is decided."""
    decided = sum(one.decided for one in outcomes)
    return sum(one.helped for one in outcomes) / decided if decided else 0.0


def learned(one: Outcomes, base: float) -> float:
    """Return the learned score, 0..1 at four decimals: half the posterior rate by the base rate, at most 1.

    The posterior is the mean of a Beta distribution whose prior is the base rate with the weight of STRENGTH uses.
    `base` is above 0.
    """
    posterior = (one.helped + STRENGTH * base) / (one.decided + STRENGTH)
    return round(min(1.0, NEUTRAL * posterior / base), 4)


def adjust(
    outcomes: Mapping[int, Outcomes],
    base: float,
    *,
    also_set: bool = False,
    dry_run: bool = False,
    at: datetime | None = None,
) -> list[Adjustment]:
    """Write the learned score of each memory, with a change row each, in batches of one transaction each.

    `outcomes` are by memory id. A score that a person set stays unless `also_set`. With `dry_run` nothing is written.
    """
    when, adjustments = to_utc(at), []
    ids = sorted(outcomes)
    for start in range(0, len(ids), BATCH):
        if start and not connection.in_atomic_block:
            time.sleep(PAUSE)
        with writing():
            locked = Memory.objects.select_for_update(of=("self",)).filter(pk__in=ids[start : start + BATCH])
            rows = list(locked.only("uuid", "relevance_score").order_by("pk"))  # what a change row needs
            by_people = set() if also_set else _set_by_people(rows)
            changes = []
            for row in rows:
                one, after = outcomes[row.pk], learned(outcomes[row.pk], base)
                is_kept = row.pk in by_people
                adjustments.append(Adjustment(row.pk, one, row.relevance_score, after, is_kept))
                why = Why(ACTOR, when, REASON, {"helped_of": f"{one.helped} of {one.decided}", "base_rate": base})
                changes.append((row, Change.EDITED.value, {} if is_kept else {"relevance_score": after}, why))
            if not dry_run:
                write_all(changes)
    return adjustments


def _set_by_people(rows: Sequence[Memory]) -> set[int]:
    """Return the memories with a score that the last change of it did not learn."""
    scored = {row.pk for row in rows if row.relevance_score is not None}
    changes = MemoryChange.objects.filter(memory__in=scored, after__has_key="relevance_score").order_by("pk")
    last = dict(changes.values_list("memory", "reason"))
    return {pk for pk in scored if last.get(pk) != REASON}
