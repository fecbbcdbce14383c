"""Insert a row by a statement that is compiled once for each model: the ORM's takes as long again as the query."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db import connection, models


@cache
def _compiled(model: type[models.Model], vendor: str) -> tuple[str, list[models.Field[Any, Any]]]:
    """Return the statement, and the fields whose values it takes: all but the key and what the database computes."""
    fields = [one for one in model._meta.local_concrete_fields if not (one.primary_key or one.generated)]
    quote = connection.ops.quote_name
    names, marks = ", ".join(quote(str(one.column)) for one in fields), ", ".join(["%s"] * len(fields))
    table, key = quote(model._meta.db_table), quote(str(model._meta.pk.column))
    return f"INSERT INTO {table} ({names}) VALUES ({marks}) RETURNING {key}", fields  # noqa: S608  (the model's names)


def insert(row: models.Model) -> None:
    """Insert a row of a model with an automatic key, as `save(force_insert=True)` does; it sends no signal."""
    sql, fields = _compiled(type(row), connection.vendor)
    values = [field.get_db_prep_save(field.pre_save(row, add=True), connection) for field in fields]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        (row.pk,) = cursor.fetchone()
    row._state.adding, row._state.db = False, connection.alias
