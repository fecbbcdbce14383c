"""Read the highest ids of tables for change tokens. Raw SQL: the ORM takes longer to build the query than it runs."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connection
from django.db.models import Model


def highest(*models: type[Model]) -> tuple[int, ...]:
    """Return the highest id of each model's table, 0 for an empty one, from the end of an index each."""
    quote = connection.ops.quote_name
    queries = (f"(SELECT MAX(id) FROM {quote(model._meta.db_table)})" for model in models)  # noqa: S608  (our own names)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(queries)}")
        return tuple(number or 0 for number in cursor.fetchone())


def moment_of(value: datetime | str) -> datetime:
    """Convert a cursor's value to an aware time; SQLite gives naive UTC, as text for an expression."""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
