"""Start, find and end the process of a session.

It writes to files, in its own process session, and outlives its worker: a later follower may not be its parent.
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

SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
START_TOLERANCE = 0.1
"""Most seconds between two readings of one process's start time."""


class CannotStart(Exception):
    """The command could not be started; the text says why."""


@dataclass(slots=True)
class Process:
    """A started process. `child` is set when this process is its parent.

    `started_at` is when it started (seconds since the host's boot, which no clock that is set moves): with the pid it
    identifies the process.
    """

    pid: int
    started_at: float
    child: subprocess.Popen[bytes] | None = None

    @property
    def age(self) -> float:
        """Seconds since the start, also those that the host slept."""
        return max(0.0, time.clock_gettime(SINCE_BOOT) - self.started_at)

    def poll(self) -> tuple[bool, int | None]:
        """Return (alive, exit code). Only the parent knows the code; that of a signal is negative."""
        if self.child is not None:
            code = self.child.poll()
            return code is None, code
        return find(self.pid, self.started_at) is not None, None

    def wait(self, seconds: float) -> tuple[bool, int | None]:
        """Wait up to `seconds` for the end, then return what `poll` returns."""
        if self.child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(seconds)
        else:
            os_process = find(self.pid, self.started_at)
            if os_process is not None:
                with contextlib.suppress(psutil.TimeoutExpired, psutil.NoSuchProcess):
                    os_process.wait(seconds)
        return self.poll()


def start(
    argv: Sequence[str], *, stdin: Path, stdout: Path, stderr: Path, cwd: Path, env: Mapping[str, str]
) -> Process:
    """Start `argv` in a process session of its own, with its output appended to files. Raises CannotStart.

    Only their owner may read the files: the output holds whatever the process prints.
    """
    try:
        with (
            stdin.open("rb") as source,
            open(stdout, "ab", opener=_private) as out,
            open(stderr, "ab", opener=_private) as err,
        ):
            child = subprocess.Popen(
                list(argv), stdin=source, stdout=out, stderr=err, cwd=cwd, env=dict(env), start_new_session=True
            )
    except FileNotFoundError as error:
        missing = error.filename or argv[0]
        raise CannotStart(f"{missing} was not found.") from error
    except (OSError, ValueError) as error:
        raise CannotStart(f"{argv[0]} could not be started: {error}.") from error
    try:
        started_at = _started_at(psutil.Process(child.pid))
    except psutil.NoSuchProcess:  # ended and reaped already
        started_at = time.clock_gettime(SINCE_BOOT)
    return Process(child.pid, started_at, child)


def _started_at(process: psutil.Process) -> float:
    return float(process.create_time() - psutil.boot_time())


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def find(pid: int, started_at: float) -> psutil.Process | None:
    """Find the process with this pid and start time; None when it has ended (a zombie has)."""
    try:
        process = psutil.Process(pid)
        if abs(_started_at(process) - started_at) > START_TOLERANCE:
            return None
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def find_by_session_id(cli_session_id: str) -> Process | None:
    """Find the process started with this session id, if the worker died before it stored the pid; None without one."""
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        arguments = process.info["cmdline"] or []
        if cli_session_id in arguments and process.info["status"] != psutil.STATUS_ZOMBIE:
            with contextlib.suppress(psutil.NoSuchProcess):
                return Process(process.pid, _started_at(psutil.Process(process.pid)))
    return None


def terminate(process: Process, grace: float) -> int | None:
    """End the process and all that it started; return its exit code if known.

    SIGTERM first: the CLI then ends its own children, whose process sessions a signal to the group does not reach.
    After `grace` seconds, SIGKILL for the group and the descendants.
    """
    descendants = _descendants(process)
    _signal_group(process, signal.SIGTERM)
    alive, code = process.wait(grace)
    if alive:
        descendants |= _descendants(process)
        _signal_group(process, signal.SIGKILL)
        alive, code = process.wait(5)
    for pid, started_at in descendants:
        if find(pid, started_at) is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    return code


def _descendants(process: Process) -> set[tuple[int, float]]:
    os_process = find(process.pid, process.started_at)
    if os_process is None:
        return set()
    descendants = set()
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        for child in os_process.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                descendants.add((child.pid, _started_at(child)))
    return descendants


def _signal_group(process: Process, number: signal.Signals) -> None:
    # The pid may belong to another process by now.
    if process.child is None and find(process.pid, process.started_at) is None:
        return
    if process.child is not None and process.child.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
