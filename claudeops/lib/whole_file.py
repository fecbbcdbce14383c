"""Write a file whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO


@contextmanager
def whole_file(path: Path) -> Iterator[IO[str]]:
    """Open `path` for text in UTF-8; it has the new content when the block ends, and the old one after an error.

    The file is readable by its user only. Raises OSError.
    """
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name[:100]}.", delete=False) as out:
        try:
            yield out
            out.flush()
            os.fsync(out.fileno())
            Path(out.name).replace(path)
        except BaseException:
            Path(out.name).unlink(missing_ok=True)
            raise


def replace_file(path: Path, data: bytes) -> None:
    """Give `path` the bytes `data`, whole or not at all, with its mode if it exists. Raises OSError."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name[:100]}.", delete=False) as out:
        try:
            out.write(data)
            out.flush()
            os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
            Path(out.name).replace(path)
        except BaseException:
            Path(out.name).unlink(missing_ok=True)
            raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _umask() -> int:
    """Return the umask of this process, as Linux says it: setting it to read it would race with other threads."""
    rows = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return int(next((row for row in rows if row.startswith("Umask:")), "Umask: 0022").split()[1], 8)
