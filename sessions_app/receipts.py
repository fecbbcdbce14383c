"""Store injection receipts, and find the sessions that received, created, confirmed or contradicted a memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from memories.curate.told import NOT_CURATED, Curated
from memories.files.told import NOTHING_TOLD, Told
from memories.injection.counting import count_injected
from memories.injection.knowledge import NO_KNOWLEDGE, Knowledge
from memories.injection.ops import Injection
from memories.injection.project import Selection
from memories.lifecycle.lock import writing
from memories.models import Change, MemoryChange, Recalled
from memories.telemetry import record
from sessions_app.models import Injected, InjectionReceipt, Session, Status

NO_PROJECT = Selection()
SIZE = 50
CAP = 10_000
RECALLS = 500
"""Most recalls of a session that are read, the latest ones."""

CHANGE_WORDS = {
    Change.CREATED: "created it",
    Change.REINFORCED: "confirmed it",
    Change.CONTRADICTED: "contradicted it",
}
LISTED_FIELDS = (
    *("id", "agent__slug", "tier", "status", "status_reason", "summary"),
    *("queued_at", "started_at", "ended_at", "duration_ms"),
)
COUNTED = 1_000
"""Latest sessions whose outcomes are counted."""


def keep(
    session: Session,
    injection: Injection,
    selection: Selection = NO_PROJECT,
    told: Told = NOTHING_TOLD,
    knowledge: Knowledge = NO_KNOWLEDGE,
    curated: Curated = NOT_CURATED,
    *,
    at: datetime,
) -> InjectionReceipt:
    """Store the receipt of an injection, of the project's memories, of the agent's file, of knowledge and of MEMORY.md.

    It replaces that of an earlier attempt.

    The memories count it in the same transaction.
    """
    included = [*injection.included, *selection.included, *told.included, *knowledge.included]
    with writing():  # before the receipt's row is locked, as every writer of memories takes this lock first
        receipt, _ = InjectionReceipt.objects.update_or_create(
            session=session,
            defaults={
                "text": injection.text,
                "sha256": injection.sha256,
                "budget": injection.budget,
                "tokens": injection.tokens,
                "included": included,
                "left_out": [*injection.left_out, *selection.left_out, *told.left_out, *knowledge.left_out],
                "counts": injection.counts,
                "project": selection.record,
                "agent_file": told.record,
                "knowledge": knowledge.record,
                "curated": curated.record,
                "created_at": at,
            },
        )
        earlier = Injected.objects.filter(session=session)
        before = set(earlier.values_list("memory_id", flat=True))
        earlier.delete()
        rows = [Injected(session=session, memory_id=entry["id"]) for entry in included]
        count_injected([row.memory_id for row in rows], before, at=at)
        Injected.objects.bulk_create(rows, batch_size=500)
        record(
            "memory.inject.completed",
            component="injection",
            source="session",
            key=f"inject-{session.pk}-{session.attempts}",
            at=at,
            session=session.pk,
            agent=session.agent.slug if session.agent else "",
            included=len(included),
            left_out=len(receipt.left_out),
            tokens=injection.tokens,
            budget=injection.budget,
            of_project=len(selection.included),
            of_agent_file=len(told.included),
            of_knowledge=len(knowledge.included),
        )
    return receipt


def withdraw(session: Session, *, at: datetime) -> None:
    """Take the receipt of a session back that could not be started: it was told nothing."""
    with writing():
        rows = Injected.objects.filter(session=session)
        count_injected((), set(rows.values_list("memory_id", flat=True)), at=at)
        rows.delete()
        InjectionReceipt.objects.filter(session=session).delete()


@dataclass(frozen=True, slots=True)
class Received:
    """Sessions that received a memory, latest first. `count` is for people; `older` is the next page's cursor."""

    rows: list[Session]
    count: str
    one: bool
    older: int | None


@dataclass(frozen=True, slots=True)
class Contribution:
    """A session that created, confirmed or contradicted a memory, and when (UTC). `words` is for people."""

    session_id: int
    kind: str
    words: str
    at: datetime


def told(memory_id: int, *, before: int | None = None, most: int = SIZE) -> Received:
    """Return the sessions whose receipt includes the memory, latest first; with `before`, those before that session."""
    rows = Injected.objects.filter(memory_id=memory_id)
    some = rows if before is None else rows.filter(session__lt=before)
    ids = list(some.order_by("-session").values_list("session", flat=True)[: most + 1])
    shown = ids[:most]
    by_id = {row.pk: row for row in Session.objects.filter(pk__in=shown).select_related("agent").only(*LISTED_FIELDS)}
    count = rows[: CAP + 1].count()
    return Received(
        rows=[by_id[pk] for pk in shown if pk in by_id],
        count=f"{CAP:,}+" if count > CAP else f"{count:,}",
        one=count == 1,
        older=shown[-1] if len(ids) > most else None,
    )


def outcomes(memory_id: int) -> dict[str, int]:
    """Count the last COUNTED sessions that received the memory by status, in the order of `Status`."""
    latest = Injected.objects.filter(memory_id=memory_id).order_by("-session").values("session")[:COUNTED]
    rows = Session.objects.filter(pk__in=latest).order_by().values_list("status").annotate(Count("pk"))
    counts = dict(rows)
    return {status: counts[status] for status in Status.values if status in counts}


def told_to(session_id: int) -> frozenset[int]:
    """Return the ids of the memories that a session was told: in its prompt, and in answers to its recalls."""
    ids = set(Injected.objects.filter(session=session_id).values_list("memory_id", flat=True))
    for hits in Recalled.objects.filter(session=session_id).order_by("-pk").values_list("hits", flat=True)[:RECALLS]:
        ids.update(hit[0] for hit in hits)
    return frozenset(ids)


def said(memory_id: int, *, most: int = SIZE) -> tuple[list[Contribution], bool]:
    """Return sessions that created, confirmed or contradicted the memory, latest first, and whether there are more."""
    rows = MemoryChange.objects.filter(memory=memory_id, session__isnull=False, kind__in=CHANGE_WORDS).order_by(
        "-at", "-pk"
    )
    changes = list(rows.values_list("session", "kind", "at")[: most + 1])
    return [Contribution(pk, kind, CHANGE_WORDS[Change(kind)], at) for pk, kind, at in changes[:most]], len(
        changes
    ) > most
