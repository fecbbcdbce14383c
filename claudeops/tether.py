"""Children that do not outlive the process they work for, also when that one is killed by SIGKILL.

Linux only (`prctl(PR_SET_PDEATHSIG)`); elsewhere nothing happens, and processes orphaned by a SIGKILL have to
be ended by hand. Never for the CLI of a session: that one must outlive its worker.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing import util

PR_SET_PDEATHSIG = 1

# Loaded before any fork: between fork and exec nothing may be loaded.
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(number: signal.Signals, parent: int) -> None:
    """Have this process get the signal `number` when `parent` (its pid) is gone; at once when it is gone already."""
    if _libc is None:
        return
    _libc.prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def tethered(number: signal.Signals) -> Callable[[], None]:
    """A `preexec_fn` for a child started by this process. Only from a process without other threads."""
    parent = os.getpid()
    return lambda: die_with_parent(number, parent)


class Pool:
    """The processes that multiprocessing forks from here on, and those they fork."""

    def __init__(self) -> None:
        # Runs in each child that multiprocessing starts and in no other: a CLI started by a worker is not one.
        util.register_after_fork(self, Pool._in_child)
        self._first = os.getpid()

    def _in_child(self) -> None:
        parent = multiprocessing.parent_process()
        if parent is None or parent.pid is None:
            return
        if parent.pid == self._first:
            # A signal to the worker's process group is for the worker alone: it stops these in their order.
            os.setpgid(0, 0)
        die_with_parent(signal.SIGKILL, parent.pid)
