"""The vault: a folder in a git repository that has the library's own files, in the data folder or one of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from django.conf import settings

from claudeops.lib.locks import file_lock
from claudeops.lib.tracked_file import git
from claudeops.lib.tracked_file.disk import Unusable, words
from claudeops.lib.tracked_file.git import GitError, Repository

NAME = "vault"


def folder() -> Path:
    """Return where the vault is, or will be, on this host."""
    return settings.CLAUDEOPS_VAULT or Path(settings.CLAUDEOPS_DATA_DIR) / NAME


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Let one process of this host at a time write `name` in the vault; the lock ends with its process."""
    with file_lock(Path(settings.CLAUDEOPS_DATA_DIR) / "locks" / f"vault-{name}", wait=True):
        yield


def path_of(name: str) -> Path:
    """Return the resolved path of a file of the vault, whose folder is made when it is missing. Raises Unusable."""
    path = folder() / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        parent = path.parent.resolve()
    except OSError as error:
        raise Unusable(
            f"{path.parent}: {words(error)}.", "Set CLAUDEOPS_VAULT to a folder that can be written."
        ) from None
    if not parent.is_relative_to(folder().resolve()):
        raise Unusable(f"{path} leads out of the vault.", "Put a plain folder in its place.")
    return parent / path.name


def commit(name: str, message: str, *, at: datetime) -> str:
    """Commit a file of the vault as it is; returns the commit, "" where it is committed already. Raises GitError."""
    path = path_of(name)
    with locked("commit"):
        repository = _repository()
        if doing := git.in_progress(repository):
            raise GitError(f"The vault {repository.root} is in the middle of {doing}.", "It is committed afterwards.")
        return git.commit_file(repository, path.relative_to(repository.root).as_posix(), message, at=at)


def _repository() -> Repository:
    here = folder().resolve()
    repository = git.find_repository(here)
    if settings.CLAUDEOPS_VAULT:
        if repository is None:
            raise GitError(f"The vault {here} is in no repository.", "Run there: git init")
        return repository
    return repository if repository is not None and repository.root == here else git.init(here)
