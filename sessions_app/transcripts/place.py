"""Find the project of a folder: the one whose repository path is nearest above it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import Literal

from memories.models import Project
from memories.models.memory import ANY_PROJECT

LONGEST_FOLDER = 4096
"""Characters; no file system has a longer path."""

RESOLVED_FOR = 30.0
"""Seconds for which the target of a symbolic link is remembered."""


def project_at(folder: str, *, within: int | Literal["any"] | None = ANY_PROJECT) -> Project | None:
    """Return the project whose resolved path is the longest prefix of `folder`; None when there is none.

    `within` is the id of the one project that may be found, None for no project. A path that this host does not have
    is compared as it is written. Two queries.
    """
    if len(folder) > LONGEST_FOLDER:
        return None
    rows = Project.objects.exclude(path="")
    if within != ANY_PROJECT:
        rows = rows.filter(pk=within or 0)
    period = int(time.monotonic() / RESOLVED_FOR)
    paths = {pk: _resolved(path, period) for pk, path in rows.order_by("-pk").values_list("pk", "path")}
    found = nearest(_resolved(folder, period), paths) if paths else None
    return None if found is None else Project.objects.filter(pk=found).first()


def nearest(folder: str, paths: Mapping[int, str]) -> int | None:
    """Return the key of the path that is `folder` or the nearest above it; the last of equal ones. Pure."""
    by_path = {PurePath(path): key for key, path in paths.items() if PurePath(path).is_absolute()}
    place = PurePath(folder)
    return next((by_path[one] for one in (place, *place.parents) if one in by_path), None)


@lru_cache(maxsize=4096)
def _resolved(path: str, period: int) -> str:
    """Return the real path of `path`. It is asked of the file system once in each `period`."""
    return os.path.realpath(os.path.expanduser(path)) if path.startswith(("/", "~")) else ""  # noqa: PTH111
