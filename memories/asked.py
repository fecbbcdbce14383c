"""What was asked and what came back, for reading: pages of the records that `recall` leaves. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from memories.models import Memory, Recalled

SIZE = 50
SHOWN = 3
"""Hits of each that are shown with their text."""


@dataclass(frozen=True, slots=True)
class AskedHit:
    """One hit as it came back; `text` is what the memory says now, empty when it is deleted."""

    memory_id: int
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: the record, its first hits, how many more there were."""

    row: Recalled
    hits: list[AskedHit]
    more: int


@dataclass(frozen=True, slots=True)
class Page:
    """Up to SIZE questions, the latest first; `older` is the `before` of the next page, 0 on the last one."""

    rows: list[Asked]
    older: int


def page(*, surface: str = "", session: int | None = None, before: int | None = None) -> Page:
    """The questions of a surface or session, from before a record on. Three queries, whatever there is."""
    rows = Recalled.objects.order_by("-at", "-pk")
    if surface:
        rows = rows.filter(surface=surface)
    if session is not None:
        rows = rows.filter(session=session)
    place = Recalled.objects.filter(pk=before).values_list("at", "pk").first() if before else None
    if place is not None:
        at, pk = place
        rows = rows.filter(at__lte=at).filter(Q(at__lt=at) | Q(pk__lt=pk))
    found = list(rows[: SIZE + 1])
    shown = found[:SIZE]
    wanted = {int(hit[0]) for row in shown for hit in row.hits[:SHOWN]}
    texts = dict(Memory.objects.filter(pk__in=wanted).values_list("pk", "observation"))
    asked = [
        Asked(
            row,
            [AskedHit(int(hit[0]), float(hit[1]), texts.get(int(hit[0]), "")) for hit in row.hits[:SHOWN]],
            max(0, len(row.hits) - SHOWN),
        )
        for row in shown
    ]
    return Page(asked, shown[-1].pk if len(found) > SIZE else 0)
