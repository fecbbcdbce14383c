"""How many memories there are in the index, and how many hold a term. Counts of many are kept for some minutes.

Knows no query: whoever weighs terms (a recall, the search for what a new text repeats) asks here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from django.db import connection

from memories import prepared
from memories.recall import index
from memories.recall.weighing import Collection

FEW = 1_000
"""A larger count hardly moves and is kept."""
RECOUNT = 300.0
"""Seconds after which a kept count is asked for again."""
SOME = 100
"""One above this moves by a hundredth with a memory more: who can do with that has it kept for a MOMENT (seconds),
for recalls that come at once. One up to here is asked for each time."""
MOMENT = 5.0
SLOWER = 20_000
"""A count above this is kept longer, in proportion: it takes longer, and a memory more says less."""
MOST_KEPT = 10_000
MANY = 20_000
"""From so many memories on PostgreSQL's own statistics say how many hold a common term: to count these reads each row
that holds one. A sample of 30,000 rows: of thirty terms in 1,000 to 30,000 of 100,000 none was off by more than 7 %."""

_collections: dict[str, tuple[Collection, float]] = {}
_common: dict[tuple[str, str], tuple[int, float]] = {}
_shares: dict[str, tuple[dict[str, float], float]] = {}


def collection(moment: float = 0.0) -> Collection:
    """Of all memories. One of more than FEW is counted once in RECOUNT seconds: that reads the whole index.

    One of more than SOME is counted once in `moment` seconds.
    """
    name = database()
    kept = _collections.get(name)
    if kept is not None and time.monotonic() - kept[1] < holds(kept[0].size, moment):
        return kept[0]
    with prepared.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), AVG(length), MIN(memory_id), MAX(memory_id) FROM memory_terms")
        size, mean, first, last = cursor.fetchone()
    found = Collection(size, float(mean or 1.0), first or 0, last or 0)
    if size > SOME and not connection.in_atomic_block:
        _collections[name] = (found, time.monotonic())
    return found


def frequencies(terms: Sequence[str], size: int | None = None) -> dict[str, int]:
    """In how many memories each term stands. A count above FEW is kept for RECOUNT seconds.

    `size` is that of the collection, where the caller has just asked for it.
    """
    found, missing = _known(terms, size, 0.0)
    return found | _kept(_asked(missing)[0]) if missing else found


def with_due(terms: Sequence[str], size: int, most: int) -> tuple[dict[str, int], list[int]]:
    """The same, a count above SOME from the last MOMENT; and the newest `most` memories that are not indexed yet.

    One statement says both, and before the index is read: what is indexed in between is found there or here.
    """
    found, missing = _known(terms, size, MOMENT)
    counted, due = _asked(missing, most)
    return found | _kept(counted), due


def _known(terms: Sequence[str], size: int | None, moment: float) -> tuple[dict[str, int], list[str]]:
    """(the counts that need no asking, the terms of which these are not)."""
    name = database()
    now = time.monotonic()
    found: dict[str, int] = {}
    for term in terms:
        count, at = _common.get((name, term), (0, 0.0))
        if count and now - at < holds(count, moment):
            found[term] = count
    missing = [term for term in terms if term not in found]
    if missing and connection.vendor == "postgresql":
        size = collection().size if size is None else size
        shares = _sampled(size) if size >= MANY else {}
        found |= {term: count for term in missing if (count := round(shares.get(term, 0.0) * size)) > FEW}
        missing = [term for term in missing if term not in found]
    return found, missing


def _asked(terms: Sequence[str], most_due: int = 0) -> tuple[dict[str, int], list[int]]:
    """(how many memories hold each of the terms that any holds, the newest `most_due` that are not indexed yet)."""
    parts: list[str] = []
    params: list[Any] = []
    if terms and connection.vendor == "postgresql":
        parts = [
            "SELECT term, (SELECT count(*) FROM memory_terms WHERE vector @@ asked) "
            "FROM unnest(%s::text[], %s::text[]::tsquery[]) missing (term, asked)"
        ]
        params = [[*terms], [f"'{term}'" for term in terms]]
    elif terms:
        marks = ", ".join(["%s"] * len(terms))
        parts, params = [f"SELECT term, doc FROM memory_terms_vocabulary WHERE term IN ({marks})"], [*terms]  # noqa: S608
    if most_due:
        parts.append(f"SELECT NULL, memory_id FROM ({index.DUE}) due")  # noqa: S608
        params.append(most_due)
    with prepared.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), params)
        rows = cursor.fetchall()
    counted = {term: count for term, count in rows if term is not None and count}
    return counted, [pk for term, pk in rows if term is None]


def _kept(counted: dict[str, int]) -> dict[str, int]:
    """These counts, those of many kept."""
    if not connection.in_atomic_block:
        name, now = database(), time.monotonic()
        if len(_common) > MOST_KEPT:
            _common.clear()
        _common.update({(name, term): (count, now) for term, count in counted.items() if count > SOME})
    return counted


def _sampled(size: int) -> dict[str, float]:
    """The share of the memories that hold a term, for the most common ones, as PostgreSQL's last ANALYZE found it.

    Empty when it looked at a table that was not half as large.
    """
    name = database()
    shares, at = _shares.get(name, ({}, -RECOUNT))
    if time.monotonic() - at < RECOUNT:
        return shares
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT held.term, held.share FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = 'vector' "
            "CROSS JOIN LATERAL unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) held (term, share) "
            "WHERE c.oid = to_regclass('memory_terms') AND c.reltuples * 2 >= %s AND held.term IS NOT NULL",
            [size],
        )
        shares = dict(cursor.fetchall())
    if not connection.in_atomic_block:
        _shares[name] = (shares, time.monotonic())
    return shares


def holds(count: int, moment: float = 0.0) -> float:
    """For how many seconds a count is kept, when one of some may be `moment` seconds old."""
    if count > FEW:
        return RECOUNT * max(1.0, count / SLOWER)
    return moment if count > SOME else 0.0


def forget() -> None:
    """Let go of the kept counts: another database may stand under the same name."""
    _collections.clear()
    _common.clear()
    _shares.clear()


def database() -> str:
    of = connection.settings_dict
    return f"{of['HOST']}|{of['PORT']}|{of['NAME']}"
