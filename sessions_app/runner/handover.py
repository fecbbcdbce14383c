"""How a worker that stops asks its tasks to let go: two flags its forked processes share.

Made before the cluster forks, so every worker process sees what the parent sets. Knows no session and no queue.
"""

from __future__ import annotations

import mmap


class Flag:
    """One byte of shared memory.

    Not a `multiprocessing.Event`: that one is read under a lock, and a worker killed by SIGKILL while it
    holds the lock would leave every other one waiting for ever. One byte needs no lock.
    """

    def __init__(self) -> None:
        self._byte = mmap.mmap(-1, 1)

    def set(self) -> None:
        self._byte[0] = 1

    def clear(self) -> None:
        self._byte[0] = 0

    def is_set(self) -> bool:
        return self._byte[0] == 1


DETACH = Flag()
"""The task that follows a session lets go and returns at once; the CLI runs on, the reaper follows it again."""

CLOSING = Flag()
"""No further session is started here; those that run are followed to their end."""


def requested() -> bool:
    """Whether whoever follows a session should let go of it now."""
    return DETACH.is_set()


def closing() -> bool:
    """Whether this worker takes up no further session."""
    return CLOSING.is_set() or DETACH.is_set()
