"""Search the files of the data folder that claudeops writes text into: raw logs, stderr, prompts and the like."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from django.conf import settings

from claudeops.features.backups.folder import backups_folder
from claudeops.lib import sqlite_damage
from sessions_app.models import Session
from sessions_app.runner.launch import MCP_CONFIG, folder_of

LAST = "secrets-scan.json"
"""When the last scan ran and what it found: in the data folder, because raw logs belong to one host."""
OTHERS = ("work", "models", "vectors", "backups", "demo")
"""Folders of agents, models and vectors; of backups, which are as old as they are; and the demo's own data folder."""
KEYS = ("secret_key", "first-sign-in.txt", MCP_CONFIG, LAST)
"""Files that hold a key on purpose, readable by their owner only."""
DATABASES = (".sqlite3", ".sqlite3-wal", ".sqlite3-shm", ".sqlite3-journal", ".lock", ".npz", ".bits")
LOOKED_AT = 8192
"""A file with a NUL in so many first bytes is no text."""


def is_apart(file: Path, keys: Collection[str]) -> bool:
    """Whether a file of the data folder is a key, a database or a link, and not looked at.

    To open the live database would be harm enough: closing the file drops the locks that SQLite has in this process.
    """
    live = sqlite_damage.file()
    names = {f"{live.name}{ending}" for ending in ("", "-wal", "-shm", "-journal")} if live else ()
    apart = file.name in keys or file.name in names or file.name.endswith(DATABASES)
    return apart or file.is_symlink() or not file.is_file()


def text_files(apart: Collection[str] = OTHERS, keys: Collection[str] = KEYS) -> Iterator[Path]:
    """Yield the files with text in the data folder, but for the folders `apart` and git's own, in a fixed order."""
    top = Path(settings.CLAUDEOPS_DATA_DIR)
    for path, folders, names in os.walk(top):
        here = Path(path)
        others = {".git", *(apart if here == top else ())}
        folders[:] = sorted(name for name in folders if name not in others and here / name != backups_folder())
        for file in (here / name for name in sorted(names)):
            if not is_apart(file, keys) and is_text(file):
                yield file


def is_text(file: Path) -> bool:
    """Whether a file has no NUL at its beginning; one that cannot be read may be text."""
    try:
        with file.open("rb") as opened:
            return b"\0" not in opened.read(LOOKED_AT)
    except OSError:
        return True


def running_folders() -> set[Path]:
    """Return the folders of the sessions that run: their processes still write."""
    return {folder_of(session) for session in Session.objects.running().only("uuid", "queued_at")}


def kind_of(path: Path) -> str:
    """Return what a file is in a report: its first folder and its name, without what differs by session."""
    parts = path.relative_to(settings.CLAUDEOPS_DATA_DIR).parts
    return path.name if len(parts) == 1 else f"{parts[0]}/**/{path.name}"
