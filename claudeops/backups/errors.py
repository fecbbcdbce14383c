"""The errors of backups; a surface turns them into a message and an exit code."""

from __future__ import annotations

import os

from claudeops.lib import outage
from claudeops.lib.cli import Refusal


class BackupError(Refusal):
    pass


def printable(path: object) -> str:
    """Return a path for people. An agent may have named the file: no control character reaches a terminal."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in str(path))


def busy() -> BackupError:
    return BackupError("busy", "Another backup or restore is running.", "Wait until it has ended.")


def cannot_write(what: str, error: OSError, path: os.PathLike[str] | str) -> BackupError:
    """Return the error of a file that could not be read or written. `what` says in words what was not done."""
    place = printable(error.filename if error.filename else path)
    if full := outage.named_in(error):
        return BackupError(full.code, f"{what}: {place}: {full.message}", full.fix)
    return BackupError("cannot_write", f"{what}: {place}: {error.strerror or error}.", "Nothing was changed.")
