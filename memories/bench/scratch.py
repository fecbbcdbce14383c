"""A database of its own for a bench, of the same engine, gone afterwards: the operator's rows are never touched.

Gone as well when the bench is broken off, by Ctrl-C or by SIGTERM.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from django.conf import settings
from django.core.management import call_command
from django.db import connection

from memories.recall import keyword, meaning, pgvector, vectors


@contextmanager
def scratch() -> Iterator[Path]:
    """Within it `connection` is an empty, migrated database; yields its folder, which is the data folder so long."""
    kept_name, kept_folder = connection.settings_dict["NAME"], settings.CLAUDEOPS_DATA_DIR
    made = "" if connection.vendor == "sqlite" else f"claudeops_bench_{uuid.uuid4().hex[:12]}"
    with _ended_as_by_ctrl_c(), tempfile.TemporaryDirectory(prefix="claudeops-bench-") as folder:
        try:
            if made:
                _server(f'CREATE DATABASE "{made}"')
            connection.close()
            connection.settings_dict["NAME"] = made or str(Path(folder) / "bench.sqlite3")
            settings.CLAUDEOPS_DATA_DIR = Path(folder)
            _forget()
            call_command("migrate", verbosity=0, interactive=False)
            yield Path(folder)
        finally:
            connection.close()
            connection.settings_dict["NAME"], settings.CLAUDEOPS_DATA_DIR = kept_name, kept_folder
            _forget()
            if made:
                _server(f'DROP DATABASE IF EXISTS "{made}" WITH (FORCE)')


@contextmanager
def _ended_as_by_ctrl_c() -> Iterator[None]:
    """SIGTERM leaves through `finally` too; without this, the process would end where it stands."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # so that a second one does not break off the tidying
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _server(statement: str) -> None:
    connection.close()
    with connection._nodb_cursor() as cursor:
        cursor.execute(statement)


def _forget() -> None:
    keyword.forget()
    vectors.forget()
    pgvector.forget()
    meaning.forget()
