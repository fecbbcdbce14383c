"""The database as the settings open it."""

import pytest
from django.db import connection

sqlite = pytest.mark.skipif("connection.vendor != 'sqlite'", reason="SQLite's own pragmas")


@sqlite
@pytest.mark.django_db
def test_sqlite_is_a_real_file_in_wal_mode_with_immediate_transactions():
    with connection.cursor() as cursor:
        values = {
            name: cursor.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "journal_size_limit")
        }
        path = cursor.execute("PRAGMA database_list").fetchone()[2]
    assert values == {"journal_mode": "wal", "synchronous": 1, "journal_size_limit": 67108864}
    assert path.endswith(".sqlite3") or "test.sqlite3" in path
    assert connection.transaction_mode == "IMMEDIATE"
