"""Kill child processes when their parent dies (PR_SET_PDEATHSIG), also when it is killed by SIGKILL.

Linux only; elsewhere orphans have to be ended by hand. Never for the CLI of a session, which must outlive its worker.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

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
