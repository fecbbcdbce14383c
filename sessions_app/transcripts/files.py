"""Files of transcripts: which may be read, what kind they are, their lines, the hash of their beginning."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from memories.models import TranscriptKind
from sessions_app.models import TranscriptFolder
from sessions_app.runner import log_formats
from sessions_app.runner.raw_log import RawLine, complete_lines

SUFFIX = ".jsonl"
SUBAGENTS, SUBAGENT = "subagents", "agent-"
"""The folder beside a transcript in which those of its subagents are, and how their names begin: also older ones, which
are beside it."""
TEXT_SUFFIXES = ("", ".txt", ".md", ".log", ".text")
HEAD_BYTES = 1024 * 1024
"""How much of a file is looked at to say what it is."""
TEXT_KEY_BYTES = 4096
BLOCK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Head:
    """What the beginning of a file tells. `kind` is None for what is no transcript; `sessions` are the ids it names."""

    kind: TranscriptKind | None
    sessions: tuple[str, ...] = ()


def folder_of(environment: Mapping[str, str]) -> Path:
    """Return the person's folder of the CLI."""
    return Path(environment.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def transcripts_of(environment: Mapping[str, str]) -> Path:
    """Return the real path of the folder in which the CLI keeps its transcripts."""
    return (folder_of(environment) / "projects").resolve()


def known_place(path: str) -> Path | None:
    """Return the real path of a transcript that a hook named; None unless it is where a CLI of this host keeps them.

    That is the home of this process, that of our sessions, and what the sweep looks through, by hooks or by the
    setting: their real paths. A folder of that name elsewhere is anybody's, as is a file there of another user than the
    folder's. One query at most.
    """
    place = real_file(path) if path.endswith(SUFFIX) else None
    if place is None or place.suffix != SUFFIX:
        return None
    rows = TranscriptFolder.objects.filter(host=settings.CLAUDEOPS_HOST).values_list("path", flat=True)
    ours = f"{settings.CLAUDEOPS_CLAUDE_HOME or '~'}/.claude/projects"
    named = (Path(folder).expanduser() for folder in (ours, *settings.CLAUDEOPS_TRANSCRIPT_FOLDERS, *rows))
    homes = [home for home in (transcripts_of(os.environ), *named) if place.is_relative_to(home.resolve())]
    owner = place.stat().st_uid
    return place if any(home.stat().st_uid == owner for home in homes) else None


def real_file(path: str) -> Path | None:
    """Return the real path of a regular file; None for anything else."""
    try:
        place = Path(path).resolve(strict=True)
        return place if place.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def transcripts_in(folder: Path) -> list[Path]:
    """Return the transcripts in a folder and below, from the oldest on; without those of subagents."""
    paths = [path for path in folder.rglob(f"*{SUFFIX}") if path.is_file() and not path.name.startswith(SUBAGENT)]
    own = [path for path in paths if SUBAGENTS not in path.relative_to(folder).parts]
    return sorted(own, key=lambda path: (path.stat().st_mtime_ns, str(path)))


def head_of(path: Path) -> Head:
    """Look at the beginning of a file. Raises OSError."""
    with path.open("rb") as file:
        beginning = file.read(TEXT_KEY_BYTES)
    is_known, sessions, transcript = False, dict[str, None](), False
    for raw, data in json_lines(path):
        if raw.end > HEAD_BYTES and is_known:
            break
        one = next(iter(log_formats.decode([data])), None) if data else None
        if one is not None and one.known:
            is_known = True
            transcript = transcript or one.format == log_formats.TRANSCRIPT
            if one.cli_session_id:
                sessions[one.cli_session_id] = None
        if raw.end > HEAD_BYTES:
            break
    if is_known:
        return Head(TranscriptKind.CLAUDE if transcript else TranscriptKind.STREAM, tuple(sessions))
    is_text = path.suffix.lower() in TEXT_SUFFIXES and b"\x00" not in beginning and beginning.strip()
    return Head(TranscriptKind.TEXT if is_text else None)


def json_lines(path: Path, *, final: bool = False) -> Iterator[tuple[RawLine, bytes | None]]:
    """Yield the lines of stream-json of a log of any format, each with the line of the file that completed it.

    None for a line that is too long to read. A last line that is cut is left out.
    """
    last: RawLine | None = None
    unread: list[RawLine] = []

    def raw_lines() -> Iterator[bytes]:
        nonlocal last
        for last in complete_lines(path, 0, final=final):
            if last.data is None:
                unread.append(last)
            else:
                yield last.data

    for one in log_formats.decode(raw_lines()):
        while unread:
            yield unread.pop(0), None
        if last is not None and not one.cut:
            yield last, one.data
    for raw in unread:
        yield raw, None


def digest(path: Path, length: int) -> str:
    """Return the SHA-256 of the first `length` bytes; empty when the file has fewer, or cannot be read."""
    hasher = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while length:
                block = file.read(min(length, BLOCK))
                if not block:
                    return ""
                hasher.update(block)
                length -= len(block)
    except OSError:
        return ""
    return hasher.hexdigest()
