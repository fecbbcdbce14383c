"""Write and read the recall query log. An answer never waits for the log, and never fails for it."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db import OperationalError, connection, transaction
from django.db.models import Case, F, IntegerField, Q, Value, When

from claudeops.lib.append import append
from claudeops.lib.outage import is_locked
from claudeops.lib.secrets import mask
from memories.capture.text import fold
from memories.lifecycle.lock import write_lock
from memories.models import Memory, Recalled
from memories.recall.filters import Filters
from memories.recall.results import Asker, Hit

logger = logging.getLogger(__name__)

LONGEST_QUERY = 2_000
BATCH = 500
COUNTED_AT_ONCE = 50
"""Entries of one transaction: other writers wait for it."""
LONGEST_LOCK_WAIT = 0.3
"""Seconds on PostgreSQL: less than its deadlock_timeout, so that the count gives way and never another writer."""
PAGE = 50
SHOWN = 3
"""Hits of an entry that are shown with their text."""


def add(
    query: str, filters: Filters, hits: tuple[Hit, ...], asker: Asker, at: datetime, rewritten: str = ""
) -> int | None:
    """Append one entry and return its id; None when it could not be written, or a thread writes it later."""
    row = {
        "query": logged_query(query),
        "rewritten": logged_query(rewritten),
        "filters": filters.as_dict(),
        "hits": [[hit.memory_id, round(hit.score, 4)] for hit in hits],
        "surface": asker.surface[:16],
        "actor": asker.actor[:150],
        "session_id": asker.session_id,
        "at": at,
        "counted": False,
    }
    return append(Recalled(**row))


def count() -> int:
    """Add uncounted entries to the memories' recall counts; return their number.

    Each counts once, also in parallel runs. What another writer keeps busy for LONGEST_LOCK_WAIT is left to the next
    run.
    """
    total = 0
    while True:
        try:
            counted = _count_batch()
        except OperationalError as error:
            if not is_locked(error):
                raise
            logger.info("recalls are counted later: %s", error)
            return total
        total += counted
        if counted < COUNTED_AT_ONCE:
            return total


def _count_batch() -> int:
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = {int(LONGEST_LOCK_WAIT * 1000)}")
        with write_lock():
            rows = Recalled.objects.filter(counted=False).order_by("pk")
            if connection.features.has_select_for_update_skip_locked:
                rows = rows.select_for_update(skip_locked=True)
            batch = list(rows[:COUNTED_AT_ONCE])
            times: Counter[int] = Counter()
            latest: dict[int, datetime] = {}
            for row in batch:
                for pk, _ in row.hits:
                    times[pk] += 1
                    latest[pk] = max(latest.get(pk, row.at), row.at)
            _add(times, latest)
            Recalled.objects.filter(pk__in=[row.pk for row in batch]).update(counted=True)
    return len(batch)


def _add(times: Counter[int], latest: dict[int, datetime]) -> None:
    ids = sorted(times)
    # In the order of their ids, so that two that lock several memories do not wait for each other.
    list(Memory.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk").values_list("pk"))
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        more = Case(*(When(pk=pk, then=Value(times[pk])) for pk in part), output_field=IntegerField(), default=Value(0))
        Memory.objects.filter(pk__in=part).update(recall_count=F("recall_count") + more, stale_at=None)
        for at in sorted({latest[pk] for pk in part}):
            those = [pk for pk in part if latest[pk] == at]
            newer = Memory.objects.filter(pk__in=those).exclude(last_recalled_at__gt=at)
            newer.update(last_recalled_at=at)


def logged_query(query: str) -> str:
    """Mask, fold and cut a query as the log stores it; idempotent."""
    return fold(mask(query))[:LONGEST_QUERY].rstrip()  # idempotent


@dataclass(frozen=True, slots=True)
class LoggedHit:
    """A hit of an entry; `text` is the memory's present text, empty when it is deleted."""

    memory_id: int
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    row: Recalled
    hits: list[LoggedHit]
    more: int


@dataclass(frozen=True, slots=True)
class Page:
    """Up to PAGE entries, the latest first; `older` is the `before` of the next page, 0 on the last one."""

    rows: list[Entry]
    older: int


def page(*, surface: str = "", session: int | None = None, before: int | None = None) -> Page:
    """Return the entries of a surface or session, before an entry. Three queries, however many there are."""
    rows = Recalled.objects.order_by("-at", "-pk")
    if surface:
        rows = rows.filter(surface=surface)
    if session is not None:
        rows = rows.filter(session=session)
    place = Recalled.objects.filter(pk=before).values_list("at", "pk").first() if before else None
    if place is not None:
        at, pk = place
        rows = rows.filter(at__lte=at).filter(Q(at__lt=at) | Q(pk__lt=pk))
    newest = list(rows[: PAGE + 1])
    shown = newest[:PAGE]
    wanted = {int(hit[0]) for row in shown for hit in row.hits[:SHOWN]}
    texts = dict(Memory.objects.filter(pk__in=wanted).values_list("pk", "observation"))
    entries = [
        Entry(
            row,
            [LoggedHit(int(hit[0]), float(hit[1]), texts.get(int(hit[0]), "")) for hit in row.hits[:SHOWN]],
            max(0, len(row.hits) - SHOWN),
        )
        for row in shown
    ]
    return Page(entries, shown[-1].pk if len(newest) > PAGE else 0)
