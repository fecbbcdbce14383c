"""One session of an imported file: compare its lines with its raw log, append the new ones, ingest, close."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from claudeops.lib import times
from memories.models import Project
from sessions_app.errors import InvalidStream
from sessions_app.models import Runner, Session, Status, Trigger
from sessions_app.runner import log_masking, run
from sessions_app.runner.accept import load, storable, timestamp
from sessions_app.runner.ingest import ingest
from sessions_app.runner.launch import folder_of
from sessions_app.runner.log_formats import TRANSCRIPT, Decoded
from sessions_app.runner.raw_log import log_path

BATCH_BYTES = 256 * 1024
BATCH_LINES = 250
"""Appended before they are ingested, whichever comes first. A killed import repeats at most one batch."""
KNOWN_TYPE = re.compile(rb'"type"\s*:\s*"(assistant|user|system|result|stream_event)"')


@dataclass(frozen=True, slots=True)
class Origin:
    """The file, who imports it, and `at` (UTC), which dates lines without a time stamp."""

    path: Path
    by: str
    tier: int
    project: Project | None
    at: datetime


class Target:
    """The session with the import key `key`. Lines that its raw log has already are passed over.

    `stamped`: a line had a time stamp. `refused` is why nothing of the session was stored.
    """

    def __init__(self, origin: Origin, key: str) -> None:
        self.origin, self.key = origin, key
        self.stamped = self.rewritten = self.created = self.reopened = False
        self.refused: InvalidStream | None = None
        self.read = self.stored = 0
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._first: datetime | None = None
        self._known: set[str] | None = None
        cli_session_id = key.removeprefix("cli:") if key.startswith("cli:") else ""
        own = Session.objects.exclude(trigger=Trigger.IMPORT).filter(cli_session_id=cli_session_id[:64])
        self.own = own.first() if cli_session_id else None
        self.session = self.own or Session.objects.filter(import_key=key).first()
        self._comparing = self._whole = False
        self._compared = 0
        self._log: BinaryIO | None = None
        if self.session is not None and self.own is None:
            self._open_known(self.session)

    def _open_known(self, session: Session) -> None:
        self._comparing = log_path(session).is_file()
        if self._comparing:
            log_masking.mask_before_comparing(log_path(session))
        if not self._comparing and session.ingest_offset:
            self._refuse(session, "whose raw log is missing, so it cannot be continued")

    def _refuse(self, session: Session, why: str) -> None:
        self.refused = InvalidStream(
            f"{self.origin.path} is a log of session {session.pk}, {why}.", "Nothing was changed."
        )

    @property
    def outcome(self) -> str:
        if self.own is not None:
            return "own"
        return "imported" if self.created else "continued" if self.stored or self.reopened else "unchanged"

    @property
    def counted(self) -> int:
        return self.stored if self.outcome in ("imported", "continued") else self.read

    def add(self, line: Decoded) -> None:
        line = replace(line, data=log_masking.masked(line.data))
        self.read += 1
        if line.at and (stamp := timestamp(line.at)) and (at := times.happened(stamp, timezone.now())):
            self.stamped = True
            self._first = min(self._first or at, at)
        if self.own is not None or self.refused or (self._comparing and self._is_stored(line)):
            return
        if self._known is not None and not self._is_new(line):
            return
        self._buffer.append(line.data)
        self._buffered += len(line.data)
        if self._buffered >= BATCH_BYTES or len(self._buffer) >= BATCH_LINES:
            self.flush()

    def is_next(self, raw: bytes) -> bool:
        """Pass over a line of a known type that names its session and is the raw log's next one, also when masked."""
        if not self._comparing or self.session is None or not _names_session(raw) or not KNOWN_TYPE.search(raw):
            return False
        log = self._open(self.session)
        if log.readline() not in (raw, log_masking.masked(raw)):
            log.seek(self._compared)
            return False
        self._compared += len(raw)
        self.read += 1
        self.stamped = self.stamped or b'"timestamp"' in raw
        return True

    def _open(self, session: Session) -> BinaryIO:
        """Open the raw log where its lines are not compared yet."""
        if self._log is None:
            self._log = log_path(session).open("rb")
            self._log.seek(self._compared)
        return self._log

    def _is_stored(self, line: Decoded) -> bool:
        """Compare a line with the next one of the raw log. False when it has to be appended.

        Lines without a session id may stand elsewhere in another copy: they belong to the session around them.
        """
        session = self.session
        assert session is not None  # noqa: S101
        log = self._open(session)
        while (stored := log.readline()).endswith(b"\n"):  # without one, a killed import wrote it in part
            if stored == line.data:
                self._compared += len(stored)
                return True
            if not line.cli_session_id:
                log.seek(self._compared)
                return True
            if _names_session(stored):
                return self._differs(session, line)
            self._compared += len(stored)
        self._comparing = False
        return False

    def _differs(self, session: Session, line: Decoded) -> bool:
        if line.format != TRANSCRIPT:
            self._refuse(session, "but differs from the log that was imported before")
            return True
        with log_path(session).open("rb") as log:
            self._known = {_identity(load(stored, []), stored) for stored in log}
        self.rewritten, self._comparing = True, False
        return False

    def _is_new(self, line: Decoded) -> bool:
        identities, identity = self._known or set(), line.id or _digest(line.data)
        if identity in identities:
            return False
        identities.add(identity)
        return True

    def pause(self) -> None:
        """Keep no file open while lines of another session come."""
        self.flush()
        if self._log is not None:
            self._log.close()
            self._log = None

    def flush(self) -> None:
        """Append the buffered lines to the raw log, and ingest them."""
        if not self._buffer:
            return
        session = self.session or self._create()
        self._reopen(session)
        log = log_path(session)
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self._whole:
            size = _cut_to_whole_lines(log)
            Session.objects.filter(pk=session.pk, ingest_offset__gt=size).update(ingest_offset=size)
            self._whole = True
        with log.open("ab") as out:
            out.write(b"".join(self._buffer))
        self._buffer, self._buffered = [], 0
        self._ingest(session)

    def _ingest(self, session: Session) -> None:
        self.stored += ingest(session.pk, at=None if self.stamped else self.origin.at).lines
        Session.objects.filter(pk=session.pk, status=Status.RUNNING).update(heartbeat_at=timezone.now())

    def _reopen(self, session: Session) -> None:
        if session.status != Status.RUNNING:
            self.reopened = True
            Session.objects.filter(pk=session.pk).update(status=Status.RUNNING, heartbeat_at=timezone.now())
            session.status = Status.RUNNING

    def _create(self) -> Session:
        now = timezone.now()
        first = min(self._first or self.origin.at, now)
        cli_session_id = self.key.removeprefix("cli:") if self.key.startswith("cli:") else ""
        session = Session(
            trigger=Trigger.IMPORT,
            status=Status.RUNNING,
            runner=Runner.CLAUDE,
            tier=self.origin.tier,
            project=self.origin.project,
            requested_by=self.origin.by,
            task=storable(f"Imported from {self.origin.path.name}"),
            cli_session_id=cli_session_id[:64],
            import_key=self.key,
            host=settings.CLAUDEOPS_HOST,
            heartbeat_at=now,
            queued_at=first,
            started_at=first,
        )
        log = folder_of(session) / "stdout-1.jsonl"
        session.log_file = str(log.relative_to(settings.CLAUDEOPS_DATA_DIR))
        try:
            with transaction.atomic():
                session.save()
        except IntegrityError as error:  # another host imports it, or did so meanwhile
            raise InvalidStream(
                f"{self.origin.path} is being imported by another process.", "Run the same command again."
            ) from error
        self.session, self.created = session, True
        return session

    def finish(self) -> None:
        """Store what is left, and close the session."""
        self.pause()
        session = self.session
        if session is None or self.own is not None or self.refused or session.status != Status.RUNNING:
            return
        self.reopened = True  # or an earlier import was interrupted
        self._ingest(session)
        run.finish(session.pk, exit_code=None, at=None if self.stamped else self.origin.at)

    def leave(self) -> str:
        """Undo what was written in part, after an error; say what is kept of the session, in words."""
        session = self.session
        self._buffer = []
        self.pause()
        if session is None or self.own is not None or self.refused:
            return ""
        with contextlib.suppress(OSError, DatabaseError):
            _cut_to_whole_lines(log_path(session))
            if self.created and not _size(log_path(session)):
                session.delete()
                shutil.rmtree(folder_of(session), ignore_errors=True)
                return ""
        return f"session {session.pk} with {self.stored} lines of this run"


def _names_session(stored: bytes) -> bool:
    return b'"session_id"' in stored or b'"sessionId"' in stored


def _identity(record: dict[str, object] | None, stored: bytes) -> str:
    line_id = record.get("uuid") if record else None
    return line_id if isinstance(line_id, str) and line_id else _digest(stored)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _cut_to_whole_lines(path: Path) -> int:
    """Remove a last line that was written in part; return the size then. It needs no space on the disk."""
    if not _size(path):
        return 0
    with path.open("r+b") as file:
        end = file.seek(0, 2)
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            position = file.read(end - start).rfind(b"\n")
            if position >= 0:
                return file.truncate(start + position + 1)
            end = start
        return file.truncate(0)
