"""A log from elsewhere becomes a session: decoded into a raw log of ours, then ingested like any other.

Named by the CLI's session id (or the content where there is none), so that the same file twice changes
nothing, and a longer log of the same session goes on where the shorter one ended.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from memories.models import Project
from sessions_app.errors import InvalidStream
from sessions_app.models import Runner, Session, Status, Trigger
from sessions_app.runner import run
from sessions_app.runner.ingest import log_path
from sessions_app.runner.launch import folder_of
from sessions_app.runner.log_formats import decode
from sessions_app.runner.reader import MAX_LINE
from sessions_app.runner.stream import timestamp


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one file. `outcome`: imported, continued, unchanged, or own (a session that ran here).

    `cut`: its last line breaks off in the middle and was left for a later import of the whole log.
    """

    session_id: int
    outcome: str
    lines: int = 0
    cut: bool = False


@dataclass(slots=True)
class _Decoded:
    path: Path
    lines: int = 0
    cli_session_id: str = ""
    first: datetime | None = None
    last: datetime | None = None
    digest: str = ""
    cut: bool = False


def import_log(path: Path, *, by: str, tier: int = 1, project: Project | None = None) -> Imported:
    """Import one log. Raises InvalidStream when it cannot be read, is no log, or contradicts what is there."""
    decoded = _decode(path)
    try:
        return _store(path, decoded, by=by, tier=tier, project=project)
    finally:
        decoded.path.unlink(missing_ok=True)


def _decode(path: Path) -> _Decoded:
    folder = Path(settings.CLAUDEOPS_DATA_DIR) / "sessions"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    target = _Decoded(folder / f".import-{os.getpid()}-{uuid.uuid4().hex}")
    digest, known = hashlib.sha256(), 0
    try:
        with path.open("rb") as source, target.path.open("wb") as out:
            for line in decode(_lines(source)):
                if line.cut:
                    target.cut = True
                    continue
                out.write(line.data)
                digest.update(line.data)
                target.lines += 1
                known += line.known
                target.cli_session_id = target.cli_session_id or line.cli_session_id
                if at := timestamp(line.at):
                    target.first = min(target.first or at, at)
                    target.last = max(target.last or at, at)
    except OSError as error:
        target.path.unlink(missing_ok=True)
        raise InvalidStream(f"{path} cannot be read: {error.strerror}.", "Give the path of a log.") from error
    if not known:
        target.path.unlink(missing_ok=True)
        raise InvalidStream(
            f"{path} holds no line of stream-json ({target.lines} lines were looked at).",
            "Known are bare stream-json, RFC3339Nano<TAB>{json}, and chunked "
            '{"type":"stdout","data":"…"} logs of the Claude Code CLI.',
        )
    target.digest = digest.hexdigest()
    return target


def _lines(source: BinaryIO) -> Iterator[bytes]:
    while line := source.readline(MAX_LINE):
        yield line


def _store(path: Path, decoded: _Decoded, *, by: str, tier: int, project: Project | None) -> Imported:
    key = f"cli:{decoded.cli_session_id}"[:80] if decoded.cli_session_id else f"sha256:{decoded.digest}"
    own = Session.objects.exclude(trigger=Trigger.IMPORT).filter(cli_session_id=decoded.cli_session_id)
    if decoded.cli_session_id and (session := own.first()):
        return Imported(session.pk, "own")
    existing = Session.objects.filter(import_key=key).first()
    if existing is None:
        now = timezone.now()
        first = min(decoded.first or now, now)
        session = Session(
            trigger=Trigger.IMPORT,
            status=Status.RUNNING,
            runner=Runner.CLAUDE,
            tier=tier,
            project=project,
            requested_by=by,
            task=f"Imported from {path.name}",
            cli_session_id=decoded.cli_session_id[:64],
            import_key=key,
            host=settings.CLAUDEOPS_HOST,
            heartbeat_at=now,
            queued_at=first,
            started_at=first,
        )
        log = folder_of(session) / "stdout-1.jsonl"
        session.log_file = str(log.relative_to(settings.CLAUDEOPS_DATA_DIR))
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copyfile(decoded.path, log)  # the log is there before the row that points to it
        try:
            with transaction.atomic():
                session.save()
        except IntegrityError:  # the same file is being imported next to us
            shutil.rmtree(log.parent, ignore_errors=True)
            return _store(path, decoded, by=by, tier=tier, project=project)
        run.finish(session.pk, exit_code=None, at=decoded.last)
        return Imported(session.pk, "imported", decoded.lines, decoded.cut)
    return _continue(path, decoded, existing)


def _continue(path: Path, decoded: _Decoded, existing: Session) -> Imported:
    log = log_path(existing)
    if not log.is_file():
        raise InvalidStream(
            f"{path} is a log of session {existing.pk}, whose own raw log is gone: it cannot be continued.",
            "Nothing was changed.",
        )
    size = log.stat().st_size
    if filecmp.cmp(log, decoded.path, shallow=False):
        if existing.status == Status.RUNNING:  # an import that was cut short
            run.finish(existing.pk, exit_code=None, at=decoded.last)
        return Imported(existing.pk, "unchanged", decoded.lines, decoded.cut)
    if not _begins_with(decoded.path, log, size):
        raise InvalidStream(
            f"{path} is a log of session {existing.pk}, but not the one that was imported: they differ.",
            "Nothing was changed.",
        )
    with decoded.path.open("rb") as source, log.open("ab") as out:
        source.seek(size)
        shutil.copyfileobj(source, out)
    Session.objects.filter(pk=existing.pk).update(status=Status.RUNNING, heartbeat_at=timezone.now())
    run.finish(existing.pk, exit_code=None, at=decoded.last)
    return Imported(existing.pk, "continued", decoded.lines, decoded.cut)


def _begins_with(longer: Path, shorter: Path, size: int) -> bool:
    if longer.stat().st_size < size:
        return False
    with longer.open("rb") as a, shorter.open("rb") as b:
        while chunk := b.read(1024 * 1024):
            if a.read(len(chunk)) != chunk:
                return False
    return True
