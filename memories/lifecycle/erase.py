"""Delete memories with all that is kept about them: history, disagreements, facts and decisions of the gate."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from memories.lifecycle.bulk_write import batches, delete_rows
from memories.lifecycle.lock import writing
from memories.models import Disagreement, Fact, GateDecision, Memory, MemoryChange


def erase_all(queryset: QuerySet[Memory]) -> int:
    """Erase memories for good and return how many; nothing says afterwards that they existed.

    Triggers delete their terms and vectors. Records of sessions stay: what an agent said is in its log, what a session
    was told in its receipt.
    """
    count = 0
    with writing():
        for rows in batches(queryset):
            ids = [row.pk for row in rows]
            Disagreement.objects.filter(Q(older__in=ids) | Q(newer__in=ids)).delete()
            Fact.objects.filter(memory__in=ids).delete()
            GateDecision.objects.filter(memory__in=ids).delete()
            MemoryChange.objects.filter(memory_uuid__in=[row.uuid for row in rows]).delete()
            delete_rows(ids)
            count += len(rows)
    return count
