"""The index of decision records: kept in step with the files, searched, and asked what governs a path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from django.db import transaction

from claudeops.lib.tracked_file import disk
from claudeops.lib.tracked_file.disk import Unusable
from memories.injection.escape import safe
from memories.injection.passages import as_words, held, topics_of
from memories.injection.tags import Subject, is_glob, matches, overlap, tidied
from memories.library.decisions.folder import files_of, folder_of
from memories.library.decisions.record import HOLDS, parse, successor_of
from memories.models import Decision, Project, trust

COLUMNS = ("number", "title", "status", "day", "deciders", "tags", "supersedes", "superseded_by", "paths", "services")
PATHS_IN_TEXT = re.compile(r"(?<![\w.@~-])[\w.@~-]+(?:/[\w.@*~-]+)+")
LISTS = ("deciders", "tags", "paths")
MOST_PATHS = 100
"""Paths in the text of a task that are looked at."""
MOST_NAMED = 5
"""Decisions that a prompt or a hook names at once."""
LONGEST_TOLD = 120
"""Characters of a text of a record that is told."""


def sync(project: Project) -> int:
    """Bring the index of a project in step with its files; returns how many changed. Unchanged files are not read.

    A repository that is not on this host changes nothing. Raises Unusable.
    """
    root = Path(project.path) if project.path else None
    if root is None or not root.is_dir():
        return 0
    folder, changed = folder_of(root), 0
    below = folder.relative_to(root.resolve()).as_posix()
    rows = {row.name: row for row in Decision.objects.filter(project=project)}
    found = set()
    with transaction.atomic():
        for path in files_of(folder):
            found.add(path.name)
            status, row = path.lstat(), rows.get(path.name)
            if row and (row.size, row.modified_ns, row.folder) == (status.st_size, status.st_mtime_ns, below):
                continue
            values = _values(path) | {"folder": below, "size": status.st_size, "modified_ns": status.st_mtime_ns}
            Decision.objects.update_or_create(project=project, name=path.name, defaults=values)
            changed += 1
        gone = [row.pk for name, row in rows.items() if name not in found]
        changed += Decision.objects.filter(pk__in=gone).delete()[0]
    return changed


def _values(path: Path) -> dict[str, Any]:
    try:
        data, problems = disk.read(path).data, tuple[str, ...]()
    except Unusable as error:
        data, problems = b"", (str(error),)
    record = parse(path.name, data)
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(record).items()}
    columns = {name: values[name] for name in COLUMNS}
    columns["title"] = record.title[:300]
    return columns | {
        "text": data.decode("utf-8", "replace").replace("\0", ""),
        "problems": [*problems, *record.problems],
    }


def governs(row: Decision, path: str) -> bool:
    """Whether a decision is about a path or a glob below its repository."""
    wanted = tidied(path)
    return bool(wanted) and any(overlap(glob, wanted) for one in row.paths if (glob := tidied(str(one))))


def governing(project: Project, subject: Subject) -> list[Decision]:
    """Return the decisions that hold and govern a path or a service of a task, each once.

    In place of a superseded one its successor is returned.
    """
    rows = list(Decision.objects.filter(project=project).defer("text"))
    written = (match[0].rstrip(".") for match in islice(PATHS_IN_TEXT.finditer(subject.text), MOST_PATHS))
    paths = (*subject.paths, *written)
    about = [
        row
        for row in rows
        if any(governs(row, path) for path in paths)
        or any(matches(service, subject) for service in map(str, row.services) if not is_glob(service))
    ]
    by_key = {row.key: row for row in rows}
    named = (row if row.status in HOLDS else successor_of(row, by_key) for row in about)
    return list({row.pk: row for row in named if row is not None}.values())[:MOST_NAMED]


def told_text(text: str) -> str:
    """Return a text of a record as an agent is told it; "" for one that the gate holds or that wants a person.

    Whoever writes in the repository writes titles, tags and the names of files: in `strict` trust only what has up to
    two words is told, since the file can be read.
    """
    words = as_words(text)
    waits = bool(held(text) or held(words) or topics_of(words))
    if trust.mode() == trust.STRICT:
        waits = waits or len(words.split()) > 2
    return "" if waits or len(text) > LONGEST_TOLD else safe(text)


def told_file(row: Decision) -> str:
    """Return where a record stands; of a name that is not told its number alone."""
    if name := told_text(row.name):
        return f"{safe(row.folder)}/{name}"
    return f"{safe(row.folder)}/{row.name[: -len(row.name.lstrip('0123456789'))]}*.md"


def told_key(key: object) -> str:
    return str(key) if str(key).isdecimal() else told_text(str(key)) or "a file without a number"


def told_list(texts: Sequence[str]) -> list[str]:
    """Return the texts of a list that are told; none where together they say what the gate holds."""
    whole = as_words(" and ".join(texts))
    return [] if held(whole) else [told for text in texts if (told := told_text(text))]


def line_of(row: Decision) -> str:
    """Return a decision in one line for an agent: its number, title, status and file."""
    title = f" “{told}”" if (told := told_text(row.title)) else ""
    replaced = f", in place of {', '.join(map(told_key, row.supersedes))}" if row.supersedes else ""
    return f"decision {told_key(row.key)}{title} ({row.status or 'no status'}{replaced}): {told_file(row)}"


def as_told(row: Decision) -> dict[str, Any]:
    """Return a record as agents and programs get it."""
    return {
        "project": row.project.slug,
        "key": told_key(row.key),
        "title": told_text(row.title),
        "status": row.status,
        "date": row.day.isoformat() if row.day else None,
        "file": told_file(row),
        **{name: list(map(told_key, getattr(row, name))) for name in ("supersedes", "superseded_by")},
        **{name: told_list([str(one) for one in getattr(row, name)]) for name in LISTS},
    }


def with_successors(rows: Sequence[Decision]) -> list[dict[str, Any]]:
    """Return decisions for an agent: a superseded one is never named without the one that holds."""
    projects = {row.project_id for row in rows}
    own: dict[int, dict[str, Decision]] = {pk: {} for pk in projects}
    for one in Decision.objects.filter(project__in=projects).defer("text"):
        own[one.project_id][one.key] = one
    found = []
    for row in rows:
        after = None if row.status in HOLDS else successor_of(row, own[row.project_id])
        found.append(as_told(row) | {"holds_instead": told_key(after.key) if after else None})
    return found
