"""Tell whether SQLite's file is damaged: by an error that SQLite raised, or by its quick check within a time."""

from __future__ import annotations

import sqlite3
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from django.db import DatabaseError, connection

OK, DAMAGED, UNFINISHED = "ok", "damaged", "unfinished"
CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
HEADING = "*** in database main ***"
FIX = "Stop claudeops first. `manage.py restore --help` says more."
SECONDS_AFTER_AN_ERROR = 3.0
"""Time for the check that follows an error without a code: rows of a damaged page may be read as wrong values."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What the quick check found: ok, damaged or unfinished; `said` is what SQLite said, or why it is unfinished."""

    state: str
    said: str = ""


def file() -> Path | None:
    """Return the file of the default database; None when it has none."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite" or name == ":memory:" or name.startswith("file:"):
        return None
    return Path(name)


def quick_check(path: Path, seconds: float) -> Checked:
    """Run `PRAGMA quick_check` on a connection of its own, which has cached no page; end it after `seconds`."""
    if not path.is_file():
        return Checked(UNFINISHED, "there is no such file")
    try:
        # Read-only; the same SQLite library as Django's, so its locks on the file stay.
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=seconds)
    except sqlite3.Error as error:
        return _of(error)
    # Before SQLite 3.42 the handler is not called within a table; the timer alone may fire before the check begins.
    end = time.monotonic() + seconds
    database.set_progress_handler(lambda: time.monotonic() >= end, 1000)
    timer = threading.Timer(seconds, database.interrupt)
    timer.daemon = True
    timer.start()
    try:
        answer = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return Checked(UNFINISHED, f"not finished in {seconds:g} s") if _is_interrupt(error) else _of(error)
    finally:
        timer.cancel()
        timer.join()  # it must not interrupt a closed connection
        database.close()
    return Checked(OK) if answer == OK else Checked(DAMAGED, " ".join(answer.replace(HEADING, "").split()))


def said_in(error: BaseException | None) -> str:
    """Return what SQLite said of Django's database in this error or one of its causes; "" for other errors.

    An error of `sqlite3` itself is about another file, such as a backup's copy.
    """
    while error is not None:
        if isinstance(error, DatabaseError) and _is_damage(error.__cause__):
            return str(error)
        error = error.__cause__ or error.__context__
    return ""


def behind(error: BaseException | None) -> str:
    """Describe, in one sentence with the remedy, the damage that caused an error; "" when the file is not damaged."""
    path = file()
    if path is None:
        return ""
    damage = said_in(error)
    if not damage:
        check = quick_check(path, SECONDS_AFTER_AN_ERROR)
        damage = check.said if check.state == DAMAGED else ""
    return sentence(damage) if damage else ""


def sentence(said: str) -> str:
    name = Path(connection.settings_dict["NAME"]).name
    return f"The database {name} is damaged (SQLite: {said}); `manage.py restore` brings a backup back."


def _of(error: sqlite3.Error) -> Checked:
    return Checked(DAMAGED if _is_damage(error) else UNFINISHED, str(error))


def _is_damage(error: BaseException | None) -> bool:
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in CODES


def _is_interrupt(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT
