"""The decision records of a project on the disk: where they stand, which numbers were used, and the verbs that write.

A number is never used twice: git's history is asked, too. A change of two records is written to the new one first
(a crash in between is a link that `check` names).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from claudeops.lib.tracked_file import disk, git
from claudeops.lib.tracked_file.disk import Unusable, words
from memories.errors import Conflict, DecisionNotFound, InvalidDecision
from memories.library import vault
from memories.library.decisions.record import (
    ACCEPTED,
    PROPOSED,
    STATUSES,
    SUPERSEDED,
    Draft,
    Record,
    file_name,
    number_of,
    parse,
    with_status,
    written,
)

FOLDERS = ("docs/decisions", "docs/adr", "adr", "doc/adr", "docs/architecture/decisions", "docs/ADR")
"""Where records stand; the first that is there. A project without any begins with the first."""
NO_RECORDS = re.compile(r"(?:readme|index|template|adr-template|0000-.*template|.*template)\.md\Z", re.IGNORECASE)
MOST = 5_000


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a record, or between two."""

    name: str
    why: str


def folder_of(root: Path) -> Path:
    """Return the folder of a repository's records, which may not be there yet. Raises Unusable for a link out of it."""
    try:
        top = root.resolve(strict=True)
    except OSError as error:
        raise Unusable(f"{root}: {words(error)}.") from None
    found = next((top / name for name in FOLDERS if (top / name).is_dir()), top / FOLDERS[0])
    path = found.resolve()
    if not path.is_relative_to(top):
        raise Unusable(f"{found} leads out of the repository, to {path}; it is not followed.")
    return path


def files_of(folder: Path) -> list[Path]:
    """Return the files of records, by name. Raises Unusable."""
    try:
        names = sorted(path.name for path in folder.iterdir() if path.suffix == ".md" and path.name.isprintable())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Unusable(f"{folder}: {words(error)}.") from None
    return [folder / name for name in names if not NO_RECORDS.match(name)][:MOST]


def records_of(folder: Path) -> list[Record]:
    """Read the records of a folder, by number and name; a file that cannot be read is one with problems."""
    return sorted(map(record_at, files_of(folder)), key=lambda one: (one.number is None, one.number or 0, one.name))


def record_at(path: Path) -> Record:
    try:
        return parse(path.name, disk.read(path).data)
    except Unusable as error:
        return Record(path.name, number_of(path.name), path.name, "", "", None, problems=(str(error),))


def find(records: Sequence[Record], key: str) -> Record:
    """Return the record of this number or file name. Raises DecisionNotFound."""
    plain = key.strip().removesuffix(".md").lower()
    digits = plain.removeprefix("adr").lstrip("-_ #").lstrip("0")
    found = [
        one
        for one in records
        if one.name.removesuffix(".md").lower() == plain or (digits.isdecimal() and one.number == int(digits))
    ]
    if len(found) != 1:
        many = "is the number of several decisions" if found else "is no decision"
        raise DecisionNotFound(f"{key[:80]!r} {many}.", "List them: manage.py adr list")
    return found[0]


def new(folder: Path, title: str, *, on: date, replaces: str = "", **more: Sequence[str]) -> Path:
    """Write a record with the next number, and mark the one that it replaces. Raises InvalidDecision and Unusable."""
    if not title.strip():
        raise InvalidDecision("The title is empty.", "Say in a few words what is decided.", field="title")
    with vault.locked("decisions"):
        records = records_of(folder)
        old = find(records, replaces) if replaces else None
        if old is not None and old.number is None:
            raise InvalidDecision(f"{old.name} has no number, so no other one can name it.")
        number = max(used_numbers(folder, records), default=0) + 1
        over = [old.number] if old is not None and old.number is not None else []
        draft = Draft(number, title, on, ACCEPTED if old else PROPOSED, supersedes=over, **more)  # type: ignore[arg-type]
        path = folder / file_name(number, title)
        folder.mkdir(parents=True, exist_ok=True)
        if not disk.create(path, written(draft).encode()):
            raise Conflict(f"{path.name} is there already.", "Run it again.")
        if old is not None:
            _mark(folder / old.name, SUPERSEDED, ("superseded_by", f"{number}. {title.strip()}", path.name))
    return path


def used_numbers(folder: Path, records: Sequence[Record]) -> set[int]:
    """Return the numbers of the records, and of those that ever stood in the folder by git's history."""
    numbers = {one.number for one in records if one.number is not None}
    return numbers | {number for name in _names_in_history(folder) if (number := number_of(name)) is not None}


def _names_in_history(folder: Path) -> set[str]:
    """Return the names of all records that any branch ever had. Raises GitError: then nobody knows."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    repository = git.find_repository(there)
    if repository is None or not git.head(repository).commit:
        return set()
    below = folder.relative_to(repository.root).as_posix()
    listed = ("log", "--all", "--format=", "--name-only", "-z", "--diff-filter=ARC", "--", f":(literal,top){below}")
    out = git.git(repository, *listed)
    return {name.rpartition("/")[2] for name in out.decode("utf-8", "replace").split("\0") if name.endswith(".md")}


def set_status(folder: Path, key: str, status: str) -> Record:
    """Give a record another status, in its file. Raises InvalidDecision, DecisionNotFound and Unusable."""
    if status not in STATUSES or status == SUPERSEDED:
        others = ", ".join(one for one in STATUSES if one != SUPERSEDED)
        raise InvalidDecision(f"status is {status!r}; allowed are {others}.", "See: manage.py adr supersede")
    with vault.locked("decisions"):
        record = find(records_of(folder), key)
        if record.superseded_by:
            raise InvalidDecision(f"{record.name} is superseded by {', '.join(record.superseded_by)}.")
        _mark(folder / record.name, status)
    return record_at(folder / record.name)


def supersede(folder: Path, old_key: str, new_key: str) -> Record:
    """Let one record supersede another, with links on both sides. Raises InvalidDecision for a circle."""
    with vault.locked("decisions"):
        records = records_of(folder)
        old, later = find(records, old_key), find(records, new_key)
        if old.name == later.name or old.key in _above(records, later):
            raise InvalidDecision(f"{later.key} would supersede {old.key}, which supersedes it: a circle.")
        if old.key not in later.supersedes:
            _mark(folder / later.name, later.status, ("supersedes", _label(old), old.name))
        if later.key not in old.superseded_by:
            _mark(folder / old.name, SUPERSEDED, ("superseded_by", _label(later), later.name))
    return record_at(folder / old.name)


def _label(record: Record) -> str:
    return f"{record.number}. {record.title}" if record.number is not None else record.title


def _mark(path: Path, status: str, link: tuple[str, str, str] | None = None) -> None:
    stored = disk.read(path)
    after = with_status(stored.data, status, link=link)
    if after != stored.data:
        disk.write(path, after)


def _above(records: Sequence[Record], record: Record) -> set[str]:
    """Return what supersedes a record, directly or by others."""
    by_key = {one.key: one for one in records}
    above, rest = set[str](), list(record.superseded_by)
    while rest:
        key = rest.pop()
        if key not in above:
            above.add(key)
            rest += by_key[key].superseded_by if key in by_key else ()
    return above


def check(folder: Path) -> list[Problem]:
    """Return what is wrong with the records of a folder, by file."""
    records = records_of(folder)
    return [*_single(records), *_numbers(folder, records), *_links(records), *_circles(records)]


def _single(records: Sequence[Record]) -> Iterator[Problem]:
    for one in records:
        yield from (Problem(one.name, why) for why in one.problems)
        if one.status and one.said and one.said.casefold().strip(" .") not in STATUSES and not one.superseded_by:
            yield Problem(one.name, f"its status is {one.said[:60]!r}; write {one.status}")
        if one.status == SUPERSEDED and not one.superseded_by:
            yield Problem(one.name, "it is superseded, and does not say by which decision")
        if one.day is None and not one.problems:
            yield Problem(one.name, "it has no date")


def _numbers(folder: Path, records: Sequence[Record]) -> Iterator[Problem]:
    counts = Counter(one.number for one in records if one.number is not None)
    for one in records:
        if one.number is not None and counts[one.number] > 1:
            yield Problem(one.name, f"the number {one.number} is used {counts[one.number]} times")
    names = {one.name for one in records}
    gone = {name: number for name in _names_in_history(folder) - names if (number := number_of(name)) is not None}
    earlier: Mapping[int, str] = {number: name for name, number in sorted(gone.items())}
    for one in records:
        name = earlier.get(one.number or 0)
        if name and _slug(name) != _slug(one.name):
            yield Problem(one.name, f"the number {one.number} was that of {name} before")


def _slug(name: str) -> str:
    """Return a file's name without its number: a record that was renamed keeps its own."""
    return re.sub(r"\W+", "", re.sub(r"^\D*\d+", "", name.removesuffix(".md")).casefold())


def _links(records: Sequence[Record]) -> Iterator[Problem]:
    by_key = {one.key: one for one in records}
    for one in records:
        for verb, keys, back in (
            ("supersedes", one.supersedes, "superseded_by"),
            ("is superseded by", one.superseded_by, "supersedes"),
        ):
            for key in keys:
                other = by_key.get(key)
                if other is None:
                    yield Problem(one.name, f"it {verb} {key}, which is not there")
                elif one.key not in getattr(other, back):
                    yield Problem(one.name, f"it {verb} {key}, which does not say so: {other.name}")


def _circles(records: Sequence[Record]) -> Iterator[Problem]:
    for one in records:
        if one.key in _above(records, one):
            yield Problem(one.name, "it supersedes itself, by a circle of decisions")


def graph(records: Sequence[Record]) -> str:
    """Return what superseded what, as lines of text: each chain from the first to the one that holds."""
    by_key = {one.key: one for one in records}
    lines = []
    for one in records:
        if not any(key in by_key for key in one.supersedes):
            chain, seen = [one], {one.key}
            while (after := by_key.get(next(iter(chain[-1].superseded_by), ""))) and after.key not in seen:
                seen.add(after.key)
                chain.append(after)
            lines.append(" → ".join(f"{step.key} {step.title} ({step.status or 'no status'})" for step in chain))
    return "\n".join(lines)
