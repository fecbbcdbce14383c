"""Keep what is in the data folder from other users of the machine."""

from __future__ import annotations

import logging
import os
import stat
from typing import Any

from django.conf import settings

log = logging.getLogger(__name__)


def keep_private(**signal: Any) -> None:
    """Take the rights of others from the files and folders directly in the data folder; links stay as they are.

    At each connection: SQLite has made its file by then, and the ones beside it get the rights of that. By path: to
    open and close its file would end the locks that this process holds on it.
    """
    try:
        for entry in os.scandir(settings.CLAUDEOPS_DATA_DIR):
            mode = entry.stat(follow_symlinks=False).st_mode
            if mode & 0o077 and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                os.chmod(entry.path, stat.S_IMODE(mode) & 0o700)  # noqa: PTH101
    except FileNotFoundError:
        pass  # the next connection looks again
    except OSError as error:
        log.warning("Other users may read what is in the data folder: %s", error)
