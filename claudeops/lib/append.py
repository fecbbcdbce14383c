"""Append a row to a log table without waiting for SQLite's writer: a person waits for the answer that it is about."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import groupby

from django.db import DatabaseError, connection, models, transaction

from claudeops.lib.insert import insert
from claudeops.lib.outage import is_locked

logger = logging.getLogger(__name__)

LONGEST_WAIT = 0.02
"""Seconds that an answer waits for SQLite's writer before a thread writes its row."""
MOST_WAITING = 1_000
NOT_WRITTEN = "a row of %s could not be written: %s"


def append(row: models.Model) -> int | None:
    """Insert `row` and return its id; None when it could not be written, or a thread writes it later. Never raises.

    A failure aborts neither the caller's transaction nor its work.
    """
    inside, on_postgresql = connection.in_atomic_block, connection.vendor == "postgresql"
    try:
        with _short_busy_timeout(), transaction.atomic() if inside or on_postgresql else nullcontext():
            if on_postgresql and not inside:  # no wait for the disk: a power cut may lose the last rows
                with connection.cursor() as cursor:
                    cursor.execute("SET LOCAL synchronous_commit = off")
            insert(row)
            return int(row.pk)
    except DatabaseError as error:
        if is_locked(error) and not connection.in_atomic_block:
            _later.write(row)
        else:
            logger.warning(NOT_WRITTEN, row._meta.db_table, error)
    return None


@contextmanager
def _short_busy_timeout() -> Iterator[None]:
    """Limit the wait for SQLite's writer to LONGEST_WAIT."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    connection.ensure_connection()
    usual = connection.settings_dict["OPTIONS"].get("timeout", 5.0)
    connection.connection.execute(f"PRAGMA busy_timeout = {int(LONGEST_WAIT * 1000)}")
    try:
        yield
    finally:
        if connection.connection is not None:
            connection.connection.execute(f"PRAGMA busy_timeout = {int(usual * 1000)}")


class _Later:
    """Rows that wait for the writer, and the thread that writes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: list[models.Model] = []
        self._writing = False

    def write(self, row: models.Model) -> None:
        with self._lock:
            if len(self._rows) >= MOST_WAITING:
                logger.warning(NOT_WRITTEN, row._meta.db_table, "too many wait for the database already")
                return
            self._rows.append(row)
            if self._writing:
                return
            self._writing = True
        # Not a daemon: a command that ends writes its row first.
        threading.Thread(target=self._work, name="appended-rows").start()

    def _work(self) -> None:
        try:
            while rows := self._taken():
                for table, same in groupby(rows, lambda row: row._meta):
                    try:
                        with transaction.atomic():
                            table.default_manager.bulk_create(list(same))
                    except DatabaseError as error:
                        logger.warning(NOT_WRITTEN, table.db_table, error)
        except BaseException:
            with self._lock:
                self._writing = False
            raise
        finally:
            connection.close()

    def _taken(self) -> list[models.Model]:
        with self._lock:
            rows, self._rows = self._rows, []
            self._writing = bool(rows)  # under the lock: a later row starts its own thread
            return rows


_later = _Later()
