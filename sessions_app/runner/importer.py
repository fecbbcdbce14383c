"""Import a log from elsewhere: split it by CLI session, append the lines to raw logs, and ingest these, batch by batch.

The CLI's session id (else a hash of the content) identifies a session: importing a file twice changes nothing, and a
longer log of the same session continues where the shorter one ended. What a killed import has stored stays, and the
next one continues behind it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.utils import timezone

from claudeops.lib import outage, times
from claudeops.lib.locks import file_lock
from memories.models import Project
from sessions_app.errors import CannotStore, InvalidStream, SessionsError
from sessions_app.runner import log_masking
from sessions_app.runner.import_target import Origin, Target
from sessions_app.runner.log_formats import BARE, TRANSCRIPT, Decoded, decode
from sessions_app.runner.raw_log import MAX_LINE

SAMPLE_BYTES = 2 * 1024 * 1024
"""How much of a log is read before anything is stored, to see whether it is one."""
LEAST_UNDERSTOOD = 0.5
"""The share of lines below which a file is refused."""
AGAIN = "Make room and run the same command again: it continues there."


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one session of a file.

    `outcome`: imported, continued (new lines of a known session), unchanged, or own (a session that ran here). `lines`
    are those that were stored now; of an unchanged session all of the file. `rewritten`: a transcript began in another
    way than the copy before it, so its new lines were added behind what was stored.
    """

    session_id: int
    outcome: str
    lines: int = 0
    rewritten: bool = False


@dataclass(slots=True)
class ImportedFile:
    """What became of a file.

    `formats` lists those that were found, `understood` counts the lines of a type that the CLI writes. `dated_by` says
    what dated the lines. `cut`: the last line is incomplete and was left for a later import of the whole log. `refused`
    holds the errors of sessions that could not be stored, while others of the file were.
    """

    path: Path
    sessions: list[Imported] = field(default_factory=list)
    refused: list[SessionsError] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)
    lines: int = 0
    understood: int = 0
    dated_by: str = ""
    cut: bool = False


def import_log(
    path: Path,
    *,
    by: str,
    tier: int = 1,
    project: Project | None = None,
    at: datetime | None = None,
    force: bool = False,
) -> ImportedFile:
    """Import one file for the actor `by`.

    Lines without a time stamp are dated `at` (UTC), else by the file's modification time. Raises InvalidStream when the
    file cannot be read, is not a log (with `force`: has no line of one), or differs from the log that was imported
    before; CannotStore when the disk is full.
    """
    report = ImportedFile(path)
    with ExitStack() as stack:
        try:
            source = stack.enter_context(path.open("rb"))
            changed = times.happened(datetime.fromtimestamp(path.stat().st_mtime, UTC), timezone.now())
        except OSError as error:
            raise _unreadable(path, error) from error
        _wait_for_others(path, stack)
        lines, first = _checked(path, source, force=force)
        splitter = _Splitter(Origin(path, by, tier, project, at or changed or timezone.now()), first)
        try:
            for line in decode(raw for raw in lines if not splitter.is_stored(raw, report)):
                splitter.add(line, report)
            splitter.finish()
        except BaseException as error:
            summary = splitter.leave()
            if why := _why_not(error):
                raise CannotStore(f"{path} was not imported to its end: {why}.", f"Kept: {summary}. {AGAIN}") from error
            raise
    report.dated_by = splitter.dated_by("--at" if at else "the file's modification time")
    for target in splitter.targets.values():
        if target.refused:
            report.refused.append(target.refused)
        elif target.session is not None:
            report.sessions.append(Imported(target.session.pk, target.outcome, target.counted, target.rewritten))
    if report.refused and not report.sessions:
        raise report.refused[0]
    return report


class _Splitter:
    """Give each line to its session: the one that it names, else the one around it. `first` is the session's id, or
    the key, for lines before any id."""

    def __init__(self, origin: Origin, first: str) -> None:
        self.origin = origin
        self.current = first
        self.targets: dict[str, Target] = {}

    def is_stored(self, raw: bytes, done: ImportedFile) -> bool:
        """Whether a line is the next one of the raw log, byte for byte. An import that goes on passes over what is
        stored in this way, some thirty times as fast as by decoding it."""
        if self.current not in self.targets:
            self.targets[self.current] = Target(self.origin, self.current)
        if not self.targets[self.current].is_next(raw):
            return False
        done.lines += 1
        done.understood += 1
        form = BARE if b'"session_id"' in raw else TRANSCRIPT
        if form not in done.formats:
            done.formats.append(form)
        return True

    def add(self, line: Decoded, done: ImportedFile) -> None:
        if line.cut:
            done.cut = True
            return
        done.lines += 1
        done.understood += line.known
        if line.format and line.format not in done.formats:
            done.formats.append(line.format)
        self._target_of(line).add(line)

    def _target_of(self, line: Decoded) -> Target:
        wanted = f"cli:{line.cli_session_id}"[:80] if line.known and line.cli_session_id else self.current
        if wanted != self.current and self.current in self.targets:
            self.targets[self.current].pause()
        self.current = wanted
        if wanted not in self.targets:
            self.targets[wanted] = Target(self.origin, wanted)
        return self.targets[wanted]

    def finish(self) -> None:
        for target in self.targets.values():
            target.finish()

    def dated_by(self, otherwise: str) -> str:
        return "its time stamps" if all(target.stamped for target in self.targets.values()) else otherwise

    def leave(self) -> str:
        """Leave whole lines only, after an error; say what is kept, in words."""
        return ", ".join(words for target in self.targets.values() if (words := target.leave())) or "nothing"


def _why_not(error: BaseException) -> str:
    """Say why nothing can be written; empty for an error of another kind."""
    if cause := outage.named_in(error):
        return cause.message.removesuffix(".")
    if isinstance(error, OSError):
        return f"{error.filename or settings.CLAUDEOPS_DATA_DIR} cannot be written: {error.strerror or error}"
    return ""


def _wait_for_others(path: Path, stack: ExitStack) -> None:
    """Wait for the other imports of this host: two must not append to one raw log."""
    lock = Path(settings.CLAUDEOPS_DATA_DIR) / "import.lock"
    try:
        stack.enter_context(file_lock(lock, wait=True))
    except OSError as error:
        raise CannotStore(
            f"{path} was not imported: {lock} cannot be written: {error.strerror}.", "Nothing was changed."
        ) from error


def _checked(path: Path, source: BinaryIO, *, force: bool) -> tuple[Iterable[bytes], str]:
    """Read the beginning of a log. Returns (all its lines, the key of the first session).

    A log without any session id is identified by its whole content. Raises InvalidStream for what is not a log.
    """
    head = list(_head(path, source))
    lines = [line for line in decode(head) if not line.cut]
    count = sum(line.known for line in lines)
    if not count:
        raise InvalidStream(
            f"{path} contains no line of stream-json or of a transcript ({len(lines)} lines read).",
            "Known formats of the Claude Code CLI: bare stream-json, RFC3339Nano<TAB>{json}, chunks of "
            '{"type":"stdout","data":"…"}, and transcripts (~/.claude/projects).',
        )
    if count < LEAST_UNDERSTOOD * len(lines) and not force:
        raise InvalidStream(
            f"{path}: {len(lines) - count} of {len(lines)} lines ({1 - count / len(lines):.0%}) were not understood.",
            "If it is a log of the Claude Code CLI nevertheless, import it with --force.",
        )
    named = next((line.cli_session_id for line in lines if line.known and line.cli_session_id), "")
    key = f"cli:{named}"[:80] if named else _key_of_all(path, source, head)
    return chain(head, _lines(path, source)), key


def _key_of_all(path: Path, source: BinaryIO, head: list[bytes]) -> str:
    """Read the whole log for its first session id, else for the hash of its content."""
    digest = hashlib.sha256()
    rest = _lines(path, source)
    if not source.seekable():
        raise InvalidStream(f"{path} has no session id at its beginning and cannot be read twice.", "Give a file.")
    after = source.tell()
    try:
        for line in decode(chain(head, rest)):
            if line.known and line.cli_session_id:
                return f"cli:{line.cli_session_id}"[:80]
            if not line.cut:
                digest.update(log_masking.masked(line.data))
        return f"sha256:{digest.hexdigest()}"
    finally:
        source.seek(after)


def _head(path: Path, source: BinaryIO) -> Iterator[bytes]:
    size = 0
    for line in _lines(path, source):
        yield line
        size += len(line)
        if size >= SAMPLE_BYTES:
            return


def _lines(path: Path, source: BinaryIO) -> Iterator[bytes]:
    try:
        while line := source.readline(MAX_LINE):
            yield line
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> InvalidStream:
    return InvalidStream(f"{path} cannot be read: {error.strerror}.", "Give the path of a readable log file.")
