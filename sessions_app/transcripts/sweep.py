"""Sweep the folders of transcripts: take in what no hook named, because the server was down or a session was killed.

The file is the truth and a hook only a hint. A file that has not changed costs a stat.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from claudeops.lib.lease import Lease
from claudeops.lib.secrets import mask
from memories.models import ArrivedBy, RecordLevel, Transcript
from memories.telemetry import record
from sessions_app.models import Session, TranscriptFolder, Trigger
from sessions_app.runner import accept
from sessions_app.transcripts.arrivals import Named, Outcome, excluded, take_in
from sessions_app.transcripts.files import SUBAGENT, SUFFIX
from sessions_app.transcripts.place import project_at

logger = logging.getLogger(__name__)

BY_SETTING = "CLAUDEOPS_TRANSCRIPT_FOLDERS"
"""The installation of a folder that the setting names."""
MOST_SECONDS = 120.0
"""After so long a sweep stops; the next one goes on with what it left."""
IDLE = timedelta(minutes=30)
"""Without a new line for so long a transcript is observed though its end was not heard of."""
LEASE = Lease(timedelta(minutes=2), "swept_at", holds_start=True)
"""For so long after its beginning another sweep leaves a folder alone."""
HEAD = 64 * 1024
"""Bytes in which the folder of a session is looked for."""
MOST_IDS = 500
LONGEST_NAME = 150
"""Characters of a folder's name that are compared: the CLI cuts a long one."""

SEEN = ("path", "size", "modified_ns", "ended_at")

_CWD = re.compile(rb'"cwd"\s*:\s*"(?:[^"\\]|\\.)*"')
_UNFIT = re.compile(r"[^a-zA-Z0-9]")


@dataclass(slots=True)
class Swept:
    """How many files were looked at, taken in (new or grown), and could not be read."""

    files: int = 0
    taken: int = 0
    unread: int = 0


@dataclass(frozen=True, slots=True)
class _Found:
    path: str
    size: int
    modified_ns: int

    @property
    def modified_at(self) -> datetime:
        return datetime.fromtimestamp(self.modified_ns / 1e9, tz=UTC)


def sweep(*, at: datetime | None = None, source: str = "schedule") -> Swept:
    """Look through this host's folders, the newest files first. Nothing with CLAUDEOPS_OBSERVE off.

    `source` is what runs it, for its telemetry record; a sweep that finds nothing new leaves none.
    """
    at = at or timezone.now()
    report = Swept()
    if not settings.CLAUDEOPS_OBSERVE:
        return report
    _follow_setting(at)
    begun = time.monotonic()
    until = begun + MOST_SECONDS
    for folder in TranscriptFolder.objects.filter(host=settings.CLAUDEOPS_HOST).order_by("pk"):
        if LEASE.take(TranscriptFolder.objects.filter(pk=folder.pk), at):
            _sweep(folder, report, at=at, until=until)
    if report.taken or report.unread:
        record(
            "memory.transcripts.completed",
            component="transcripts",
            source=source,
            level=RecordLevel.WARNING if report.unread else RecordLevel.INFO,
            duration_ms=int((time.monotonic() - begun) * 1000),
            **asdict(report),
        )
    return report


def folders_here() -> list[str]:
    """Return this host's folders of transcripts: those of hooks, and those of the setting."""
    rows = TranscriptFolder.objects.filter(host=settings.CLAUDEOPS_HOST).order_by("pk").values_list("path", flat=True)
    return list(dict.fromkeys([*rows, *settings.CLAUDEOPS_TRANSCRIPT_FOLDERS]))


def _follow_setting(at: datetime) -> None:
    """Keep a row for each folder of the setting; what is older than the row is not swept."""
    named = {str(Path(one).expanduser().resolve()) for one in settings.CLAUDEOPS_TRANSCRIPT_FOLDERS}
    rows = TranscriptFolder.objects.filter(host=settings.CLAUDEOPS_HOST, installation=BY_SETTING)
    rows.exclude(path__in=named).delete()
    existing = set(rows.values_list("path", flat=True))
    TranscriptFolder.objects.bulk_create(
        [
            TranscriptFolder(host=settings.CLAUDEOPS_HOST, path=path, installation=BY_SETTING, since=at)
            for path in sorted(named - existing)
        ],
        ignore_conflicts=True,
    )


def _sweep(folder: TranscriptFolder, report: Swept, *, at: datetime, until: float) -> None:
    problems: list[str] = []
    latest: _Found | None = None
    try:
        files = sorted(_files(folder), key=lambda one: -one.modified_ns)
    except OSError as error:
        files, problems = [], [f"The folder cannot be read: {error.strerror}."]
    report.files += len(files)
    for one in _due(files, folder.project_path, at):
        if time.monotonic() > until:
            problems.append("There was more than one sweep could take; the next one goes on.")
            break
        latest = latest or one
        arrival = take_in(one.path, Named(ArrivedBy.SWEEP, folder.installation, at=at))
        if arrival.outcome in (Outcome.NEW, Outcome.GROWN):
            report.taken += 1
        elif arrival.outcome is Outcome.CHANGED or arrival.is_unreadable:
            report.unread += 1
            problems.append(f"{Path(one.path).name}: {arrival.why}")
    changes: dict[str, object] = {"problem": mask(" ".join(problems))[:300]}
    if latest is not None:
        changes |= {"last_at": at, "last_path": latest.path}
    TranscriptFolder.objects.filter(pk=folder.pk).update(**changes)


def _files(folder: TranscriptFolder) -> Iterator[_Found]:
    """Yield the transcripts in a folder and in the folders of projects in it, that were written since it is swept.

    Those of a folder that is limited to a project are in folders of its name.
    """
    name = _UNFIT.sub("-", folder.project_path)[:LONGEST_NAME]
    since_ns = int(folder.since.timestamp() * 1e9)
    with os.scandir(folder.path) as entries:
        inside = list(entries)
    for entry in inside:
        if entry.is_dir(follow_symlinks=False) and entry.name.startswith(name):
            yield from _transcripts(entry.path, since_ns)
    if not name:
        yield from _transcripts(folder.path, since_ns)


def _transcripts(path: str, since_ns: int) -> Iterator[_Found]:
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                named = entry.name.endswith(SUFFIX) and not entry.name.startswith(SUBAGENT)
                if named and entry.is_file(follow_symlinks=False):
                    stat = entry.stat(follow_symlinks=False)
                    if stat.st_mtime_ns >= since_ns:
                        yield _Found(entry.path, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        logger.warning("a folder of transcripts cannot be read: %s", error.strerror)


def _due(files: Iterable[_Found], project_path: str, at: datetime) -> Iterator[_Found]:
    """Yield what has changed since it was seen, and has ended or is silent; without sessions of ours."""
    rows = Transcript.objects.filter(host=settings.CLAUDEOPS_HOST, session=None)
    by_path = {path: (size, modified, ended) for path, size, modified, ended in rows.values_list(*SEEN).iterator()}
    silent = at - IDLE
    changed = []
    for one in files:
        size, modified_ns, ended_at = by_path.get(one.path, (None, None, None))
        if (size, modified_ns) != (one.size, one.modified_ns) and (ended_at or one.modified_at <= silent):
            changed.append(one)
    own = _own([Path(one.path).stem for one in changed])
    observed = lru_cache(maxsize=None)(_is_observed)
    for one in changed:
        if Path(one.path).stem not in own and _is_wanted(one.path, project_path, observed):
            yield one


def _own(ids: list[str]) -> set[str]:
    """Return which of these ids of the CLI are sessions of ours, whose logs are observed."""
    rows = Session.objects.exclude(trigger=Trigger.IMPORT)
    own_ids: set[str] = set()
    for start in range(0, len(ids), MOST_IDS):
        some = rows.filter(cli_session_id__in=ids[start : start + MOST_IDS])
        own_ids.update(some.values_list("cli_session_id", flat=True))
    return own_ids


def _is_observed(folder: str) -> bool:
    """Whether sessions in a folder are observed: its project may say no, or a setting."""
    project = project_at(folder)
    return not excluded(Path(folder)) and (project is None or project.observed)


def _is_wanted(path: str, project_path: str, observed: Callable[[str], bool]) -> bool:
    """Whether a file's session worked where it is looked for, and is not left out: by its first lines alone."""
    if excluded(Path(path)):
        return False
    try:
        with Path(path).open("rb") as file:
            stated = _CWD.search(file.read(HEAD))
    except OSError:
        return True  # taking it in says why
    fields = accept.load(b"{" + stated[0] + b"}", []) if stated else None
    where = str(fields["cwd"]) if fields else ""
    if where and not observed(where):
        return False
    return not project_path or bool(where and Path(where).is_relative_to(project_path))
