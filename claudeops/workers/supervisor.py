"""Start several processes together, restart those that die, stop them in order. `manage.py up` becomes this program.

When it dies, the kernel kills its children (Linux only; elsewhere orphans have to be ended by hand), but never the
CLI of a session, which must outlive its worker. Each child has its own process session: Ctrl-C reaches only the
supervisor. Importing Django would take 50 MB all day.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

PR_SET_PDEATHSIG = 1

# Loaded before any fork: nothing may be loaded between fork and exec.
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(number: signal.Signals, parent: int) -> None:
    """Have the kernel send this process the signal `number` when `parent` (a pid) dies; at once when it is dead."""
    if _libc is None:
        return
    _libc.prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def signal_on_parent_death(number: signal.Signals) -> Callable[[], None]:
    """Return a `preexec_fn` for a child of this process. Call it only from a process without other threads."""
    parent = os.getpid()
    return lambda: die_with_parent(number, parent)


LOOK = 0.1
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Backoff:
    """The waits before a dead child is started again (seconds); each death in a row doubles the wait.

    A child that once lived for `healthy` seconds is always restarted; another is given up after `tries` starts.
    """

    first: float = 1.0
    longest: float = 30.0
    healthy: float = 10.0
    tries: int = 4

    def wait(self, deaths: int) -> float:
        """Return the seconds to wait after `deaths` (1 or more) in a row."""
        return min(self.longest, self.first * 2.0 ** min(deaths - 1, 30))


@dataclass(frozen=True, slots=True)
class Child:
    """A process to keep running. `env` is added to this process's own; it may take `stop_within` seconds to end."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    stop_within: float = 90.0


@dataclass(slots=True)
class _Running:
    """Times are on the monotonic clock; `start_at` is the next start."""

    child: Child
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    start_at: float = 0.0
    deaths: int = 0
    was_healthy: bool = False


class Supervisor:
    """Run children until a signal asks it to stop, or one of them is given up. Main thread only.

    `say` gets a line of text for each event, and the text `stopping` when the end begins.
    """

    def __init__(
        self,
        children: Sequence[Child],
        *,
        say: Callable[[str], None],
        backoff: Backoff | None = None,
        stopping: str = "",
    ) -> None:
        self._running = [_Running(child) for child in children]
        self._say = say
        self._backoff = backoff or Backoff()
        self._stopping = stopping
        self._asked = 0

    def run(self, *, while_running: Callable[[], None] | None = None) -> int:
        """Run until a signal (0) or a child that is given up (1); call `while_running` about ten times a second."""
        before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        code = 0
        try:
            while not self._asked and code == 0:
                for running in self._running:
                    if not self._look_after(running):
                        code = 1
                        break
                if while_running is not None and not self._asked and code == 0:
                    while_running()
                time.sleep(LOOK)
        finally:
            if self._stopping:
                self._say(self._stopping)
            self._stop_all()
            for number, handler in before.items():
                signal.signal(number, handler)
        return code

    def ask_to_stop(self) -> None:
        self._asked += 1

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.ask_to_stop()

    def _look_after(self, running: _Running) -> bool:
        """Return False when this child is given up."""
        now = time.monotonic()
        if running.process is None:
            return now < running.start_at or self._start(running, now)
        if now - running.started >= self._backoff.healthy:
            running.deaths, running.was_healthy = 0, True
        code = running.process.poll()
        if code is None:
            return True
        running.process = None
        running.deaths += 1
        name = running.child.name
        if not running.was_healthy and running.deaths >= self._backoff.tries:
            self._say(f"{name} ended {running.deaths} times in a row ({_how(code)}) and is given up; see above.")
            return False
        wait = self._backoff.wait(running.deaths)
        running.start_at = now + wait
        self._say(f"{name} ended ({_how(code)}); it restarts in {wait:g} s.")
        return True

    def _start(self, running: _Running, now: float) -> bool:
        child = running.child
        running.started = now
        try:
            running.process = subprocess.Popen(
                list(child.argv),
                env={**os.environ, **child.env},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                # When this process is killed, the kernel asks its children to stop.
                preexec_fn=signal_on_parent_death(signal.SIGTERM),
            )
        except OSError as error:
            self._say(f"{child.name} cannot be started: {error}.")
            return False
        return True

    def _stop_all(self) -> None:
        """Send SIGTERM to each, wait, then SIGKILL the groups of the rest. A second signal ends the wait."""
        remaining = [running for running in self._running if running.process is not None]
        requests = self._asked
        for running in remaining:
            _signal(running.process, signal.SIGTERM)
        begun = time.monotonic()
        while remaining:
            if self._asked > requests:
                requests = self._asked
                for running in remaining:
                    _signal(running.process, signal.SIGTERM)
            for running in list(remaining):
                process = running.process
                if process is None or process.poll() is not None:
                    remaining.remove(running)
                elif time.monotonic() - begun > running.child.stop_within:
                    self._say(f"{running.child.name} does not stop and is killed.")
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            time.sleep(LOOK)


def _signal(process: subprocess.Popen[bytes] | None, number: signal.Signals) -> None:
    if process is not None and process.poll() is None:
        process.send_signal(number)


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


# The program that `manage.py up` becomes.


@dataclass(frozen=True, slots=True)
class Plan:
    """The processes of `up`, the address of its web server, and the text to print once that answers."""

    children: Sequence[Child]
    host: str
    port: int
    welcome: str


def main(descriptor: int) -> int:
    with os.fdopen(descriptor) as file:
        data = json.load(file)
    plan = Plan(**{**data, "children": [Child(**child) for child in data["children"]]})
    welcomed = False

    def say_welcome() -> None:
        nonlocal welcomed
        if not welcomed and _answers(plan.host, plan.port):
            welcomed = True
            _say("\n" + plan.welcome)

    stopping = "\nStopping: running sessions are stopped first ..."
    code = Supervisor(plan.children, say=_say, stopping=stopping).run(while_running=say_welcome)
    _say("All stopped." if code == 0 else "All stopped, because one of them could not be kept running.")
    return code


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            return connection.recv(5) == b"HTTP/"
    except OSError:
        return False
