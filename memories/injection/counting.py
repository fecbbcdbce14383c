"""Count on each memory how often sessions were told it, and when last. Called in the transaction of the receipt."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.models import F

from memories.lifecycle.lock import write_lock
from memories.models import Memory

BATCH = 500


def count_injected(told: Collection[int], before: Collection[int], *, at: datetime) -> None:
    """Count a receipt that names the memories `told`, and takes back that of an earlier attempt, which named `before`.

    Needs a transaction. The same receipt twice counts once. The write lock comes first and the rows in the order of
    their ids, as in `recall.log.count`, so that two writers never wait for each other.
    """
    new, gone = set(told) - set(before), set(before) - set(told)
    if not told and not gone:
        return
    with write_lock():
        ids = sorted({*told, *gone})
        for start in range(0, len(ids), BATCH):
            part = ids[start : start + BATCH]
            rows = Memory.objects.filter(pk__in=part)
            list(rows.select_for_update(no_key=True).order_by("pk").values_list("pk"))
            rows.filter(pk__in=new.intersection(part)).update(told_count=F("told_count") + 1, stale_at=None)
            rows.filter(pk__in=gone.intersection(part), told_count__gt=0).update(told_count=F("told_count") - 1)
            rows.filter(pk__in=set(told).intersection(part)).exclude(last_told_at__gte=at).update(last_told_at=at)
