"""The database as the settings open it."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from claudeops.lib.files import keep_private
from tests.support.processes import start

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


def modes(folder: Path) -> dict[str, str]:
    return {path.name: f"{path.lstat().st_mode & 0o777:o}" for path in sorted(folder.iterdir())}


@pytest.mark.processes
@pytest.mark.django_db
def test_nobody_else_reads_what_is_in_the_data_folder_whatever_was_there(tmp_path):
    folder = tmp_path / "data"
    (folder / "sessions").mkdir(parents=True)
    for name in ("claudeops.sqlite3", "claudeops.sqlite3-wal", "claudeops.sqlite3-shm", "worker.log"):
        (folder / name).touch()
        (folder / name).chmod(0o644)
    for path in (folder, folder / "sessions"):
        path.chmod(0o755)
    more = {"CLAUDEOPS_DATA_DIR": str(folder), "DATABASE_URL": "", "SECRET_KEY": ""}
    hold = (
        "import os, django; os.umask(0o022); django.setup(); from django.db import connection\n"
        "connection.cursor().execute('CREATE TABLE x (y)'); print('made', flush=True); input()"
    )
    process = start(["-c", hold], more, is_asked=True)
    assert process.stdout.readline() == "made\n"
    found = modes(folder)
    process.communicate("\n")
    assert {"claudeops.sqlite3", "claudeops.sqlite3-wal", "claudeops.sqlite3-shm", "sessions", "secret_key"} <= set(
        found
    )
    assert found == {name: "700" if name == "sessions" else "600" for name in found}


def test_a_link_out_of_the_data_folder_is_left_alone(tmp_path, settings):
    outside, folder = tmp_path / "outside", tmp_path / "data"
    settings.CLAUDEOPS_DATA_DIR = folder
    keep_private()
    folder.mkdir()
    outside.write_text("x")
    outside.chmod(0o644)
    (folder / "link").symlink_to(outside)
    (folder / "run").mkdir(mode=0o755)
    (folder / "read-only").touch(mode=0o444)
    keep_private()
    assert modes(folder) | {"link": ""} == {"link": "", "read-only": "400", "run": "700"}
    assert outside.stat().st_mode & 0o777 == 0o644
