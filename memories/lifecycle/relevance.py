"""Learn how relevant project memories are from the sessions that used them, and write it.

`learned()` is the arithmetic, and pure; where the outcomes come from, the caller knows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from memories.lifecycle.bulk_write import BATCH, write_all
from memories.lifecycle.lock import writing
from memories.lifecycle.sweep import PAUSE
from memories.lifecycle.write import Why
from memories.models import Change, Memory, MemoryChange, to_utc

ACTOR = "system"
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
    when, found = to_utc(at), []
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
                kept = row.pk in by_people
                found.append(Adjustment(row.pk, one, row.relevance_score, after, kept))
                why = Why(ACTOR, when, REASON, {"helped_of": f"{one.helped} of {one.decided}", "base_rate": base})
                changes.append((row, Change.EDITED.value, {} if kept else {"relevance_score": after}, why))
            if not dry_run:
                write_all(changes)
    return found


def _set_by_people(rows: Sequence[Memory]) -> set[int]:
    """Return the memories with a score that the last change of it did not learn."""
    scored = {row.pk for row in rows if row.relevance_score is not None}
    changes = MemoryChange.objects.filter(memory__in=scored, after__has_key="relevance_score").order_by("pk")
    last = dict(changes.values_list("memory", "reason"))
    return {pk for pk in scored if last.get(pk) != REASON}
