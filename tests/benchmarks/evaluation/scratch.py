"""A scratch database of the configured engine, made and dropped by Django's own test database creation."""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from django.conf import settings
from django.db import connection

from memories.recall import binary_index, keyword_index, pgvector, query_vector


@contextmanager
def scratch_database() -> Iterator[Path]:
    """Connect to an empty, migrated database; yields its folder, which is the data folder meanwhile.

    It is dropped at the end, also after Ctrl-C and SIGTERM. What a `kill -9` left is replaced by the next run.
    """
    name, data_dir = connection.settings_dict["NAME"], settings.CLAUDEOPS_DATA_DIR
    test_settings = connection.settings_dict["TEST"]
    test_name = test_settings["NAME"]
    with _sigterm_as_exit(), tempfile.TemporaryDirectory(prefix="claudeops-bench-") as folder:
        in_file = connection.vendor == "sqlite"
        test_settings["NAME"] = str(Path(folder) / "bench.sqlite3") if in_file else f"{name}_bench"
        settings.CLAUDEOPS_DATA_DIR = Path(folder)
        try:
            _forget()
            connection.close()
            connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
            yield Path(folder)
        finally:
            test_settings["NAME"], settings.CLAUDEOPS_DATA_DIR = test_name, data_dir
            _forget()
            connection.close()
            if connection.settings_dict["NAME"] != name:  # never the operator's, if creating it failed early
                connection.creation.destroy_test_db(name, verbosity=0)


@contextmanager
def _sigterm_as_exit() -> Iterator[None]:
    """Turn SIGTERM into SystemExit, so that `finally` runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not interrupt the cleanup
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _forget() -> None:
    keyword_index.forget()
    binary_index.forget()
    pgvector.forget()
    query_vector.forget()
