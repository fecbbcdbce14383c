"""claudeops as other processes on the suite's own database: for tests where a real process is the point."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

from claudeops.env import BASE_DIR

T = TypeVar("T")


def database_url() -> str:
    """The URL of the database the test runs on."""
    name = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment, with what the test has set in Django's settings for a session's run."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))},
        "DJANGO_SETTINGS_MODULE": "claudeops.settings",
        "DATABASE_URL": database_url(),
        "CLAUDEOPS_DATA_DIR": str(settings.CLAUDEOPS_DATA_DIR),
        "CLAUDEOPS_HOST": settings.CLAUDEOPS_HOST,
        "CLAUDEOPS_CLAUDE_BIN": settings.CLAUDEOPS_CLAUDE_BIN,
        "CLAUDEOPS_CLAUDE_HOME": settings.CLAUDEOPS_CLAUDE_HOME,
        "CLAUDEOPS_WORK_DIR": str(settings.CLAUDEOPS_WORK_DIR),
        **(more or {}),
    }


def start(argv: list[str], more: Mapping[str, str] | None = None, *, is_asked: bool = False) -> subprocess.Popen[str]:
    """Start Python with `argv` in the checkout; its input, when `is_asked`, and its output are pipes."""
    return subprocess.Popen(
        [sys.executable, *argv],
        cwd=BASE_DIR,
        env=environment(more),
        stdin=subprocess.PIPE if is_asked else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def manage(*arguments: str, more: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start `manage.py` with these arguments."""
    return start(["manage.py", *arguments], more)


def call(code: str, more: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a Python that has Django set up and then runs `code`."""
    return start(["-c", f"import django; django.setup()\n{code}"], more)


def wait_for(condition: Callable[[], T], seconds: float = 30) -> T:
    """The first true value of `condition`; fails when it does not come within `seconds`."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.05)
    return value


@cache
def _forks() -> subprocess.Popen[str]:
    """The process of tests/support/forks.py, for as long as this one lives."""
    return start(["-m", "tests.support.forks"], is_asked=True)


def killed(
    work: str, event: str, module: str, function: str, *, nth: int = 1, more: Mapping[str, str] | None = None
) -> None:
    """Run `work` in a process that is killed where a function begins ("call") or ends ("return") for the nth time."""
    forks = _forks()
    assert forks.stdin and forks.stdout
    with tempfile.NamedTemporaryFile("r") as output:
        place = {"event": event, "module": module, "function": function, "nth": nth}
        request = {"work": work, "environment": environment(more), "output": output.name, **place}
        print(json.dumps(request), file=forks.stdin, flush=True)
        status = int(forks.stdout.readline())
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, output.read()
