"""Ageing, for all memories at once: decay and expiry in SQL, with their change rows.

Says the rule of `rules.decayed` again in two dialects (a property test holds that all three agree). A sweep
that finds nothing due takes no lock and reads an index; how often it runs changes nothing. However much is due,
no other writer waits for all of it: it goes by transactions of a bounded size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.db import connection

from memories.lifecycle import ageing_sql
from memories.lifecycle.lock import writing
from memories.lifecycle.record import moment
from memories.models import Change, Inactive
from memories.taxonomy import TAXONOMIES, Decay, Taxonomy

ACTOR = "system"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)

MOST_AT_ONCE = 2_000
"""Memories that change in one transaction: about a tenth of a second, in which no other process can write."""


@dataclass(frozen=True, slots=True)
class Swept:
    """How many memories lost confidence, how many of those became inactive by it, and how many expired."""

    decayed: int = 0
    deactivated: int = 0
    expired: int = 0

    @property
    def changed(self) -> int:
        return self.decayed + self.expired

    def __add__(self, other: Swept) -> Swept:
        return Swept(self.decayed + other.decayed, self.deactivated + other.deactivated, self.expired + other.expired)


@dataclass(frozen=True, slots=True)
class Part:
    """A condition on rows of `memories`, with its named parameters."""

    where: str
    params: dict[str, Any]


def sweep(at: datetime | None = None) -> Swept:
    """Take what time takes, as of `at` (aware UTC, default now). Safe to run at any rate, and to be broken off."""
    when = moment(at)
    total = Swept()
    for part, take in _steps(when):
        while _exists(part):
            with writing():
                swept = take(part, when)
            total += swept
            if swept.changed < MOST_AT_ONCE:
                break
    return total


def is_due(at: datetime | None = None) -> bool:
    """Whether a sweep at `at` would change anything. Reads indexes only, writes nothing."""
    return any(_exists(part) for part in due_parts(moment(at)))


def due_parts(at: datetime) -> Iterator[Part]:
    """What a sweep at `at` looks for, each as a condition on `memories`."""
    for taxonomy in TAXONOMIES.values():
        if taxonomy.decay:
            yield _decaying(taxonomy, taxonomy.decay, at)
    yield from _expiring(at)


def _steps(at: datetime) -> Iterator[tuple[Part, Callable[[Part, datetime], Swept]]]:
    """What is done to which memories, in this order: what has expired does not decay as well."""
    for part in _expiring(at):
        yield part, _expire
    for taxonomy in TAXONOMIES.values():
        if taxonomy.decay:
            yield _decaying(taxonomy, taxonomy.decay, at), partial(_decay, taxonomy, taxonomy.decay)


# The conditions begin as the partial indexes memories_decay and memories_expiry do, word for word and without
# parameters: SQLite uses a partial index only where it can see that the condition holds.


def _decaying(taxonomy: Taxonomy, decay: Decay, at: datetime) -> Part:
    """Memories from which at least one whole period is to be taken. What waits for review does not age."""
    where = (
        "active AND NOT persistent AND taxonomy = %(taxonomy)s AND updated_at <= %(confirmed_by)s "
        "AND (decayed_until IS NULL OR decayed_until <= %(taken_by)s) AND verdict = 'allow'"
    )
    taken_by = at - decay.every
    confirmed_by = taken_by - decay.grace
    return Part(
        where, {"taxonomy": taxonomy.slug, "confirmed_by": _stored(confirmed_by), "taken_by": _stored(taken_by)}
    )


def _expiring(at: datetime) -> Iterator[Part]:
    """Memories whose own end has come, and those of categories that last only so long."""
    yield Part("active AND expires_at IS NOT NULL AND expires_at <= %(end)s", {"end": _stored(at)})
    for taxonomy in TAXONOMIES.values():
        for category, lasts in taxonomy.expires.items():
            yield Part(
                "active AND NOT persistent AND taxonomy = %(taxonomy)s AND updated_at <= %(confirmed_by)s "
                "AND category = %(category)s",
                {"taxonomy": taxonomy.slug, "category": category, "confirmed_by": _stored(at - lasts)},
            )


def _stored(value: datetime) -> Any:
    """A time as this database's driver compares it."""
    return connection.ops.adapt_datetimefield_value(value)


def _exists(part: Part) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(ageing_sql.IS_DUE.format(where=part.where), part.params)
        return bool(cursor.fetchone()[0])


def _expire(part: Part, at: datetime) -> Swept:
    """The first of them; none changes between the two statements, which therefore mean the same."""
    values = {
        **part.params,
        "most": MOST_AT_ONCE,
        "kind": Change.EXPIRED,
        "at": _stored(at),
        "before": json.dumps({"active": True, "inactive_reason": ""}),
        "after": json.dumps({"active": False, "inactive_reason": Inactive.EXPIRED}),
        "actor": ACTOR,
        "inactive": Inactive.EXPIRED,
        "no": False,
    }
    cast = "::jsonb" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(ageing_sql.EXPIRE_HISTORY.format(where=part.where, cast=cast), values)
        if cursor.rowcount:
            cursor.execute(ageing_sql.EXPIRE_UPDATE.format(where=part.where), values)
        return Swept(expired=int(cursor.rowcount))


def _decay(taxonomy: Taxonomy, decay: Decay, part: Part, at: datetime) -> Swept:
    values = {
        **part.params,
        "most": MOST_AT_ONCE,
        "at": _stored(at),
        "at_us": (at - EPOCH) // timedelta(microseconds=1),
        "grace": decay.grace // SECOND,
        "every": decay.every // SECOND,
        "step": decay.step,
        # Where there is no threshold, no confidence is below it.
        "threshold": -1.0 if taxonomy.inactive_below is None else taxonomy.inactive_below,
        "inactive": Inactive.DECAYED,
        "kind": Change.DECAYED,
        "actor": ACTOR,
    }
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(ageing_sql.POSTGRESQL.format(where=part.where), values)
            return Swept(*cursor.fetchone())
        cursor.execute(ageing_sql.SQLITE_FORGET)
        cursor.execute(ageing_sql.SQLITE_DUE.format(where=part.where), values)
        cursor.execute(ageing_sql.SQLITE_HISTORY, values)
        cursor.execute(ageing_sql.SQLITE_UPDATE, values)
        cursor.execute(ageing_sql.SQLITE_COUNT, values)
        swept = Swept(*cursor.fetchone())
        cursor.execute(ageing_sql.SQLITE_FORGET)
        return swept
