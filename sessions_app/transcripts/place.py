"""Find the project of a folder: the one whose repository path, or another checkout of it, is nearest above it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Hashable, Mapping
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Literal, TypeVar

from claudeops.lib.domain_error import DomainError
from claudeops.lib.tracked_file import git
from memories.models import Project
from memories.models.memory import ANY_PROJECT

LONGEST_FOLDER = 4096
"""Characters; no file system has a longer path."""

RESOLVED_FOR = 30.0
"""Seconds for which the target of a symbolic link, and what git says of a folder, is remembered."""

K = TypeVar("K", bound=Hashable)


def project_at(folder: str, *, within: int | Literal["any"] | None = ANY_PROJECT, branch: str = "") -> Project | None:
    """Return the project whose resolved path, in any checkout, is the longest prefix of `folder`; None without one.

    A worktree is one by the list of its repository. A clone has a remote, the owner and a commit in common with the
    project's repository: what a folder says of itself is not enough, since an agent may write it. Of a worktree that is
    gone, `branch` is what was checked out there. `within` is the id of the one project that may be found, None for no
    project. A path that this host does not have is compared as it is written. Two queries.
    """
    if len(folder) > LONGEST_FOLDER:
        return None
    rows = Project.objects.exclude(path="")
    if within != ANY_PROJECT:
        rows = rows.filter(pk=within or 0)
    period = int(time.monotonic() / RESOLVED_FOR)
    paths = {pk: _resolved(path, period) for pk, path in rows.order_by("-pk").values_list("pk", "path")}
    place = _resolved(folder, period)
    trees = {(pk, n): other for pk, path in paths.items() for n, other in enumerate(_worktrees(path, period), 1)}
    key = nearest(place, trees | {(pk, 0): path for pk, path in paths.items()})
    if key is None and place:
        key = nearest(place, {(pk, 0): _twin(path, place, branch, period) for pk, path in paths.items()})
    return None if key is None else Project.objects.filter(pk=key[0]).first()


def nearest(folder: str, paths: Mapping[K, str]) -> K | None:
    """Return the key of the path that is `folder` or the nearest above it; the last of equal ones. Pure."""
    by_path = {PurePath(path): key for key, path in paths.items() if PurePath(path).is_absolute()}
    place = PurePath(folder)
    return next((by_path[one] for one in (place, *place.parents) if one in by_path), None)


@lru_cache(maxsize=4096)
def _resolved(path: str, period: int) -> str:
    """Return the real path of `path`. It is asked of the file system once in each `period`."""
    return os.path.realpath(os.path.expanduser(path)) if path.startswith(("/", "~")) else ""  # noqa: PTH111


@lru_cache(maxsize=4096)
def _worktrees(path: str, period: int) -> tuple[str, ...]:
    """Return where the folder `path` is in the other checkouts of its repository."""
    repository = _repository(path)
    if repository is None:
        return ()
    return tuple(str(root / Path(path).relative_to(repository.root)) for root in git.checkouts(repository))


@lru_cache(maxsize=4096)
def _twin(path: str, folder: str, branch: str, period: int) -> str:
    """Return where the folder `path` is in the clone that holds `folder`, or was in the worktree; "" for neither."""
    try:
        ours, here = _repository(path), _repository(folder)
        if ours is None:
            return ""
        root = here.root if here and _is_clone(here, ours) else _gone(Path(folder), branch, ours)
        return str(root / Path(path).relative_to(ours.root)) if root else ""
    except (DomainError, OSError, ValueError):
        return ""


def _repository(folder: str) -> git.Repository | None:
    """Return the repository that a folder is in; None for one of which its own list of checkouts does not know."""
    try:
        here = git.find_repository(Path(folder)) if folder else None
        return here if here and not here.common.is_symlink() and here.root in git.checkouts(here) else None
    except DomainError:
        return None


def _is_clone(here: git.Repository, ours: git.Repository) -> bool:
    same = git.remotes(here) & {*git.remotes(ours), str(ours.root)}
    return bool(same) and here.common.stat().st_uid == ours.common.stat().st_uid and git.shares_history(here, ours)


def _gone(place: Path, branch: str, ours: git.Repository) -> Path | None:
    """Return the root of a worktree that is gone: it stood beside the main checkout and began with its name."""
    main = ours.common.parent
    root = next((one for one in (place, *place.parents) if one.parent == main.parent), None)
    if root is None or root.exists() or not re.match(rf"{re.escape(main.name)}[-_.]", root.name):
        return None
    is_free = branch and git.head(ours).branch != branch and git.branch_exists(ours, branch)
    return root if is_free else None
