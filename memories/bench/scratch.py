"""A database of its own for a bench, of the same engine, gone afterwards: the operator's rows are never touched.

Gone as well when the bench is broken off, by Ctrl-C or by SIGTERM. What a `kill -9` left is taken away by a bench
that is run a day later.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection

from memories.recall import binary_index, pgvector, query_vector, term_statistics

logger = logging.getLogger(__name__)

FOLDER, DATABASE = "claudeops-bench-", "claudeops_bench_"
MADE = re.compile(r"(\d{10,12})_[0-9a-f]{12}")
"""What follows in a database's name: the second at which it was made, and a random part."""
LEFT_OVER = 24 * 3600
"""Seconds after which what nobody uses was left by a bench that was killed."""


@contextmanager
def scratch() -> Iterator[Path]:
    """Within it `connection` is an empty, migrated database; yields its folder, which is the data folder so long."""
    kept_name, kept_folder = connection.settings_dict["NAME"], settings.CLAUDEOPS_DATA_DIR
    made = "" if connection.vendor == "sqlite" else f"{DATABASE}{int(time.time())}_{uuid.uuid4().hex[:12]}"
    with _ended_as_by_ctrl_c(), tempfile.TemporaryDirectory(prefix=FOLDER) as folder:
        try:
            tidy(time.time())
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


def tidy(now: float) -> list[str]:
    """Take away what benches left that were killed more than a day before `now`, in Unix seconds. Returns its names.

    Only this user's own, by their names, and no database that somebody is connected to.
    """
    gone = [*_tidy_folders(now), *(_tidy_databases(now) if connection.vendor == "postgresql" else ())]
    for name in gone:
        logger.info("%s, which a bench that was killed had left, is gone", name)
    return gone


def _tidy_folders(now: float) -> Iterator[str]:
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        try:
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            newest = max([found.st_mtime, *(one.lstat().st_mtime for one in folder.rglob("*"))])
        except FileNotFoundError:  # its bench is ending
            continue
        if newest < now - LEFT_OVER:
            shutil.rmtree(folder, ignore_errors=True)
            yield folder.name


def _tidy_databases(now: float) -> Iterator[str]:
    connection.close()
    with connection._nodb_cursor() as cursor:
        cursor.execute(
            "SELECT datname FROM pg_database d WHERE starts_with(datname, %s) "
            "AND pg_get_userbyid(datdba) = current_user "
            "AND NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.datid = d.oid)",
            [DATABASE],
        )
        for (name,) in cursor.fetchall():
            made = MADE.fullmatch(name.removeprefix(DATABASE))
            if made is None or int(made[1]) >= now - LEFT_OVER:
                continue
            try:
                cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')  # not by force: somebody may have come meanwhile
            except DatabaseError as error:
                logger.info("%s, which a bench had left, stays: %s", name, str(error).splitlines()[0])
                continue
            yield name


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
    term_statistics.forget()
    binary_index.forget()
    pgvector.forget()
    query_vector.forget()
