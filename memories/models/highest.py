"""The highest numbers of tables, in one statement: what "is there anything new?" asks for, every few seconds, of all.

Past the ORM, which takes longer to build such a question than a database to answer it; and the times that come back
on that way. Reads only.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connection
from django.db.models import Model


def highest(*models: type[Model]) -> tuple[int, ...]:
    """The highest id of each model's table, 0 for an empty one: a look each at the end of an index."""
    quote = connection.ops.quote_name
    asked = (f"(SELECT MAX(id) FROM {quote(model._meta.db_table)})" for model in models)  # noqa: S608  (our own names)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(asked)}")
        return tuple(number or 0 for number in cursor.fetchone())


def moment_of(value: datetime | str) -> datetime:
    """A time as a cursor gives it, aware: PostgreSQL's is; SQLite gives UTC without saying so, of an expression as
    text."""
    found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
