"""Real processes on the database of the test: for tests with `django_db(transaction=True)`, which commit."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from claudeops.env import BASE_DIR
from tests.support.processes import environment

PATIENCE = 60.0
"""Seconds until a test gives up waiting: the machine may be busy, a right answer comes much sooner."""


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait until `condition()` is true; fails with `what` when it does not become so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:g} s: {what}"
        time.sleep(0.05)


class Started:
    """A started `manage.py` command and all it starts, in a process group of its own."""

    def __init__(self, arguments: list[str], log: Path, env: dict[str, str]) -> None:
        self.log = log
        with log.open("wb") as file:
            self.popen = subprocess.Popen(
                [sys.executable, str(BASE_DIR / "manage.py"), *arguments],
                cwd=BASE_DIR,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self.popen.pid
        self._seen: dict[int, psutil.Process] = {}

    def output(self) -> str:
        return self.log.read_text()

    def family(self) -> list[psutil.Process]:
        """Every process of claudeops that this one started, so far and still alive."""
        try:
            for child in psutil.Process(self.pid).children(recursive=True):
                if "runworker" in " ".join(child.cmdline()):
                    self._seen[child.pid] = child
        except psutil.NoSuchProcess:
            pass
        return [process for process in self._seen.values() if _alive(process)]

    def wait(self, seconds: float = PATIENCE) -> int:
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end in {seconds:g} s:\n{self.output()}") from None

    def end(self) -> None:
        left = [process for process in (*self.family(),) if _alive(process)]
        if self.popen.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.popen.wait()
        for process in left:
            if _alive(process):
                process.kill()


@contextmanager
def started(*arguments: str, log: Path, **more: str) -> Iterator[Started]:
    """A running `manage.py` with `arguments`; nothing of it is left afterwards."""
    process = Started(list(arguments), log, environment({"PYTHONUNBUFFERED": "1", **more}))
    try:
        yield process
    finally:
        process.family()
        process.end()


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def alive(pid: int) -> bool:
    try:
        return _alive(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def slow_cli(folder: Path) -> Path:
    """A CLI that says hello in stream-json, and then works until it is told to stop."""
    script = folder / "slow-claude"
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        "sys.stdin.read()\n"
        "session = sys.argv[sys.argv.index('--session-id') + 1]\n"
        "print(json.dumps({'type': 'system', 'subtype': 'init', 'session_id': session}), flush=True)\n"
        "print(json.dumps({'type': 'assistant', 'session_id': session, 'message': {'id': 'm1', 'model': 'x',"
        " 'content': [{'type': 'text', 'text': '[EVENT:info:caddy] at work'}]}}), flush=True)\n"
        "for _ in range(6000):\n"
        "    time.sleep(0.1)\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script
