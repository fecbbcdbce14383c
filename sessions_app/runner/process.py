"""The process of a session: started in a process session of its own, found again by others, ended for sure.

Knows nothing of the database. The process writes to files and outlives the worker that started it, so
whoever follows it later may not be its parent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

START_TOLERANCE = 0.1
"""Seconds by which two readings of one process's start time may differ."""


class CannotStart(Exception):
    """The command could not be started; the text says why."""


@dataclass(slots=True)
class Process:
    """A started process, its parent's handle included when this is its parent.

    `started_at` is the kernel's start time (seconds since the epoch): together with the pid it names the
    process for good, also after the pid was given to another.
    """

    pid: int
    started_at: float
    child: subprocess.Popen[bytes] | None = None

    def poll(self) -> tuple[bool, int | None]:
        """(alive, exit code). The code is only known to the parent; a signal's is negative."""
        if self.child is not None:
            code = self.child.poll()
            return code is None, code
        return find(self.pid, self.started_at) is not None, None

    def wait(self, seconds: float) -> tuple[bool, int | None]:
        """Wait up to `seconds` for the end; then as `poll`."""
        if self.child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(seconds)
        else:
            found = find(self.pid, self.started_at)
            if found is not None:
                with contextlib.suppress(psutil.TimeoutExpired, psutil.NoSuchProcess):
                    found.wait(seconds)
        return self.poll()


def start(
    argv: Sequence[str], *, stdin: Path, stdout: Path, stderr: Path, cwd: Path, env: Mapping[str, str]
) -> Process:
    """Start `argv` in its own process session, its output appended to files. Raises CannotStart."""
    try:
        with stdin.open("rb") as source, stdout.open("ab") as out, stderr.open("ab") as err:
            child = subprocess.Popen(
                list(argv), stdin=source, stdout=out, stderr=err, cwd=cwd, env=dict(env), start_new_session=True
            )
    except FileNotFoundError as error:
        missing = error.filename or argv[0]
        raise CannotStart(f"{missing} was not found.") from error
    except (OSError, ValueError) as error:
        raise CannotStart(f"{argv[0]} could not be started: {error}.") from error
    try:
        started_at = psutil.Process(child.pid).create_time()
    except psutil.NoSuchProcess:  # ended and reaped already
        started_at = time.time()
    return Process(child.pid, started_at, child)


def find(pid: int, started_at: float) -> psutil.Process | None:
    """The living process of this pid and start time; None when it ended (a zombie has ended)."""
    try:
        process = psutil.Process(pid)
        if abs(process.create_time() - started_at) > START_TOLERANCE:
            return None
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def find_by_session_id(cli_session_id: str) -> Process | None:
    """A living process started with this session id: one whose worker died before it wrote the pid down."""
    for process in psutil.process_iter(["pid", "cmdline", "create_time", "status"]):
        arguments = process.info["cmdline"] or []
        if cli_session_id in arguments and process.info["status"] != psutil.STATUS_ZOMBIE:
            return Process(process.info["pid"], process.info["create_time"])
    return None


def terminate(process: Process, grace: float) -> int | None:
    """End the process and everything it started; its exit code where that is known.

    SIGTERM first: the CLI then ends its own tree (its Bash children live in process sessions of their own,
    which a signal to the group does not reach). After `grace` seconds SIGKILL, to what is left of both.
    """
    family = _descendants(process)
    _signal_group(process, signal.SIGTERM)
    alive, code = process.wait(grace)
    if alive:
        family |= _descendants(process)
        _signal_group(process, signal.SIGKILL)
        alive, code = process.wait(5)
    for pid, started_at in family:
        if find(pid, started_at) is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    return code


def _descendants(process: Process) -> set[tuple[int, float]]:
    found = find(process.pid, process.started_at)
    if found is None:
        return set()
    family = set()
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        for child in found.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                family.add((child.pid, child.create_time()))
    return family


def _signal_group(process: Process, number: signal.Signals) -> None:
    # The pid may have been given to another by now: signal only what is still the same process.
    if process.child is None and find(process.pid, process.started_at) is None:
        return
    if process.child is not None and process.child.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
