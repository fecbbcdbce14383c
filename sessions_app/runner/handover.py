"""Flags by which a stopping worker tells its forked processes to hand over their sessions or to start no more.

Created before the cluster forks, so every process sees what the parent sets. Knows no session and no queue.
"""

from __future__ import annotations

import mmap


class Flag:
    """One byte of shared memory.

    `multiprocessing.Event` is read under a lock: a process killed by SIGKILL while it holds the lock would block
    all others for ever. One byte needs no lock.
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
"""Tasks that follow a session return at once; the CLI goes on, and a reaper finds a new follower."""

CLOSING = Flag()
"""No further session is started; running ones are followed to their end."""


def requested() -> bool:
    """Whether the follower of a session must return now."""
    return DETACH.is_set()


def closing() -> bool:
    """Whether this worker must start no further session."""
    return CLOSING.is_set() or DETACH.is_set()
