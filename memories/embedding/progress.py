"""Share the progress of an installation between processes, in a small file beside the model's folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from claudeops.lib.locks import file_lock


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of the last installation: `at` in seconds since the epoch, bytes `done` of `total` (0: unknown)."""

    at: float
    source: str = ""
    done: int = 0
    total: int = 0
    error: str = ""


def lock_path(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


def _path(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.json")


def write(folder: Path, progress: Progress) -> None:
    """Replace the progress atomically."""
    new = _path(folder).with_suffix(".new")
    new.write_text(json.dumps(asdict(progress)))
    new.replace(_path(folder))


def read(folder: Path) -> Progress | None:
    try:
        return Progress(**json.loads(_path(folder).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def forget(folder: Path) -> None:
    _path(folder).unlink(missing_ok=True)


def is_installing(folder: Path) -> bool:
    """Whether a process of this host installs into `folder` now."""
    if not lock_path(folder).exists():
        return False
    try:
        with file_lock(lock_path(folder)) as free:
            return not free
    except OSError:
        return False


def missing(name: str, folder: Path) -> str:
    """Say why the model is not in `folder`, for people."""
    progress = read(folder)
    if is_installing(folder):
        share = f", {100 * progress.done // progress.total} %" if progress and progress.total else ""
        return f"the model {name} is being installed{share}"
    if progress and progress.error:
        return f"the model {name} could not be installed: {progress.error}"
    return f"the model {name} is not installed"
