"""Put marks in place of texts in the files of the data folder: in place, byte for byte as long."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from django.conf import settings

from claudeops.backups.folder import backups_folder, complete, time_of
from claudeops.purge.texts import Needles
from claudeops.secret_scan.files import LOOKED_AT, is_apart
from memories.models import Transcript
from sessions_app.models import Session
from sessions_app.runner.launch import folder_of
from sessions_app.runner.log_masking import is_sealed
from sessions_app.transcripts.files import digest

LEFT_OUT = ("models", "vectors", "backups", "demo")
"""Folders without texts, or with a data folder and copies of their own."""
ASIDE = ("before-restore-", ".restore")
"""How the folders begin in which a restore keeps what was there before."""
GIT = ".git"
KEYS = ("secret_key", "first-sign-in.txt")
BLOCK = 16 * 1024 * 1024
"""Bytes of a file that are read at once, with the rest of the line."""


@dataclass(slots=True)
class Files:
    """How many texts were found by kind of file; `left` names files that were not changed, with the reason."""

    counts: Counter[str] = field(default_factory=Counter)
    left: dict[str, str] = field(default_factory=dict)


def data_folder() -> Path:
    return Path(settings.CLAUDEOPS_DATA_DIR)


def text_files() -> Iterator[Path]:
    """Yield the files with text in the data folder, in a fixed order; those of backups and of git are not ours."""
    top = data_folder()
    apart = backups_folder()
    for path, folders, names in os.walk(top):
        here = Path(path)
        folders[:] = sorted(
            name
            for name in folders
            if name != GIT
            and here / name != apart
            and not (here == top and (name in LEFT_OUT or name.startswith(ASIDE)))
            and not (here / name).is_symlink()
        )
        for name in sorted(names):
            if not is_apart(here / name, KEYS):
                yield here / name


def scrub(
    needles: Needles,
    *,
    write: bool,
    first: str = "",
    before: Callable[[str, Counter[str]], object] = lambda name, counts: None,
) -> Files:
    """Search the data folder; with `write` put marks.

    `before(name, counts)` is called before a file is changed, by its name in the data folder, with what is found in it.
    `first` is the file that an interrupted run was at: it was counted. Files of running sessions are left, because
    their processes still write.
    """
    found = Files()
    running = {folder_of(session) for session in Session.objects.running().only("uuid", "queued_at")}
    if first and (data_folder() / first).is_file():
        masked(data_folder() / first, needles, write=write)
        refreshed(data_folder() / first)
    for path in text_files():
        name = path.relative_to(data_folder()).as_posix()
        try:
            count = masked(path, needles, write=False)
            if not count:
                continue
            if any(path.is_relative_to(folder) for folder in running):
                found.left[name] = "its session still runs"
                continue
            found.counts[kind_of(path)] += count
            if write:
                before(name, Counter({kind_of(path): count}))
                masked(path, needles, write=True)
                refreshed(path)
        except OSError as error:
            found.left[name] = error.strerror or str(error)
    return found


def kind_of(path: Path) -> str:
    """Return what a file is in a receipt: its first folder and its name, without what differs by session."""
    parts = path.relative_to(data_folder()).parts
    return path.name if len(parts) == 1 else f"{parts[0]}/**/{path.name}"


def masked(path: Path, needles: Needles, *, write: bool) -> int:
    """Count the texts in a file; with `write` put marks in place. Raises OSError. A read-only file stays one."""
    count = 0
    sealed = write and is_sealed(path)
    if sealed:
        path.chmod(0o600)
    try:
        with path.open("r+b" if write else "rb") as file:
            if b"\0" in file.read(LOOKED_AT):
                return 0
            file.seek(0)
            by_line = path.suffix == ".jsonl"
            while True:
                start = file.tell()
                data = file.read(BLOCK)
                if not data:
                    break
                data += file.readline()
                if not needles.may_be_in(data):
                    continue
                parts = [needles.removed_from_line(part) for part in (data.splitlines(True) if by_line else [data])]
                count += sum(number for _, number in parts)
                new = b"".join(part for part, _ in parts)
                if write and new != data:
                    file.seek(start)
                    file.write(new)
                    file.seek(start + len(data))
            if write:
                file.flush()
                os.fsync(file.fileno())
    finally:
        if sealed:
            path.chmod(0o400)
    return count


def refreshed(path: Path) -> None:
    """Tell the transcripts of a file that its observed beginning is what it is now: else it would count as another."""
    for row in Transcript.objects.filter(host=settings.CLAUDEOPS_HOST, path__in={str(path), str(path.resolve())}):
        Transcript.objects.filter(pk=row.pk, observed_to=row.observed_to).update(
            prefix_sha256=digest(path, row.observed_to) if row.observed_to else row.prefix_sha256,
            modified_ns=path.stat().st_mtime_ns,
        )


def copies(since: datetime | None) -> list[Path]:
    """Return the backups made since a time (UTC; None: all), and the folders that a restore set aside."""
    first = since and since.replace(microsecond=0)  # their names have whole seconds
    made = [path for path in complete(backups_folder()) if first is None or (time_of(path.name) or first) >= first]
    aside = [path for path in data_folder().iterdir() if path.is_dir() and path.name.startswith(ASIDE)]
    return [*made, *sorted(aside)]


def outside(transcripts: Iterable[str], cli_sessions: Iterable[str], needles: Needles) -> list[str]:
    """Return the files outside of the data folder that hold a text: transcripts that a CLI wrote. They are a person's.

    `transcripts` are paths on this host, `cli_sessions` ids of the CLI's sessions.
    """
    projects = Path(settings.CLAUDEOPS_CLAUDE_HOME) / ".claude" / "projects"
    paths = {Path(path) for path in transcripts}
    for name in cli_sessions:
        paths.update(projects.glob(f"*/{glob.escape(name)}.jsonl"))
    found = []
    for path in sorted(paths):
        with suppress(OSError):
            if not path.resolve().is_relative_to(data_folder().resolve()) and masked(path, needles, write=False):
                found.append(str(path))
    return found
