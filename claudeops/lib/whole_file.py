"""Write a file whole or not at all."""

from __future__ import annotations

import os
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
