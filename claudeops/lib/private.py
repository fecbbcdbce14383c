"""Keep what is in the data folder from other users of the machine."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def keep_private(folder: Path) -> list[str]:
    """Take the rights of others from the files and folders directly in `folder`; return the names that keep them.

    A link is left as it is. By path: to open and close SQLite's file would end the locks that this process holds on it.
    """
    left = []
    try:
        entries = list(os.scandir(folder))
    except OSError:  # check claudeops.E001 says so
        return []
    for entry in entries:
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
            if mode & 0o077 and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                os.chmod(entry.path, stat.S_IMODE(mode) & 0o700)  # noqa: PTH101
        except FileNotFoundError:
            continue
        except OSError:
            left.append(entry.name)
    return sorted(left)
