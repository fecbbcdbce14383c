"""Say why nothing can be stored or read now: a full disk, a locked, unreachable or damaged database.

The one place that reads such errors of the system, of SQLite and of PostgreSQL; every surface says its sentence.
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import Error, InterfaceError, OperationalError, connection

from claudeops.lib import sqlite_damage
from claudeops.lib.humanize import size

RESERVE = 100 * 1024**2
"""Bytes that stay free for the sessions that run: with less, none is started. Of a small disk it is a tenth."""
MAKE_ROOM = 'Free space there: docs/operating.md says what may go ("the disk fills").'
TRY_AGAIN = "Try again in some seconds. `manage.py doctor` says more."
UNREACHABLE = "Check DATABASE_URL, and whether the database runs."
SQLITE_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
SQLITE_UNWRITTEN = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
"""What SQLite says of a full disk when it is its -wal or -shm that does not fit."""
POSTGRESQL_FULL, POSTGRESQL_LOCKED = "53100", ("55P03", "40P01")
POSTGRESQL_AWAY = ("08", "53300", "57P01", "57P02", "57P03")
"""How the codes begin of a connection that failed, and of a server with no free connection, that stops or starts."""


@dataclass(frozen=True, slots=True)
class Outage:
    """`status` is HTTP's, `code` stable; `message` is one sentence, `fix` says what to do.

    `retry_after`: seconds after which a client may try again by itself; 0 when a person has to do something.
    """

    status: int
    code: str
    message: str
    fix: str
    retry_after: int = 0

    @property
    def title(self) -> str:
        return self.code.replace("_", " ").capitalize()


def full_disk(share: float = 1.0) -> str:
    """Say that the disk of the data folder, or of SQLite's file, has less than the reserve free; "" when it has more.

    `share` (0 to 1) is the part of the reserve that counts.
    """
    folder = Path(settings.CLAUDEOPS_DATA_DIR)
    file = sqlite_damage.file()
    for name, place in (("data folder", folder), ("database", file.parent if file else folder)):
        usage = shutil.disk_usage(next(path for path in (place, *place.parents) if path.exists()))
        needed = min(RESERVE, usage.total // 10)
        if usage.free < needed * share:
            return f"The disk of the {name} is full: {size(usage.free)} free, {size(needed)} needed."
    return ""


def named_in(error: BaseException | None) -> Outage | None:
    """Return the outage that this error or one of its causes names; None for other errors."""
    while error is not None:
        if outage := _of(error):
            return outage
        error = error.__cause__ or error.__context__
    return None


def behind(error: BaseException | None) -> Outage | None:
    """Return the outage that caused an error; also damage that SQLite read as wrong values, which takes a check."""
    damage = "" if (outage := named_in(error)) else sqlite_damage.behind(error)
    return damaged(damage) if damage else outage


def damaged(sentence: str) -> Outage:
    return Outage(503, "database_damaged", sentence, sqlite_damage.FIX)


def is_locked(error: BaseException) -> bool:
    """Whether another writer keeps Django's database locked."""
    return _sqlite_code(error) in SQLITE_LOCKED or _sqlstate(error) in POSTGRESQL_LOCKED


def _of(error: BaseException) -> Outage | None:
    if _is_full(error):
        return Outage(507, "disk_full", full_disk() or _full_elsewhere(error), MAKE_ROOM)
    if is_locked(error):
        return Outage(503, "database_locked", "The database is locked by another process.", TRY_AGAIN, retry_after=5)
    if _is_away(error):
        return Outage(503, "database_unreachable", "The database does not answer.", UNREACHABLE, retry_after=5)
    damage = sqlite_damage.said_in(error)
    return damaged(sqlite_damage.sentence(damage)) if damage else None


def _is_full(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    code = _sqlite_code(error)
    unwritten = code in SQLITE_UNWRITTEN and bool(full_disk())
    return code == sqlite3.SQLITE_FULL or unwritten or _sqlstate(error) == POSTGRESQL_FULL


def _full_elsewhere(error: BaseException) -> str:
    """Say what is full when the data folder has room: another disk, a quota, the database's server."""
    reason = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
    return f"A disk is full: {reason.partition(chr(10))[0]}."


def _is_away(error: BaseException) -> bool:
    if connection.vendor == "sqlite":
        return _sqlite_code(error) == sqlite3.SQLITE_CANTOPEN
    code = _sqlstate(error)
    return code.startswith(POSTGRESQL_AWAY) if code else isinstance(error, OperationalError | InterfaceError)


def _sqlite_code(error: BaseException) -> int:
    """Return SQLite's primary result code of an error of Django's database; 0 for another."""
    code = getattr(error.__cause__, "sqlite_errorcode", None) if isinstance(error, Error) else None
    return (code or 0) & 0xFF


def _sqlstate(error: BaseException) -> str:
    return str(getattr(error.__cause__, "sqlstate", None) or "") if isinstance(error, Error) else ""
