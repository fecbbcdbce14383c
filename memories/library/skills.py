"""The index of skills: `SKILL.md` files of projects and of the account that runs the workers, where they lie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from claudeops.lib.tracked_file import disk
from claudeops.lib.tracked_file.disk import Unusable
from claudeops.lib.tracked_file.document import Document, decode
from memories.access import Access
from memories.capture.text import fold
from memories.library import front_matter
from memories.models import Project, Skill

FOLDERS = (".claude/skills", "skills")
"""Where a project has them, each in a folder of its own."""
NAME = "SKILL.md"
MOST = 500


def user_folder() -> Path:
    """Return the folder of the account's own settings of the CLI."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser()


def sync(project: Project | None) -> int:
    """Bring the index of a project's skills (None: the account's) in step with the files; returns how many changed."""
    root = Path(project.path) if project and project.path else user_folder()
    if not root.is_dir():
        return 0
    folders = FOLDERS if project else ("skills",)
    rows = {row.path: row for row in Skill.objects.filter(project=project, host=settings.CLAUDEOPS_HOST)}
    found, changed = set(), 0
    with transaction.atomic():
        for path in _files(root, folders):
            found.add(str(path))
            status, row = path.lstat(), rows.get(str(path))
            if row and (row.size, row.modified_ns) == (status.st_size, status.st_mtime_ns):
                continue
            values = _values(path) | {"size": status.st_size, "modified_ns": status.st_mtime_ns, "project": project}
            Skill.objects.update_or_create(host=settings.CLAUDEOPS_HOST, path=str(path), defaults=values)
            changed += 1
        changed += Skill.objects.filter(pk__in=[row.pk for path, row in rows.items() if path not in found]).delete()[0]
    return changed


def _files(root: Path, folders: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files, none through a link: what lies elsewhere is not this project's."""
    top = root.resolve()
    for folder in folders:
        for path in sorted((top / folder).glob(f"*/{NAME}"))[:MOST]:
            if path.resolve() == path and len(str(path)) <= 500 and str(path).isprintable():
                yield path


def _values(path: Path) -> dict[str, Any]:
    try:
        text = decode(disk.read(path).data)
    except (Unusable, ValueError) as error:
        return {"name": path.parent.name[:100], "description": "", "text": "", "problem": str(error)[:500]}
    values, problem = front_matter.read(Document.read(text))
    name, description = (fold(str(values.get(key) or "")) for key in ("name", "description"))
    return {
        "name": (name or path.parent.name)[:100],
        "description": description[:2_000],
        "text": text.replace("\0", ""),
        "problem": problem or ("" if description else "it has no description"),
    }


def visible_skills(access: Access) -> QuerySet[Skill]:
    """Filter to the skills that a caller may see: with a project its own and the account's."""
    rows = Skill.objects.all()
    return rows.filter(Q(project=None) | Q(project=access.project_id or 0)) if access.confined else rows


def matching(rows: QuerySet[Skill], text: str) -> QuerySet[Skill]:
    """Filter to the skills that have every word of a text."""
    for word in text.split():
        rows = rows.filter(Q(name__icontains=word) | Q(description__icontains=word) | Q(text__icontains=word))
    return rows
