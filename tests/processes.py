"""Commands of claudeops as real processes on the suite's own database."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from django.conf import settings
from django.db import connection

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent


def database_url() -> str:
    """The URL of the database the test runs on."""
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{found['NAME']}"
    credentials = quote(found["USER"], safe="") + (f":{quote(found['PASSWORD'], safe='')}" if found["PASSWORD"] else "")
    port = f":{found['PORT']}" if found["PORT"] else ""
    return f"postgres://{credentials}@{quote(found['HOST'], safe='')}{port}/{found['NAME']}"


def environment(**extra: str) -> dict[str, str]:
    """The environment of a claudeops process that shares the test's database and data folder."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "claudeops.settings",
        "DATABASE_URL": database_url(),
        "CLAUDEOPS_DATA_DIR": str(settings.CLAUDEOPS_DATA_DIR),
        **extra,
    }


def manage(*arguments: str, **extra: str) -> subprocess.Popen[str]:
    """Start `manage.py` with these arguments; in a process group of its own, as a terminal would."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        cwd=ROOT,
        env=environment(**extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition: Callable[[], T], seconds: float = 30) -> T:
    """The first true value of `condition`; fails when it does not come within `seconds`."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.05)
    return value
