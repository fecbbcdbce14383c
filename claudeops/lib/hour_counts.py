"""Count the rows of a table by hour (UTC) and name, in a table of counts that database triggers keep in step.

Triggers, because rows are written past the ORM in places (bulk_create, executemany, cascades): no writer can forget
them, and a count changes in the transaction of its row. On PostgreSQL an INSERT or DELETE counts once a statement, in
the order of the key, so that two workers never wait for each other crosswise.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.db import connection, models, transaction

HOUR = {
    "sqlite": "substr({row}.{time}, 1, 13) || ':00:00'",
    "postgresql": "date_trunc('hour', {row}.{time}, 'UTC')",
}
EVENTS = ("added", "removed", "changed")


class HourCount(models.Model):
    """How many rows of one `name` have their time in the hour that begins at `hour` (UTC). A number may be 0."""

    hour = models.DateTimeField()
    name = models.CharField(max_length=20)
    number = models.BigIntegerField(default=0)

    class Meta:
        abstract = True
        constraints = [models.UniqueConstraint(fields=["hour", "name"], name="%(class)s_of_hour")]

    def __str__(self) -> str:
        return f"{self.number} {self.name} in the hour from {self.hour:%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True, slots=True)
class Counted:
    """The rows of the table `source`, counted in the table `counts` (of a HourCount) by the hour of the column `time`.

    `name` (by vendor), `where` (which rows count) and `sums` (column of `counts`: what it adds up, whole numbers) are
    SQL over one row, `{row}`. `watched` are the columns whose change may change a count.
    """

    counts: str
    source: str
    time: str
    name: Mapping[str, str]
    watched: tuple[str, ...]
    where: str = "{row}.{time} IS NOT NULL"
    sums: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        return ("number", *self.sums)

    @property
    def triggers(self) -> tuple[str, ...]:
        return tuple(f"{self.counts}_{event}" for event in EVENTS)


@dataclass(frozen=True, slots=True)
class Difference:
    """A count that is wrong: what is stored less what the rows say, by column."""

    table: str
    hour: str
    name: str
    surplus: dict[str, int]


def in_parts(
    model: type[HourCount],
    edges: Sequence[datetime],
    *columns: str,
    names: Collection[str] | None = None,
) -> list[list[Counter[str]]]:
    """Sum columns (`number` when none is named) by name in each part between two `edges`, with one query.

    `edges` are UTC, whole hours, ascending. Returns a list for each column, with one Counter a part. The database sums:
    90 days are thousands of counts.
    """
    columns = columns or ("number",)
    totals: list[list[Counter[str]]] = [[Counter() for _ in edges[1:]] for _ in columns]
    at = [connection.ops.adapt_datetimefield_value(edge) for edge in edges]
    bounds = [value for n, pair in enumerate(pairwise(at)) for value in (n, *pair)]
    only = f"WHERE counted.name IN ({', '.join(['%s'] * len(names))})" if names else ""
    sums = ", ".join(f"SUM(counted.{column})" for column in columns)
    part = (
        "(%s, CAST(%s AS timestamptz), CAST(%s AS timestamptz))"
        if connection.vendor == "postgresql"
        else "(%s, %s, %s)"
    )
    sql = (
        f"WITH part(n, since, until) AS (VALUES {', '.join([part] * (len(edges) - 1))}) "  # noqa: S608
        f"SELECT part.n, counted.name, {sums} FROM part JOIN {model._meta.db_table} counted "
        f"ON counted.hour >= part.since AND counted.hour < part.until {only} GROUP BY part.n, counted.name"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*bounds, *(names or ())])
        for n, name, *values in cursor.fetchall():
            for parts, value in zip(totals, values, strict=True):
                parts[n][name] = int(value)
    return totals


def since(model: type[HourCount], start: datetime) -> Counter[str]:
    """Sum the numbers by name from `start` (UTC, a whole hour) on."""
    rows = model._default_manager.filter(hour__gte=start).values("name").order_by().annotate(sum=models.Sum("number"))
    return Counter({row["name"]: row["sum"] for row in rows})


# SQL. All of it is made of the names and expressions of our own declarations.


def _in(what: Counted, expression: str, row: str) -> str:
    return expression.replace("{row}", row).replace("{time}", what.time)


def _share(what: Counted, vendor: str, row: str, number: int) -> str:
    """The columns of one row's share of a count."""
    named = {"hour": HOUR[vendor], "name": what.name[vendor], "number": str(number)}
    named |= {column: f"{number} * ({value})" for column, value in what.sums.items()}
    return ", ".join(f"{_in(what, value, row)} AS {column}" for column, value in named.items())


def _shares(what: Counted, vendor: str, number: int, rows: str = "") -> str:
    """The shares of all rows of the table, or of the transition table `rows`."""
    share, counts = _share(what, vendor, "one", number), _in(what, what.where, "one")
    return f"SELECT {share} FROM {rows or what.source} one WHERE {counts}"  # noqa: S608


def _moved(what: Counted, vendor: str) -> str:
    old, new = (f"SELECT {_share(what, vendor, row, number)}" for row, number in (("OLD", -1), ("NEW", 1)))
    return f"{old} WHERE {_in(what, what.where, 'OLD')} UNION ALL {new} WHERE {_in(what, what.where, 'NEW')}"


def _add(what: Counted, shares: str) -> str:
    """Add shares to the counts, in the order of the key."""
    summed = ", ".join(f"SUM({column})" for column in what.columns)
    grouped = f"SELECT hour, name, {summed} FROM ({shares}) shares WHERE true"  # noqa: S608
    return _add_each(what, f"{grouped} GROUP BY hour, name ORDER BY hour, name")


def _add_each(what: Counted, shares: str) -> str:
    added = ", ".join(f"{column} = {what.counts}.{column} + excluded.{column}" for column in what.columns)
    return (
        f"INSERT INTO {what.counts} (hour, name, {', '.join(what.columns)}) {shares} "
        f"ON CONFLICT (hour, name) DO UPDATE SET {added}"
    )


def _differs(what: Counted, operator: str) -> str:
    changed = " OR ".join(f'OLD."{column}" {operator} NEW."{column}"' for column in what.watched)
    return f"(({_in(what, what.where, 'OLD')}) OR ({_in(what, what.where, 'NEW')})) AND ({changed})"


def _watched(what: Counted) -> str:
    return ", ".join(f'"{column}"' for column in what.watched)


def _sqlite(what: Counted) -> dict[str, str]:
    """The statement of each trigger. A removed row is taken off a count that is there: a flush deletes all tables."""
    added, removed, changed = what.triggers
    one, old = f"SELECT {_share(what, 'sqlite', 'NEW', 1)} WHERE true", _in(what, what.where, "OLD")
    hour, name = _in(what, HOUR["sqlite"], "OLD"), _in(what, what.name["sqlite"], "OLD")
    less = [f"{column} = {column} - ({_in(what, value, 'OLD')})" for column, value in what.sums.items()]
    return {
        added: f"CREATE TRIGGER {added} AFTER INSERT ON {what.source} WHEN {_in(what, what.where, 'NEW')} BEGIN "
        f"{_add_each(what, one)}; END",
        removed: f"CREATE TRIGGER {removed} AFTER DELETE ON {what.source} WHEN {old} BEGIN UPDATE {what.counts} "  # noqa: S608
        f"SET {', '.join(['number = number - 1', *less])} WHERE hour = {hour} AND name = {name}; END",
        changed: f"CREATE TRIGGER {changed} AFTER UPDATE OF {_watched(what)} ON {what.source} "
        f"WHEN {_differs(what, 'IS NOT')} BEGIN {_add(what, _moved(what, 'sqlite'))}; END",
    }


def _postgresql(what: Counted) -> dict[str, tuple[str, str]]:
    """The body of each trigger's function and the trigger's clauses."""
    added, removed, changed = what.triggers
    more, less = (_shares(what, "postgresql", number, "rows_") for number in (1, -1))
    each = "FOR EACH STATEMENT"
    return {
        added: (_add(what, more), f"AFTER INSERT ON {what.source} REFERENCING NEW TABLE AS rows_ {each}"),
        removed: (_add(what, less), f"AFTER DELETE ON {what.source} REFERENCING OLD TABLE AS rows_ {each}"),
        changed: (
            _add(what, _moved(what, "postgresql")),
            f"AFTER UPDATE OF {_watched(what)} ON {what.source} FOR EACH ROW "
            f"WHEN ({_differs(what, 'IS DISTINCT FROM')})",
        ),
    }


# What is done in the database.


def keep(all_counted: Iterable[Counted], using: Any = connection) -> list[str]:
    """Create the triggers that are missing or outdated, and count what is there; return the tables counted anew.

    Idempotent, cheap when all is in place. A table that does not exist (yet, or any more) is passed over.
    """
    wanted = _outdated(all_counted, using)
    tables = set(using.introspection.table_names()) if wanted else set()
    count_tables = []
    for what in wanted:
        if {what.source, what.counts} <= tables:
            with transaction.atomic(using=using.alias):
                _lock(what, using)
                _create(what, using)
                _fill(what, using)
            count_tables.append(what.counts)
    return count_tables


def missing(all_counted: Iterable[Counted], using: Any = connection) -> list[str]:
    """Return the tables of counts whose triggers are missing or outdated."""
    return [what.counts for what in _outdated(all_counted, using)]


def drop(counts: str, source: str, using: Any) -> None:
    """Drop the triggers of a table of counts."""
    with using.cursor() as cursor:
        for name in (f"{counts}_{event}" for event in EVENTS):
            if using.vendor == "postgresql":
                cursor.execute(f"DROP TRIGGER IF EXISTS {name} ON {source}")
                cursor.execute(f"DROP FUNCTION IF EXISTS {name}()")
            else:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}")


def rebuild(what: Counted, using: Any = connection) -> int:
    """Count all rows anew, in one transaction; writers of the table wait meanwhile. Return the number of counts."""
    with transaction.atomic(using=using.alias):
        _lock(what, using)
        return _fill(what, using)


def differences(what: Counted, using: Any = connection, most: int = 100) -> list[Difference]:
    """Compare the counts with the rows, in one statement; return at most `most` that differ, by hour."""
    stored = f"SELECT hour, name, {', '.join(what.columns)} FROM {what.counts}"  # noqa: S608
    summed = ", ".join(f"SUM({column}) AS {column}" for column in what.columns)
    differs = " OR ".join(f"SUM({column}) <> 0" for column in what.columns)
    sql = (
        f"SELECT hour, name, {summed} FROM ("  # noqa: S608
        f"{stored} UNION ALL {_shares(what, using.vendor, -1)}"
        f") shares GROUP BY hour, name HAVING {differs} ORDER BY hour, name LIMIT %s"
    )
    with using.cursor() as cursor:
        cursor.execute(sql, [most])
        return [
            Difference(what.counts, f"{hour:%Y-%m-%d %H:%M:%S}" if hasattr(hour, "year") else str(hour), name, surplus)
            for hour, name, *numbers in cursor.fetchall()
            if (surplus := {column: int(n) for column, n in zip(what.columns, numbers, strict=True)})
        ]


def _outdated(all_counted: Iterable[Counted], using: Any) -> list[Counted]:
    stored = _stored(using).items()
    wanted = [(what, _parts(what, using.vendor)) for what in all_counted]
    return [what for what, parts in wanted if not {name: _mark(one) for name, one in parts.items()}.items() <= stored]


def _parts(what: Counted, vendor: str) -> dict[str, tuple[str, ...]]:
    if vendor == "postgresql":
        return dict(_postgresql(what))
    return {name: (sql,) for name, sql in _sqlite(what).items()}


def _mark(parts: tuple[str, ...]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _stored(using: Any) -> dict[str, str]:
    """Return the triggers there are, with the mark of their text."""
    with using.cursor() as cursor:
        if using.vendor == "postgresql":
            cursor.execute(
                "SELECT tgname, obj_description(tgfoid, 'pg_proc') FROM pg_trigger "
                "JOIN pg_class ON pg_class.oid = tgrelid "
                "WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace"
            )
            return {name: mark or "" for name, mark in cursor.fetchall()}
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        return {name: _mark((sql,)) for name, sql in cursor.fetchall()}


def _lock(what: Counted, using: Any) -> None:
    """Let no row be written until the transaction ends; on SQLite its BEGIN IMMEDIATE holds other writers back."""
    if using.vendor == "postgresql":
        with using.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {what.source} IN SHARE ROW EXCLUSIVE MODE")


def _create(what: Counted, using: Any) -> None:
    drop(what.counts, what.source, using)
    with using.cursor() as cursor:
        for name, parts in _parts(what, using.vendor).items():
            if using.vendor != "postgresql":
                cursor.execute(parts[0])
                continue
            body, clauses = parts
            cursor.execute(
                f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN {body}; RETURN NULL; END $$"
            )
            cursor.execute(f"COMMENT ON FUNCTION {name}() IS '{_mark(parts)}'")
            cursor.execute(f"CREATE TRIGGER {name} {clauses} EXECUTE FUNCTION {name}()")


def _fill(what: Counted, using: Any) -> int:
    with using.cursor() as cursor:
        cursor.execute(f"DELETE FROM {what.counts}")  # noqa: S608
        cursor.execute(_add(what, _shares(what, using.vendor, 1)))
        cursor.execute(f"SELECT COUNT(*) FROM {what.counts}")  # noqa: S608
        return int(cursor.fetchone()[0])
