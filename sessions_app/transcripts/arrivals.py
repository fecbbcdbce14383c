"""Take in a transcript's file: note once what of it is new, as parts that wait to be observed.

The same content is taken once, whoever names it and however often: its key is the session's id, its content the hash of
the bytes that are parts already. Moving that mark, the new parts and the wake-up are one transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from claudeops.lib.secrets import mask
from memories.models import ArrivedBy, Project, Transcript, TranscriptKind
from memories.observe.pipeline import add_part
from memories.observe.turns import Turn, TurnKind
from sessions_app import queue
from sessions_app.errors import RawLogOutside
from sessions_app.models import Runner, Session, Trigger
from sessions_app.runner import copied
from sessions_app.runner.ingest import proof_of
from sessions_app.runner.raw_log import log_path
from sessions_app.runner.turns import NO_PROOF, Reader, is_word
from sessions_app.transcripts import files
from sessions_app.transcripts.files import Head
from sessions_app.transcripts.place import project_at
from sessions_app.transcripts.turns import CHANGED, read_turns, reader_of

MOST = 60_000
"""Characters of a part that a model would see, about. One line may have more."""
RESULT = 500
"""Characters of a tool's result that count: little of it is shown to a model."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One line: the byte at which it ends, the characters that a model would see, and whether somebody speaks.

    `record` is its record by `copied.digest_of`.
    """

    end: int
    size: int
    speaks: bool
    record: int | None = None


def piece_of(end: int, turns: Iterable[Turn], record: int | None = None) -> Piece:
    turns = list(turns)
    return Piece(end, sum(map(_shown, turns)), any(map(is_word, turns)), record)


def cut(pieces: Iterable[Piece], start: int, *, most: int = MOST) -> list[tuple[int, int]]:
    """Return the (start, end) of the parts behind byte `start`: without gaps, each with somebody who speaks.

    What has no words behind the last part stays for a later one.
    """
    parts: list[tuple[int, int]] = []
    begin, end, size, speaks = start, start, 0, False
    for piece in pieces:
        if piece.end <= start:
            continue
        if speaks and size + piece.size > most:
            parts.append((begin, end))
            begin, size, speaks = end, 0, False
        end, size, speaks = piece.end, size + piece.size, speaks or piece.speaks
    return [*parts, (begin, end)] if speaks else parts


def _shown(turn: Turn) -> int:
    if turn.kind is TurnKind.SYSTEM:
        return 0
    return min(len(turn.text), RESULT) if turn.kind is TurnKind.RESULT else len(turn.text)


logger = logging.getLogger(__name__)

ATTEMPTS = 5
"""How often a file is looked at again because another process took it in meanwhile."""
LONGEST_ID = 100
CLOCKS = timedelta(minutes=5)
"""How far the clock of a transcript's host may be ahead."""


class Outcome(StrEnum):
    NEW = "new"
    GROWN = "grown"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    OTHER = "other content"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Arrival:
    """What came of a file. `why` is set unless it is new, grown or unchanged; `parts` are the ids of new parts.

    `planned` is their number, also in a dry run, and `characters` about what a model would see of them.
    `is_unreadable`: the system refused to read it.
    """

    outcome: Outcome
    transcript: Transcript | None = None
    why: str = ""
    parts: tuple[int, ...] = ()
    planned: int = 0
    characters: int = 0
    is_unreadable: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """Who names a file, and what is known of it beside its content. `at` is UTC."""

    arrived_by: str
    installation: str = ""
    project: Project | None = None
    session: Session | None = None
    agent: str = ""
    ended: bool = False
    at: datetime = field(default_factory=timezone.now)


@dataclass(frozen=True, slots=True)
class _File:
    """What a file holds: its `reader` after the last line, its lines as `pieces`."""

    path: Path
    key: str
    kind: TranscriptKind
    cli_session_id: str
    size: int
    modified_ns: int
    reader: Reader
    pieces: list[Piece]

    def new_records(self, start: int, end: int) -> set[int]:
        """Return the records between two bytes that may be kept as this transcript's."""
        return {one.record for one in self.pieces if start < one.end <= end and one.record is not None}


class _Moved(Exception):
    """Another process has taken in this content: nothing was written."""


def see(
    path: str | Path,
    *,
    arrived_by: str,
    installation: str = "",
    project: Project | None = None,
    session: Session | None = None,
    ended: bool = False,
    at: datetime | None = None,
) -> Transcript | None:
    """Take in what is new of a file, and return its transcript; None when it is not observed.

    `ended`: its session has ended, so its last line is complete. Of a hook, only a transcript is taken that is where a
    CLI of this host keeps them. With CLAUDEOPS_OBSERVE off nothing is taken. `at` is UTC, now when None.
    """
    if not settings.CLAUDEOPS_OBSERVE:
        return None
    named = Named(arrived_by, installation, project, session, "", ended, at or timezone.now())
    place = files.known_place(str(path)) if arrived_by == ArrivedBy.HOOK else Path(path)
    if place is None:
        logger.warning("a hook of %s named a file that is no transcript of a CLI here", installation or "nobody")
        return None
    arrival = take_in(place, named)
    if arrival.why:
        logger.info("%s was not observed: %s", arrival.transcript or "a file", arrival.why)
    return arrival.transcript


def see_session(session: Session, *, at: datetime | None = None) -> Arrival:
    """Take in the raw log of a session of ours that has ended, on its host."""
    try:
        path = log_path(session)
    except RawLogOutside as error:
        return Arrival(Outcome.SKIPPED, why=str(error))
    return take_in(path, Named(ArrivedBy.SESSION, session=session, ended=True, at=at or timezone.now()))


def session_of_log(path: Path) -> Session | None:
    """Return the session of ours whose raw log this is; None for an imported one, which is read as any other."""
    folder = Path(settings.CLAUDEOPS_DATA_DIR).resolve()
    if not (real := path.resolve()).is_relative_to(folder):
        return None
    rows = Session.objects.exclude(trigger=Trigger.IMPORT).select_related("agent", "project")
    return rows.filter(log_file=str(real.relative_to(folder))).first()


def take_in(path: str | Path, named: Named, *, dry_run: bool = False) -> Arrival:
    """As `see`, from a place that is trusted; say what came of it. With `dry_run` nothing is written."""
    real = files.real_file(str(path))
    if real is None:
        return Arrival(Outcome.SKIPPED, why="There is no such file.")
    for _ in range(ATTEMPTS):
        try:
            return _take_in(real, named, dry_run=dry_run)
        except OSError as error:
            return Arrival(Outcome.SKIPPED, why=f"It cannot be read: {error.strerror}", is_unreadable=True)
        except _Moved:
            continue
    return Arrival(Outcome.SKIPPED, why="Other processes take it in at this moment.")


def _take_in(path: Path, named: Named, *, dry_run: bool) -> Arrival:
    if why := excluded(path):
        return Arrival(Outcome.SKIPPED, why=why)
    file = _read(path, named)
    if isinstance(file, str):
        return Arrival(Outcome.SKIPPED, why=file)
    project, why = _project_of(file, named)
    if why:
        return Arrival(Outcome.SKIPPED, why=why)
    row = _row_of(file)
    before = row.observed_to if row else 0
    if row is not None and files.digest(path, before) != (row.prefix_sha256 or sha256().hexdigest()):
        return _differs(row, file, named, dry_run=dry_run)
    _mark_copied(file, row, named)
    parts = cut(file.pieces, before)
    outcome = Outcome.NEW if row is None else Outcome.GROWN if parts else Outcome.UNCHANGED
    shown = sum(piece.size for piece in file.pieces if parts and parts[0][0] < piece.end <= parts[-1][1])
    if dry_run or (row is None and not parts and named.session):
        return Arrival(outcome, row, planned=len(parts), characters=shown)
    row, ids = _store(row, file, named, project, parts)
    return Arrival(outcome, row, parts=ids, planned=len(parts), characters=shown)


def _mark_copied(file: _File, row: Transcript | None, named: Named) -> None:
    """Leave out what another transcript had: a fork or a resume copies it. A session of ours copies nothing."""
    records = file.new_records(row.observed_to if row else 0, file.size)
    if not named.session and (others := copied.known_elsewhere(row, records)):
        file.pieces[:] = [Piece(one.end, 0, False) if one.record in others else one for one in file.pieces]


def _project_of(file: _File, named: Named) -> tuple[Project | None, str]:
    """Return the project of a file's session, and why it is not observed.

    It is that of the session's folder: a hook may name a file of another project. Only the command says another.
    """
    folder = file.reader.reading.folder
    if folder and (why := excluded(Path(folder))):
        return None, why
    if named.arrived_by == ArrivedBy.COMMAND and named.project:
        project: Project | None = named.project
    elif named.session:
        project = named.session.project
    else:
        reader = file.reader
        project = project_at(folder, branch=reader.branch) or project_at(reader.origin) or named.project
    if project is not None and not project.observed:
        return project, f"The sessions of project {project} are not observed."
    return project, ""


def excluded(path: Path) -> str:
    """Say which of the CLAUDEOPS_OBSERVE_EXCLUDE globs leaves a file or a folder out; empty for none."""
    for glob in settings.CLAUDEOPS_OBSERVE_EXCLUDE:
        if any(fnmatch(str(one), glob) for one in (path, *path.parents)):
            return f"CLAUDEOPS_OBSERVE_EXCLUDE leaves it out: {glob}"
    return ""


def _read(path: Path, named: Named) -> _File | str:
    """Read a file to its end; a sentence says why it is none that is observed."""
    stat = path.stat()
    session = named.session
    if session and (session.is_open or session.dry_run):
        return f"Session {session.pk} {'has not ended' if session.is_open else 'was a dry run'}."
    head = Head(TranscriptKind.STREAM) if session else files.head_of(path)
    if head.kind is None:
        return "It is no transcript, no stream-json log and no text."
    if head.kind == TranscriptKind.TEXT and named.arrived_by != ArrivedBy.COMMAND:
        return "It is no transcript."
    if not session and (own := _own(head)):
        return f"It is the transcript of session {own}, whose own log is observed."
    cli_session_id = session.cli_session_id if session else _id_of(head, path)
    reader = reader_of(session, None, NO_PROOF if session else proof_of(cli_session_id, path.resolve()))
    task = reader.begin(session.task_text, ()) if session else None
    final = named.ended or head.kind == TranscriptKind.TEXT
    lines = read_turns(path, head.kind, reader, final=final)
    pieces = [piece_of(end, turns, reader.record) for end, turns in lines]
    if reader.sidechain:
        return "It is the transcript of a subagent."
    if session and not reader.spoke:
        pieces = []
    elif task and pieces:
        pieces[0] = replace(pieces[0], size=pieces[0].size + len(task.text))
    return _File(
        path,
        _key(cli_session_id, session, path),
        head.kind,
        cli_session_id,
        stat.st_size,
        stat.st_mtime_ns,
        reader,
        pieces,
    )


def _own(head: Head) -> int | None:
    """Return the session of ours whose transcript this is."""
    ids = [one for one in head.sessions if one]
    rows = Session.objects.exclude(trigger=Trigger.IMPORT).filter(cli_session_id__in=ids)
    return rows.values_list("pk", flat=True).first() if ids else None


def _id_of(head: Head, path: Path) -> str:
    """Return the CLI's id of the session: that of the file's name when a line states it, else the first."""
    first = path.stem if path.stem in head.sessions else next(iter(head.sessions), "")
    return mask(first)[:LONGEST_ID]


def _key(cli_session_id: str, session: Session | None, path: Path) -> str:
    if cli_session_id:
        return f"session:{cli_session_id}"
    if session:
        return f"run:{session.uuid}"
    with path.open("rb") as file:
        return f"text:{sha256(file.read(files.TEXT_KEY_BYTES)).hexdigest()}"


def _row_of(file: _File) -> Transcript | None:
    """Return the transcript of a file. A short text that grew has another key, and is known by its path."""
    row = Transcript.objects.filter(key=file.key).first()
    if row is None and file.kind == TranscriptKind.TEXT:
        rows = Transcript.objects.filter(kind=file.kind, host=settings.CLAUDEOPS_HOST, size__lte=files.TEXT_KEY_BYTES)
        rows = rows.filter(path=str(file.path))
        row = next((one for one in rows if files.digest(file.path, one.observed_to) == one.prefix_sha256), None)
    return row


def _differs(row: Transcript, file: _File, named: Named, *, dry_run: bool) -> Arrival:
    """A file of a known session whose beginning is not what was observed: nothing of it is taken."""
    if row.path != str(file.path) or row.host != settings.CLAUDEOPS_HOST:
        what = "session" if file.cli_session_id else "text"
        return Arrival(Outcome.OTHER, row, f"{row} is of the same {what} and has other content; nothing was added.")
    why = f"Not observed any further: {CHANGED}."
    if not dry_run:
        Transcript.objects.filter(pk=row.pk).update(
            problem=why, size=file.size, modified_ns=file.modified_ns, seen_at=named.at
        )
    return Arrival(Outcome.CHANGED, row, why)


def _store(
    row: Transcript | None, file: _File, named: Named, project: Project | None, parts: list[tuple[int, int]]
) -> tuple[Transcript, tuple[int, ...]]:
    """Move the mark behind `parts`, and store them. Raises _Moved when another process has moved it."""
    before, old_digest = (row.observed_to, row.prefix_sha256) if row else (0, "")
    to = parts[-1][1] if parts else before
    changes = _columns(row, file, named, grown=bool(parts))
    if parts:
        changes |= {"observed_to": to, "prefix_sha256": files.digest(file.path, to)}
        if not changes["prefix_sha256"]:
            raise _Moved  # it was cut while it was read
    with transaction.atomic():
        if row is None:
            Transcript.objects.bulk_create([_new(file, named, project)], ignore_conflicts=True)
            row = Transcript.objects.get(key=file.key)
        mine = Transcript.objects.filter(pk=row.pk, observed_to=before, prefix_sha256=old_digest)
        if not mine.update(**changes):
            raise _Moved
        if row.session is None or row.session.runner == Runner.CLAUDE:
            others = copied.keep(row, file.new_records(before, to))
            if others and row.session is None:
                raise _Moved  # they were taken in from another transcript meanwhile
        number = row.parts.count()
        ids = tuple(
            add_part(row, number + place, start, end, at=named.at).pk for place, (start, end) in enumerate(parts, 1)
        )
        if ids:
            queue.enqueue_observe(settings.CLAUDEOPS_HOST)
    row.refresh_from_db()
    return row, ids


def _new(file: _File, named: Named, project: Project | None) -> Transcript:
    session = named.session
    return Transcript(
        key=file.key,
        kind=file.kind,
        arrived_by=named.arrived_by,
        installation=named.installation[:80],
        cli_session_id=file.cli_session_id,
        session=session,
        project=project,
        agent=(session.agent.slug if session and session.agent else named.agent) or None,
        host=settings.CLAUDEOPS_HOST,
        path=str(file.path),
        folder=file.reader.reading.folder,
        created_at=named.at,
    )


def _columns(row: Transcript | None, file: _File, named: Named, *, grown: bool) -> dict[str, Any]:
    """Return what a look at a file changes. A copy that has nothing new takes the place of a file that is gone."""
    reader, read = file.reader, file.reader.reading.read()
    changes: dict[str, Any] = {"seen_at": named.at}
    if named.ended and (row is None or row.ended_at is None):
        changes["ended_at"] = named.at
    if row is not None and not grown and row.path != str(file.path) and Path(row.path).is_file():
        return changes
    latest = named.at + CLOCKS
    return changes | {
        "host": settings.CLAUDEOPS_HOST,
        "path": str(file.path),
        "size": file.size,
        "modified_ns": file.modified_ns,
        "state": {"turns": reader.number},
        "exposure": read.exposure,
        "exposed_to": list(read.sources),
        "first_at": reader.first_at,
        "last_at": min(reader.last_at, latest) if reader.last_at else None,
        "problem": "",
    }
