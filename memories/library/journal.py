"""The journal: what was done, as one JSON line each in the vault, a file a month. `write` is the door.

The file is what lasts: it is only appended to, and each line is on the disk before `write` returns. The table is an
index, which reads on where it ended; a line that cannot be read stays in its file, is counted and named by `verify`.
Masked are what the index holds and what is told; in the file a line is as it was written.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Max, Min, QuerySet
from django.utils import timezone

from claudeops.lib import outside_json, times
from claudeops.lib.domain_error import DomainError
from claudeops.lib.tracked_file.disk import Problem, Unusable, words
from memories.capture.gate import judge
from memories.capture.text import fold
from memories.errors import EntryNotFound, InvalidEntry
from memories.injection.escape import safe
from memories.injection.passages import as_words
from memories.library import vault
from memories.library.vocabulary import KINDS, canonical, checked, merged_words, nearest
from memories.models import JournalEntry, JournalFile, Verdict, to_utc
from memories.telemetry import record

logger = logging.getLogger(__name__)

FOLDER = "journal"
NAME_WORDS = 3
"""Words of a tool that are told, although the gate holds its entry: so many name something, and order nothing."""
MONTH = re.compile(r"(\d{4}-\d{2})\.jsonl\Z")
LONGEST = {"detail": 4_000, "reason": 2_000, "agent": 64, "project": 64, "host": 255, "by": 150}
LONGEST_LINE = 64 * 1024
"""Bytes of a line that is an entry."""
BATCH = 500
NAME = uuid5(NAMESPACE_URL, "claudeops:journal")


@dataclass(frozen=True, slots=True)
class Written:
    """The entry that was written, and a known word for each new one that is nearly it: {"action": "restart"}."""

    entry: JournalEntry
    suggestions: Mapping[str, str]
    is_new: bool = True


@dataclass(frozen=True, slots=True)
class Broken:
    """A line that is no entry, or one that stands at another time than the lines around it."""

    file: str
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What the files hold: lines, entries, and what is wrong with them; `missing` are entries that the index lacks."""

    lines: int
    entries: int
    broken: tuple[Broken, ...]
    missing: int
    notes: tuple[Broken, ...] = ()


def write(
    action: str,
    tool: str,
    detail: str,
    *,
    reason: str = "",
    session: int | None = None,
    agent: str = "",
    project: str = "",
    by: str,
    key: str = "",
    at: datetime | None = None,
) -> Written:
    """Append an entry and return it as it is indexed. With `key` it is written once, however often it is called.

    Raises InvalidEntry, and Unusable where the file cannot be written: then nothing of the line is in it.
    """
    when = to_utc(at)
    given = {"detail": detail, "reason": reason, "agent": agent, "project": project, "by": by}
    texts = {name: text for name, value in given.items() if (text := _text(name, value))}
    data: dict[str, Any] = {
        "timestamp": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "action": checked("action", action),
        "tool": checked("tool", tool),
        **texts,
        **({"session": session} if session is not None else {}),
        "host": settings.CLAUDEOPS_HOST,
        "id": str(uuid5(NAME, key) if key else uuid4()),
    }
    if "detail" not in data:
        raise InvalidEntry("detail is empty.", "Say in a sentence what was done.", field="detail")
    suggestions = {name: near for name in KINDS if (near := nearest(name, data[name]))}
    month = f"{when:%Y-%m}"
    with vault.locked(FOLDER):
        index(month)
        if (known := JournalEntry.objects.filter(uid=data["id"]).first()) is not None:
            return Written(known, {}, is_new=False)
        _append(vault.path_of(f"{FOLDER}/{month}.jsonl"), json.dumps(data, ensure_ascii=False).encode() + b"\n")
        index(month)
    return Written(JournalEntry.objects.get(uid=data["id"]), suggestions)


def note(action: str, tool: str, detail: str, *, by: str = "claudeops", **more: Any) -> None:
    """Write an entry about what claudeops did itself, when the transaction is committed.

    Never raises: what was done stays done, and a failure is logged. Not before: a process that waits for the file while
    it writes the database would hold up the one that writes both.
    """

    def written() -> None:
        try:
            write(action, tool, detail, by=by, **more)
        except Exception as error:  # nothing that the journal lacks may undo what was done
            logger.exception("the journal did not take: %s %s", action, tool)
            record(
                "memory.journal.failed", component="library", source="journal", success=False, error=str(error)[:200]
            )

    transaction.on_commit(written)


def _text(name: str, value: str) -> str:
    text = fold(value)
    if len(text) > LONGEST[name]:
        raise InvalidEntry(f"{name} has {len(text):,} characters; at most {LONGEST[name]:,} are taken.", field=name)
    return text


def _append(path: Path, line: bytes) -> None:
    """Append a line and have it on the disk. A line that a killed process left torn is ended first. Raises Unusable."""
    is_new = not path.exists()
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unusable(f"{path}: {words(error)}.", state=Problem.UNWRITABLE) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        try:
            rest = memoryview(b"\n" * is_torn + line)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except OSError as error:
            os.ftruncate(descriptor, size)
            raise Unusable(f"{path}: {words(error)}. Nothing was written.", state=Problem.UNWRITABLE) from None
    finally:
        os.close(descriptor)
    if is_new:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def months() -> list[str]:
    """Return the months that have a file on this host, the oldest first."""
    try:
        names = sorted(path.name for path in (vault.folder() / FOLDER).iterdir())
    except FileNotFoundError:
        return []
    return [match[1] for name in names if (match := MONTH.match(name))]


def index(month: str) -> int:
    """Read on in the file of a month where the index ended; returns how many entries are new.

    A file that became shorter, or whose last indexed line ends elsewhere, is read anew. Safe to run twice at once.
    """
    path = vault.path_of(f"{FOLDER}/{month}.jsonl")
    if _size(path) == _indexed(month):
        return 0
    with transaction.atomic():
        JournalFile.objects.get_or_create(host=settings.CLAUDEOPS_HOST, month=month)
        row = JournalFile.objects.select_for_update().get(host=settings.CLAUDEOPS_HOST, month=month)
        size = _size(path)
        if size < row.size or (row.size and not _ends_line(path, row.size)):
            row.entries.all().delete()
            row.size = row.lines = row.broken = 0
        elif size == row.size:
            return 0
        merged, new, count = merged_words(), list[JournalEntry](), 0
        for end, line in _lines(path, row.size):
            row.size, row.lines = end, row.lines + 1
            try:
                new.append(_entry(line, row, merged))
            except ValueError:
                row.broken += 1
            if len(new) == BATCH:
                count += _insert(new)
                new = []
        count += _insert(new)
        row.problem = f"{row.broken:,} lines are no entries: manage.py slog verify" if row.broken else ""
        row.save()
    return count


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _indexed(month: str) -> int:
    row = JournalFile.objects.filter(host=settings.CLAUDEOPS_HOST, month=month).first()
    return row.size if row else 0


def _insert(entries: list[JournalEntry]) -> int:
    known = set(JournalEntry.objects.filter(uid__in=[one.uid for one in entries]).values_list("uid", flat=True))
    new = {one.uid: one for one in reversed(entries) if one.uid not in known}
    JournalEntry.objects.bulk_create(list(reversed(new.values())))
    return len(new)


def _ends_line(path: Path, size: int) -> bool:
    with path.open("rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"\n"


def _lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the whole lines of a file from a place on: (place behind it, bytes, the first LONGEST_LINE of them)."""
    with path.open("rb") as file:
        file.seek(start)
        end = start
        while piece := file.readline(LONGEST_LINE):
            line, end = piece, end + len(piece)
            while piece and not piece.endswith(b"\n"):  # longer than an entry can be
                piece = file.readline(LONGEST_LINE)
                end += len(piece)
            if not piece:
                return  # a line that somebody is writing, or that was torn
            yield end, line


def _entry(line: bytes, file: JournalFile, merged: Mapping[str, Mapping[str, str]]) -> JournalEntry:
    """Return the row of a line. Raises ValueError for what is no entry."""
    if len(line) >= LONGEST_LINE:
        raise ValueError(f"it has more than {LONGEST_LINE:,} bytes")
    data = outside_json.loads(line.decode())
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    try:
        action, tool = (canonical(kind, checked(kind, str(data[kind])), merged) for kind in KINDS)
        at = times.parse(str(data["timestamp"]))
        texts = {name: fold(str(data.get(name) or ""))[: LONGEST[name]] for name in LONGEST}
    except KeyError as error:
        raise ValueError(f"it has no {error.args[0]}") from None
    except DomainError as error:
        raise ValueError(str(error)) from None
    if not times.may_end(at):
        raise ValueError(f"its timestamp lies before {times.EARLIEST.year} or after {times.LATEST.year}")
    if not texts["detail"]:
        raise ValueError("it has no detail")
    session = data.get("session")
    uid = str(data.get("id") or "")[:64] or hashlib.sha256(f"{file.month} {file.lines}".encode() + line).hexdigest()
    return JournalEntry(
        uid=uid,
        at=at,
        action=action,
        tool=tool,
        session_id=session if isinstance(session, int) and 0 < session < 2**63 else None,
        held=_held(texts["detail"], texts["reason"], as_words(f"{action} {tool}")),
        file=file,
        line=file.lines,
        **texts,
    )


def _held(*texts: str) -> str:
    for text in texts:
        judged = judge(text, text)
        if judged.verdict == Verdict.HOLD:
            return judged.reason[:500]
    return ""


def catch_up() -> int:
    """Index what is new in all months of this host; returns how many entries are new."""
    return sum(index(month) for month in months())


def commit_due(*, at: datetime | None = None) -> int:
    """Commit the months that have new lines; returns how many. The task of each hour, and of a session's end."""
    count = 0
    for month in months()[-2:]:
        name = f"{FOLDER}/{month}.jsonl"
        row = JournalFile.objects.filter(host=settings.CLAUDEOPS_HOST, month=month).first()
        lines = f", {row.lines:,} lines" if row else ""
        count += bool(vault.commit(name, f"Keep the journal of {month}{lines}\n", at=to_utc(at)))
    return count


def reindex() -> int:
    """Make the index of this host's journal again from its files; returns how many entries it has."""
    with vault.locked(FOLDER), transaction.atomic():
        JournalFile.objects.filter(host=settings.CLAUDEOPS_HOST).delete()
        for month in months():
            index(month)
    return JournalEntry.objects.filter(file__host=settings.CLAUDEOPS_HOST).count()


def verify() -> Verified:
    """Read each line of this host's files, and compare them with the index. Changes nothing."""
    broken, notes, uids, lines = list[Broken](), list[Broken](), Counter[str](), 0
    last = datetime.min.replace(tzinfo=UTC)
    for month in months():
        name = f"{FOLDER}/{month}.jsonl"
        path, end, number = vault.path_of(name), 0, 0
        for number, (end, line) in enumerate(_lines(path), start=1):  # noqa: B007
            lines += 1
            try:
                entry = _entry(line, JournalFile(month=month, lines=number), {})
            except ValueError as error:
                broken.append(Broken(name, number, str(error)))
                continue
            uids[entry.uid] += 1
            if uids[entry.uid] == 2:
                notes.append(Broken(name, number, "an entry of this id stands before it"))
            if entry.at < last:
                notes.append(Broken(name, number, "its time is before that of the line above"))
            if entry.at > timezone.now():
                notes.append(Broken(name, number, "its time lies in the future"))
            last = entry.at
        if _size(path) > end:
            broken.append(Broken(name, number + 1, "the line was torn"))
    known = set(JournalEntry.objects.filter(file__host=settings.CLAUDEOPS_HOST).values_list("uid", flat=True))
    return Verified(lines, sum(uids.values()), tuple(broken), len(set(uids) - known), tuple(notes))


def find(uid: str) -> JournalEntry:
    """Return the entry of this id, or of the only one that begins with it. Raises EntryNotFound."""
    rows = list(JournalEntry.objects.filter(uid__startswith=uid)[:2]) if len(uid) >= 4 else []
    if len(rows) != 1:
        raise EntryNotFound(f"The journal has no entry {uid[:64]!r}.", "List them: manage.py slog query")
    return rows[0]


def as_data(entry: JournalEntry, *, told: bool = False) -> dict[str, Any]:
    """Return an entry as JSON has it; `told` to an agent, which gets no text that the gate holds."""
    data = {
        "id": entry.uid,
        "timestamp": entry.at.isoformat(),
        "action": entry.action,
        "tool": entry.tool,
        "detail": entry.detail,
        "reason": entry.reason,
        "session": entry.session_id,
        "agent": entry.agent,
        "project": entry.project,
        "host": entry.host,
        "by": entry.by,
        "held": entry.held,
    }
    if told:
        data |= {name: "" if entry.held else safe(str(data[name])) for name in ("detail", "reason")}
        if entry.held and len(as_words(entry.tool).split()) > NAME_WORDS:
            data["tool"] = ""
    return data


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of entries, the most first."""

    entries: int
    first: datetime | None
    last: datetime | None
    actions: dict[str, int]
    tools: dict[str, int]
    by: dict[str, int]


def stats(rows: QuerySet[JournalEntry], *, most: int = 20) -> Stats:
    ends = rows.aggregate(entries=Count("pk"), first=Min("at"), last=Max("at"))

    def counts(name: str) -> dict[str, int]:
        grouped = rows.order_by().exclude(**{name: ""}).values_list(name).annotate(count=Count("pk"))
        return dict(grouped.order_by("-count", name)[:most])

    return Stats(ends["entries"], ends["first"], ends["last"], counts("action"), counts("tool"), counts("by"))
