"""A cursor for statements that come again with each recall: on PostgreSQL planned once, their results in binary.

Knows no table. Not for a statement whose plan depends on what is asked for: it is planned for what was asked before.
"""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper


def cursor() -> CursorWrapper:
    """Like `connection.cursor()`, which on SQLite it is.

    Django's sends each statement as one text, values and all, which PostgreSQL parses and plans anew: that takes as
    long as many of ours take to run. How often one is sent until it is prepared is the connection's
    `prepare_threshold` (settings); without one it is parsed each time, and only its result is in binary. JSON comes
    as Python's objects. Where statements are logged each is sent whole, so that the log has its values.
    """
    if connection.vendor != "postgresql":
        return connection.cursor()
    import psycopg
    import psycopg.types.json

    connection.validate_thread_sharing()
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    if connection.queries_logged:  # of a prepared statement psycopg does not say what was sent
        whole: Any = psycopg.ClientCursor(connection.connection)
        for kind, loader in (("json", psycopg.types.json.JsonLoader), ("jsonb", psycopg.types.json.JsonbLoader)):
            whole.adapters.register_loader(kind, loader)
        return connection.make_debug_cursor(whole)
    found: Any = psycopg.Cursor(connection.connection)
    found.format = psycopg.pq.Format.BINARY
    return connection.make_cursor(found)
