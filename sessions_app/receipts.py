"""What sessions were told: the receipt and its rows written together, and read from the side of a memory.

Knows no page and nothing of how a session runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from memories.injection.ops import Injection
from memories.models import Change, MemoryChange
from sessions_app.models import Injected, InjectionReceipt, Session

SIZE = 50
CAP = 10_000
FEW = 10
"""Sessions that a memory's own page shows of each kind."""

SAID = {Change.CREATED: "created it", Change.REINFORCED: "confirmed it", Change.CONTRADICTED: "contradicted it"}
LISTED = ("id", "agent__slug", "tier", "status", "queued_at", "started_at")


def keep(session: Session, injection: Injection, *, at: datetime) -> InjectionReceipt:
    """Write what `session` is told; what an earlier attempt of it was told gives way."""
    with transaction.atomic():
        receipt, _ = InjectionReceipt.objects.update_or_create(
            session=session,
            defaults={
                "text": injection.text,
                "sha256": injection.sha256,
                "budget": injection.budget,
                "tokens": injection.tokens,
                "included": injection.included,
                "left_out": injection.left_out,
                "counts": injection.counts,
                "created_at": at,
            },
        )
        Injected.objects.filter(session=session).delete()
        rows = [Injected(session=session, memory_id=entry["id"]) for entry in injection.included]
        Injected.objects.bulk_create(rows, batch_size=500)
    return receipt


@dataclass(frozen=True, slots=True)
class Saw:
    """Sessions that were told a memory, the latest first; `older` is the place of the next page, None on the last."""

    rows: list[Session]
    count: str
    one: bool
    older: int | None


@dataclass(frozen=True, slots=True)
class Said:
    """A session that said, confirmed or contradicted a memory, and when."""

    session_id: int
    kind: str
    words: str
    at: datetime


def told(memory_id: int, *, before: int | None = None, most: int = SIZE) -> Saw:
    """Sessions whose receipt includes the memory, those before session `before`; found by an index alone."""
    rows = Injected.objects.filter(memory_id=memory_id)
    some = rows if before is None else rows.filter(session__lt=before)
    ids = list(some.order_by("-session").values_list("session", flat=True)[: most + 1])
    shown = ids[:most]
    found = {row.pk: row for row in Session.objects.filter(pk__in=shown).select_related("agent").only(*LISTED)}
    count = rows[: CAP + 1].count()
    return Saw(
        rows=[found[pk] for pk in shown if pk in found],
        count=f"{CAP:,}+" if count > CAP else f"{count:,}",
        one=count == 1,
        older=shown[-1] if len(ids) > most else None,
    )


def said(memory_id: int, *, most: int = SIZE) -> tuple[list[Said], bool]:
    """Sessions that made, confirmed or contradicted the memory, the latest first, and whether there are more."""
    rows = MemoryChange.objects.filter(memory=memory_id, session__isnull=False, kind__in=SAID).order_by("-at", "-pk")
    found = list(rows.values_list("session", "kind", "at")[: most + 1])
    return [Said(pk, kind, SAID[Change(kind)], at) for pk, kind, at in found[:most]], len(found) > most
