"""Keep the memories that a session used. What it was not shown, by its prompt or by a recall, is never kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from memories.models import Memory, Recalled
from sessions_app.credit.uses import quoted
from sessions_app.models import How, Session, Trigger, UsedMemory
from sessions_app.receipts import RECALLS, told_to

MOST_RECALLED = 1_000
"""Memories of a session's recalls whose texts are looked for in its own."""


def shown_of(
    session: Session, named: Mapping[int, How], said: Sequence[tuple[str, datetime]]
) -> tuple[dict[int, How], int]:
    """Return the memories that `session` used, of those it was shown, and how many it named without that.

    `named` are the ids in its text and answer, `said` its own texts, with when (UTC): in these are looked for what its
    recalls had returned by then. An imported session was shown nothing.
    """
    if session.trigger == Trigger.IMPORT:
        return {}, len(named)
    shown = told_to(session.pk) if named else frozenset()
    used = {pk: how for pk, how in named.items() if pk in shown}
    dropped = len(named) - len(used)
    for pk in _quoted(session, said):
        used.setdefault(pk, How.QUOTED)
    return used, dropped


def _quoted(session: Session, lines: Sequence[tuple[str, datetime]]) -> list[int]:
    recalls = Recalled.objects.filter(session=session.pk).order_by("-pk").values_list("at", "hits")
    since: dict[int, datetime] = {}
    for at, hits in recalls[:RECALLS] if lines else ():
        since |= {hit[0]: at for hit in hits}  # the latest come first: what stays is the first time
    ids = list(since)[:MOST_RECALLED]
    texts = dict(Memory.objects.filter(pk__in=ids).values_list("pk", "observation")) if ids else {}
    return [
        pk
        for text, at in lines
        for pk in quoted(text, {pk: observation for pk, observation in texts.items() if since[pk] <= at})
    ]


def note(session_id: int, used: Mapping[int, How]) -> int:
    """Keep the uses of a session and return how many are new; a second time changes nothing."""
    if not used:
        return 0
    rows = UsedMemory.objects.filter(session=session_id, memory_id__in=list(used))
    existing = set(rows.values_list("memory_id", flat=True))
    new = [UsedMemory(session_id=session_id, memory_id=pk, how=used[pk]) for pk in used if pk not in existing]
    UsedMemory.objects.bulk_create(new, ignore_conflicts=True)
    return len(new)
