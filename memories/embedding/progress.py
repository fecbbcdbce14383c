"""How far an installation is, as a small file beside the model's folder: the web process reads what a worker does.

Knows nothing of how a model is fetched.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Progress:
    """What the last installation came to. `at` is seconds since the epoch; `total` 0 = not known yet."""

    at: float
    source: str = ""
    done: int = 0
    total: int = 0
    error: str = ""


def _file(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.json")


def write(folder: Path, progress: Progress) -> None:
    """Leave word for others; readers see the old one or the new one, whole."""
    file = _file(folder)
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(asdict(progress)))
    beside.replace(file)


def read(folder: Path) -> Progress | None:
    """What was left last, or None."""
    try:
        return Progress(**json.loads(_file(folder).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def forget(folder: Path) -> None:
    """The model is there: nothing is left to say."""
    _file(folder).unlink(missing_ok=True)


def is_locked(folder: Path) -> bool:
    """Whether somebody on this host installs into `folder` now."""
    try:
        with _lock_file(folder).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _lock_file(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[bool]:
    """Whether this process is the one that installs into `folder`; it is until the block ends, or the process."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _lock_file(folder).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        os.set_inheritable(file.fileno(), False)
        yield True


def missing(name: str, folder: Path) -> str:
    """Why the model is not in `folder`, for a person."""
    found = read(folder)
    if is_locked(folder):
        share = f", {100 * found.done // found.total} %" if found and found.total else ""
        return f"the model {name} is being installed{share}"
    if found and found.error:
        return f"the model {name} could not be installed: {found.error}"
    return f"the model {name} is not installed"
