"""The steps of a maintenance run, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Sum

from memories.curate import proposals
from memories.curate.maintenance import ageing, duplicates
from memories.curate.maintenance.categories import shares
from memories.judging import judge_waiting
from memories.lifecycle import disagreements, gate_decisions
from memories.lifecycle.bulk_write import BATCH, write_all
from memories.lifecycle.merge import merge
from memories.lifecycle.sweep import ACTOR, sweep
from memories.lifecycle.write import Why
from memories.llm.batch import TASK_CALLS, TASK_SECONDS
from memories.models import (
    Change,
    Disagreement,
    GateDecision,
    MaintenanceRun,
    MaintenanceStep,
    Memory,
    MemoryChange,
    ModelCall,
    Proposal,
    ProposalState,
    Verdict,
)
from memories.models.change import MemoryChangeQuerySet
from memories.taxonomy import TAXONOMIES

Cursor = dict[str, Any]

AFTER, ENDED = "after", "ended"
"""Keys of a cursor: the id behind which the step goes on, and whether its last batch is written."""


def _look_at_nothing(run: MaintenanceRun, cursor: Cursor) -> Any:
    return None


def _write_nothing(run: MaintenanceRun, cursor: Cursor, batch: Any) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Step:
    """A step in batches: `look` reads, `write` writes in the transaction that stores the cursor, and says whether more
    follows. `after` is for work with transactions of its own, which is idempotent; it comes last.

    `kind` is that of its changes, which can be undone; None for a step without.
    """

    name: str
    label: str
    note: str
    look: Callable[[MaintenanceRun, Cursor], Any] = _look_at_nothing
    write: Callable[[MaintenanceRun, Cursor, Any], bool] = _write_nothing
    after: Callable[[MaintenanceRun, Cursor], None] | None = None
    kind: Change | None = None
    figures: Callable[[MaintenanceRun, MaintenanceStep], dict[str, Any]] | None = None


def evidence_of(run: MaintenanceRun, step: str) -> dict[str, Any]:
    """Return what each change of a step of a run bears, by which it is found."""
    return {"maintenance": run.pk, "step": step}


def changes_of(run: MaintenanceRun, step: str) -> MemoryChangeQuerySet:
    """Return the changes of a step: by their time, which has an index."""
    rows = MemoryChange.objects.filter(at=run.at, actor=ACTOR, evidence__maintenance=run.pk, evidence__step=step)
    return rows.order_by("pk")


def changed_memories(run: MaintenanceRun, step: Step) -> MemoryChangeQuerySet:
    """Return one change for each memory that the step was about: of a merge, that of the memory which was given up."""
    rows = changes_of(run, step.name)
    return rows.filter(evidence__has_key="into") if step.kind == Change.MERGED else rows


def counted(step: Step, run: MaintenanceRun, row: MaintenanceStep) -> dict[str, Any]:
    """Return the figures of a step: `did`, and what it says beside. From what is stored, so a crash loses none."""
    figures = {key: value for key, value in row.cursor.items() if key not in (AFTER, ENDED)}
    if step.kind is not None:
        figures["did"] = changed_memories(run, step).count()
    return figures | (step.figures(run, row) if step.figures else {})


def _sweep(only: Change, name: str) -> Callable[[MaintenanceRun, Cursor], None]:
    def work(run: MaintenanceRun, cursor: Cursor) -> None:
        sweep(run.at, source="maintenance", only=only, evidence=evidence_of(run, name))

    return work


def _faded(run: MaintenanceRun, row: MaintenanceStep) -> dict[str, Any]:
    return {"deactivated": changes_of(run, row.name).filter(after__active=False).count()}


def _aged(name: str) -> Step:
    def look(run: MaintenanceRun, cursor: Cursor) -> list[int]:
        rows = ageing.due(name, run.at).filter(pk__gt=cursor.get(AFTER, 0)).order_by("pk")
        return list(rows.values_list("pk", flat=True)[:BATCH])

    def write(run: MaintenanceRun, cursor: Cursor, ids: list[int]) -> bool:
        exempt = ageing.taken_back(name, ids, run.at)
        rows = Memory.objects.select_for_update(of=("self",)).filter(pk__in=set(ids) - exempt).order_by("pk")
        changes = []
        for row in rows:
            new = ageing.columns(name, row, run.at)
            why = Why(ACTOR, run.at, ageing.reason(name, row) if new else "", evidence_of(run, name))
            changes.append((row, ageing.kind_of(name), new, why))
        write_all(changes)
        cursor["left"] = cursor.get("left", 0) + len(exempt)
        if ids:
            cursor[AFTER] = ids[-1]
        return len(ids) == BATCH

    labels = {
        ageing.STALE: ("Became stale", "knowledge older than 90 days, never recalled nor told"),
        ageing.CLOSED: ("Closed", "stale knowledge older than 180 days; inactive, not erased"),
    }
    return Step(name, *labels[name], look, write, kind=ageing.kind_of(name))


MERGED = "merged"


def start_of_sweep(run: MaintenanceRun | None) -> int:
    """Return the id behind which the duplicates sweep goes on: where the last finished one before `run` ended."""
    rows = MaintenanceStep.objects.filter(name=MERGED, state="done")
    if run is not None:
        rows = rows.filter(run__lt=run)
    cursor = rows.order_by("-run").values_list("cursor", flat=True).first()
    return int((cursor or {}).get(AFTER, 0))


def _look_for_duplicates(run: MaintenanceRun, cursor: Cursor) -> tuple[list[duplicates.Likely], bool]:
    if AFTER not in cursor:
        cursor |= {AFTER: start_of_sweep(run), "looked": 0, "asked": 0}
    return duplicates.look(cursor[AFTER], duplicates.BATCH, {})


def _write_duplicates(run: MaintenanceRun, cursor: Cursor, batch: tuple[list[duplicates.Likely], bool]) -> bool:
    some, more = batch
    evidence = evidence_of(run, MERGED)
    ids = duplicates.ids_of(some)
    list(Memory.objects.select_for_update(of=("self",)).filter(pk__in=ids).order_by("pk").values_list("pk"))
    rows = Memory.objects.in_bulk(ids)
    for one in some:
        decided = duplicates.decide(one, rows)
        cursor[AFTER], cursor["looked"] = one.newer, cursor["looked"] + 1
        if decided is None:
            continue
        winner, loser = decided.winner, decided.loser
        if decided.kind:
            older, newer = sorted((winner, loser), key=lambda row: row.pk)
            details = {**decided.relation.evidence, **evidence, "left": decided.why}
            disagreements.note(older, newer, decided.kind, at=run.at, evidence=details)
            cursor["asked"] += 1
            if cursor["asked"] >= duplicates.MOST_QUESTIONS:
                return False
        else:
            words = f"Says the same as memory {winner.pk}. {decided.relation.why}"
            merge(winner, [loser], by=ACTOR, at=run.at, reason=words, evidence=evidence, confirms=False)
            loser.refresh_from_db()
    if not more:
        cursor[AFTER] = 0
    return more and cursor["looked"] < duplicates.LOOKED_AT


def overdue_proposals(at: datetime) -> int:
    return Proposal.objects.filter(state=ProposalState.WAITING, expires_at__lte=at).count()


def old_discards(at: datetime) -> int:
    old = GateDecision.objects.filter(verdict=gate_decisions.DISCARD, at__lt=at - gate_decisions.DISCARDS_KEPT)
    return old.filter(label="").count()


def _first_count(count: Callable[[datetime], int]) -> Callable[[MaintenanceRun, Cursor], Any]:
    return lambda run, cursor: cursor.get("did") if "did" in cursor else count(run.at)


def _keep_count(run: MaintenanceRun, cursor: Cursor, count: int) -> bool:
    cursor["did"] = count
    return False


def _expire_proposals(run: MaintenanceRun, cursor: Cursor) -> None:
    proposals.expire(run.at)


def _prune_discards(run: MaintenanceRun, cursor: Cursor) -> None:
    gate_decisions.prune(run.at)


def _judge(run: MaintenanceRun, cursor: Cursor) -> None:
    judge_waiting(most_calls=TASK_CALLS, most_seconds=TASK_SECONDS, source="maintenance")


def waiting_pairs() -> int:
    return Disagreement.objects.unjudged().count()


def _judged(run: MaintenanceRun, row: MaintenanceStep) -> dict[str, Any]:
    judged = Disagreement.objects.filter(judged_at__gte=row.started_at, judged__has_key="model")
    calls = ModelCall.objects.filter(role="judge", asked_at__gte=row.started_at)
    cost = calls.aggregate(cost=Sum("cost_usd"))["cost"]
    return {"did": judged.count(), "wait": waiting_pairs(), "cost_usd": float(cost or 0)}


def distribution() -> dict[str, Any]:
    """Return the active memories by category, with what is over-represented."""
    rows = Memory.objects.filter(active=True, verdict=Verdict.ALLOW).order_by()
    counts = {
        (taxonomy, category): count
        for taxonomy, category, count in rows.values_list("taxonomy", "category").annotate(count=Count("pk"))
    }
    sizes = {slug: len(taxonomy.categories) for slug, taxonomy in TAXONOMIES.items()}
    all_shares = shares(counts, sizes)
    return {
        "did": sum(one.is_over for one in all_shares),
        "shares": [[one.taxonomy, one.category, one.count, one.share, one.is_over] for one in all_shares],
    }


STEPS: tuple[Step, ...] = (
    Step(
        "expired",
        "Expired",
        "expired",
        after=_sweep(Change.EXPIRED, "expired"),
        kind=Change.EXPIRED,
    ),
    Step(
        "lowered",
        "Lowered by time",
        "not confirmed for 30 days",
        after=_sweep(Change.DECAYED, "lowered"),
        kind=Change.DECAYED,
        figures=_faded,
    ),
    Step(
        MERGED,
        "Merged",
        "say the same as a stronger one",
        _look_for_duplicates,
        _write_duplicates,
        kind=Change.MERGED,
    ),
    _aged(ageing.STALE),
    _aged(ageing.CLOSED),
    Step(
        "proposals",
        "Proposals expired",
        "nobody answered them in time",
        _first_count(overdue_proposals),
        _keep_count,
        _expire_proposals,
    ),
    Step(
        "discards",
        "Discards deleted",
        "the gate discarded them 14 days ago",
        _first_count(old_discards),
        _keep_count,
        _prune_discards,
    ),
    Step("judged", "Pairs judged", "by the judge, a model", after=_judge, figures=_judged),
    Step(
        "categories",
        "Over-represented categories",
        "more than twice an equal share",
        figures=lambda run, row: distribution(),
    ),
)

BY_NAME = {step.name: step for step in STEPS}
