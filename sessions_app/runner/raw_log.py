"""Where raw logs are: the one function that turns a session's `log_file` into a path."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from sessions_app.errors import RawLogOutside
from sessions_app.models import Session

SUFFIX = ".jsonl"


def sessions_folder() -> Path:
    """Return the folder of all sessions' folders."""
    return Path(settings.CLAUDEOPS_DATA_DIR) / "sessions"


def log_path(session: Session) -> Path:
    """Return the path of the session's raw log, links resolved; it may be missing.

    Raises RawLogOutside unless it is a `.jsonl` file in the sessions' folder: a row that names the secret key, the
    database or a session's MCP token is wrong or forged.
    """
    if "\x00" not in session.log_file:
        path = (Path(settings.CLAUDEOPS_DATA_DIR) / session.log_file).resolve()
        if path.is_relative_to(sessions_folder().resolve()) and path.suffix == SUFFIX:
            return path
    raise RawLogOutside(
        f"The raw log of session {session.pk} is named {session.log_file!r}; a raw log is a {SUFFIX} file in the "
        "sessions' folder.",
        "It is not read. Look at what wrote this row.",
    )
