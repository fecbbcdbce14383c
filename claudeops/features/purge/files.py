"""Put marks in place of texts in the files of the data folder: in place, byte for byte as long."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from django.conf import settings

from claudeops.features.backups.folder import STAMP, backups_folder, complete
from claudeops.features.purge.needles import Needles
from claudeops.features.secret_scan.files import is_text, kind_of, running_folders, text_files
from memories.models import Transcript
from sessions_app.runner.log_masking import change_file
from sessions_app.transcripts.files import digest

ASIDE = ("before-restore-", ".restore")
"""How the folders begin in which a restore keeps what was there before."""
LEFT_OUT = ("models", "vectors", "backups", "demo")
"""Folders without texts, or with a data folder and copies of their own."""
KEYS = ("secret_key", "first-sign-in.txt")


@dataclass(slots=True)
class Files:
    """How many texts were found by kind of file; `left` names files that were not changed, with the reason."""

    counts: Counter[str] = field(default_factory=Counter)
    left: dict[str, str] = field(default_factory=dict)


def data_folder() -> Path:
    return Path(settings.CLAUDEOPS_DATA_DIR)


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
    report, running, top = Files(), running_folders(), data_folder()
    if not needles:
        return report
    if first and (top / first).is_file():
        _mark(top / first, needles)
    apart = (*LEFT_OUT, *(path.name for path in top.iterdir() if path.name.startswith(ASIDE)))
    for path in text_files(apart, KEYS):
        name = path.relative_to(top).as_posix()
        try:
            count = masked(path, needles, write=False)
            if not count:
                continue
            if any(path.is_relative_to(folder) for folder in running):
                report.left[name] = "its session still runs"
                continue
            report.counts[kind_of(path)] += count
            if write:
                before(name, Counter({kind_of(path): count}))
                _mark(path, needles)
        except OSError as error:
            report.left[name] = error.strerror or str(error)
    return report


def masked(path: Path, needles: Needles, *, write: bool) -> int:
    """Count the texts in a file; with `write` put marks in place. Raises OSError. A read-only file stays one."""
    by_line = path.suffix == ".jsonl"

    def change(block: bytes) -> tuple[bytes, Counter[str]]:
        if not needles.may_be_in(block):
            return block, Counter()
        parts = [needles.removed_from_line(part) for part in (block.splitlines(True) if by_line else [block])]
        return b"".join(part for part, _ in parts), Counter(texts=sum(number for _, number in parts))

    return change_file(path, change, write=write).total()


def _mark(path: Path, needles: Needles) -> None:
    """Put marks in a file, and tell its transcripts that the observed beginning is what it is now: no other file."""
    masked(path, needles, write=True)
    for row in Transcript.objects.filter(host=settings.CLAUDEOPS_HOST, path__in={str(path), str(path.resolve())}):
        Transcript.objects.filter(pk=row.pk, observed_to=row.observed_to).update(
            prefix_sha256=digest(path, row.observed_to) if row.observed_to else row.prefix_sha256,
            modified_ns=path.stat().st_mtime_ns,
        )


def copies(since: str) -> list[Path]:
    """Return the backups made since a time (ISO, UTC; "": all), and the folders that a restore set aside."""
    first = f"{datetime.fromisoformat(since):{STAMP}}" if since else ""
    backups = [path for path in complete(backups_folder()) if path.name >= first]
    aside = [path for path in data_folder().iterdir() if path.is_dir() and path.name.startswith(ASIDE)]
    return [*backups, *sorted(aside)]


def outside(transcripts: Iterable[str], cli_sessions: Iterable[str], needles: Needles) -> list[str]:
    """Return the files outside of the data folder that hold a text: transcripts that a CLI wrote. They are a person's.

    `transcripts` are paths on this host, `cli_sessions` ids of the CLI's sessions.
    """
    projects = Path(settings.CLAUDEOPS_CLAUDE_HOME) / ".claude" / "projects"
    paths = {Path(path) for path in transcripts}
    for name in cli_sessions:
        paths.update(projects.glob(f"*/{glob.escape(name)}.jsonl"))
    hits = []
    for path in sorted(paths):
        with suppress(OSError):
            is_ours = path.resolve().is_relative_to(data_folder().resolve())
            if not is_ours and is_text(path) and masked(path, needles, write=False):
                hits.append(str(path))
    return hits
