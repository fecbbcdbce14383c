"""Real outages: another file as the database, a disk that is full, a database that another process keeps locked."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection, transaction


@contextmanager
def connected(path: Path) -> Iterator[None]:
    """Use another database file in this process."""
    name = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = str(path)
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = name


def copy_of_database(path: Path) -> Path:
    """Copy the database of the test, a SQLite file, to `path`."""
    with sqlite3.connect(str(connection.settings_dict["NAME"])) as database:
        database.execute("VACUUM INTO ?", [str(path)])
    return path


def fill_database() -> None:
    """Have the database raise what it raises when its disk is full."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with transaction.atomic():  # what fails ends a transaction, and a test may be in one
                cursor.execute("DO $$ BEGIN RAISE 'could not extend file' USING ERRCODE = '53100'; END $$")
        cursor.execute("PRAGMA page_count")
        cursor.execute(f"PRAGMA max_page_count = {cursor.fetchone()[0]}")
        try:
            cursor.execute("CREATE TABLE filler AS SELECT zeroblob(10000000)")
        finally:
            cursor.execute("PRAGMA max_page_count = 1073741823")


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """Mount a disk of so many megabytes at `folder`."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, *, leave: int = 0) -> Path:
    """Fill the disk of `folder` but for `leave` bytes, in a file that is removed to make room."""
    filler = folder / "filler"
    with filler.open("ab", buffering=0) as file:
        usage = os.statvfs(folder)
        try:
            os.posix_fallocate(file.fileno(), 0, filler.stat().st_size + usage.f_bavail * usage.f_frsize)
        except OSError:  # somebody else was faster
            pass
    os.truncate(filler, filler.stat().st_size - leave)
    return filler


@contextmanager
def locked(path: Path, mode: str = "IMMEDIATE") -> Iterator[None]:
    """Another process keeps the SQLite file locked."""
    code = (
        "import sqlite3, sys; database = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "database.execute(f'BEGIN {sys.argv[2]}'); print('locked', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path), mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "locked\n"
        yield
    finally:
        holder.communicate()
