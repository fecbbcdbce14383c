"""The settings files of the CLI: where they are, and reading and writing one without harm."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from claudeops.lib.domain_error import DomainError
from claudeops.lib.files import replace_file, whole_file
from claudeops.lib.tracked_file import git
from sessions_app.errors import InvalidSettings
from sessions_app.transcripts.files import folder_of

LARGEST = 1024 * 1024
"""Bytes of a settings file that is read."""

SHARED, LOCAL = "settings.json", "settings.local.json"
"""A project's settings for everybody, which belong into version control, and those of one person, which do not."""


def user_file(environment: Mapping[str, str]) -> Path:
    """Return the person's own settings file."""
    return folder_of(environment) / SHARED


def token_file(path: Path, environment: Mapping[str, str]) -> Path:
    """Return the file with the token for the commands in the settings file `path`, outside of any repository."""
    return folder_of(environment) / "claudeops" / f"{hashlib.sha256(str(path).encode()).hexdigest()[:12]}.token"


def project_file(folder: Path, *, shared: bool) -> Path:
    """Return a project's settings file. Raises InvalidSettings for what is no folder."""
    if not folder.is_dir():
        raise InvalidSettings(f"{folder} is no folder.", "Give the path of a repository.")
    return folder.resolve() / ".claude" / (SHARED if shared else LOCAL)


def read(path: Path) -> str | None:
    """Return the text of a settings file; None when there is none. Raises InvalidSettings for one that is not ours."""
    if path.parent.is_symlink() or path.is_symlink():
        link = path if path.is_symlink() else path.parent
        raise InvalidSettings(f"{link} is a link to {link.resolve()}; it is left alone.", "Install into a real file.")
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                raise InvalidSettings(f"{path} is no file of the current user; it is left alone.")
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidSettings(f"{path} cannot be read: {error.strerror}.") from error
    if len(data) > LARGEST:
        raise InvalidSettings(f"{path} has more than {LARGEST:,} bytes; it is left alone.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidSettings(f"{path} is not UTF-8; it is left alone.") from error


def write(path: Path, before: str | None, after: str | None) -> None:
    """Replace the text `before` by `after`, the whole file or nothing; None is no file. A new file is its user's alone.

    Raises InvalidSettings when the file was changed meanwhile or cannot be written.
    """
    if read(path) != before:
        raise InvalidSettings(f"{path} was changed meanwhile; it is left alone.", "Run the command again.")
    try:
        if after is None:
            path.unlink(missing_ok=True)
        elif before is None:
            path.parent.mkdir(exist_ok=True)
            with whole_file(path) as out:
                out.write(after)
        else:
            replace_file(path, after.encode("utf-8"))
    except OSError as error:
        raise InvalidSettings(f"{path} cannot be written: {error.strerror}.") from error


def write_token(path: Path, secret: str) -> None:
    """Write a token into a file that is its user's alone. Raises InvalidSettings."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with whole_file(path) as out:
            out.write(f"{secret}\n")
    except OSError as error:
        raise InvalidSettings(f"{path} cannot be written: {error.strerror}.") from error


def token_in(path: Path) -> str:
    """Return the token of a file that `write_token` wrote; empty when there is none."""
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def keep_from_git(path: Path) -> str:
    """Have git ignore a file with a token, and say how that stands; "" for one that is in no repository."""
    try:
        repository = git.find_repository(path.parent)
        if repository is None:
            return ""
        if git.leave_out(repository, (path.parent.resolve() / path.name).relative_to(repository.root).as_posix()):
            return f"{path} holds a token: git ignores it."
        return f"git tracks {path}, so the next commit holds its token. Run: git rm --cached {path}"
    except DomainError as error:
        return f"{path} holds a token, and git does not ignore it: {error} Keep it out of version control."


def open_to_others(path: Path) -> bool:
    """Whether other users of the machine may read the file."""
    return path.exists() and bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
