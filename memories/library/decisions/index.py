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
from memories.injection.passages import held, topics_of
from memories.injection.tags import Subject, is_glob, matches, overlap, tidied
from memories.library.decisions.folder import files_of, folder_of
from memories.library.decisions.record import HOLDS, parse
from memories.models import Decision, Project, trust

COLUMNS = ("number", "title", "status", "day", "deciders", "tags", "supersedes", "superseded_by", "paths", "services")
PATHS_IN_TEXT = re.compile(r"(?<![\w.@~-])[\w.@~-]+(?:/[\w.@*~-]+)+")
LISTS = ("deciders", "tags", "supersedes", "superseded_by", "paths")
MOST_PATHS = 100
"""Paths in the text of a task that are looked at."""
MOST_NAMED = 5
"""Decisions that a prompt or a hook names at once."""
LONGEST_TITLE = 120
"""Characters of a title that is told."""


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


def successor_of(row: Decision, by_key: dict[str, Decision]) -> Decision | None:
    """Return the decision that holds in place of a superseded one; None where there is none."""
    seen: set[str] = set()
    while row.status not in HOLDS:
        after = next((by_key[key] for key in map(str, row.superseded_by) if key in by_key), None)
        if after is None or after.key in seen:
            return None
        seen.add(after.key)
        row = after
    return row


def told_title(row: Decision) -> str:
    """Return a title as an agent is told it; "" for one that the gate holds or that touches what wants a person.

    Whoever writes in the repository writes titles: in `strict` trust none is told, since the file can be read.
    """
    waits = trust.mode() == trust.STRICT or held(row.title) or topics_of(row.title)
    return "" if waits or len(row.title) > LONGEST_TITLE else safe(row.title)


def line_of(row: Decision) -> str:
    """Return a decision in one line for an agent: its number, title, status and file."""
    title = f" “{told}”" if (told := told_title(row)) else ""
    replaced = f", in place of {', '.join(map(safe, map(str, row.supersedes)))}" if row.supersedes else ""
    return f"decision {safe(row.key)}{title} ({row.status or 'no status'}{replaced}): {safe(row.path)}"


def as_data(row: Decision, *, told: bool = False) -> dict[str, Any]:
    clean = safe if told else str
    data = {
        "project": row.project.slug,
        "key": row.key,
        "title": told_title(row) if told else row.title,
        "status": row.status,
        "date": row.day.isoformat() if row.day else None,
        "file": row.path,
        **{name: list(map(clean, getattr(row, name))) for name in LISTS},
    }
    return data if told else data | {"problems": list(row.problems)}


def with_successors(rows: Sequence[Decision]) -> list[dict[str, Any]]:
    """Return decisions for an agent: a superseded one is never named without the one that holds."""
    projects = {row.project_id for row in rows}
    own: dict[int, dict[str, Decision]] = {pk: {} for pk in projects}
    for one in Decision.objects.filter(project__in=projects).defer("text"):
        own[one.project_id][one.key] = one
    found = []
    for row in rows:
        after = None if row.status in HOLDS else successor_of(row, own[row.project_id])
        found.append(as_data(row, told=True) | {"holds_instead": after.key if after else None})
    return found
