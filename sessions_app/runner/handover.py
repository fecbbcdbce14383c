"""Flags by which a stopping worker tells its forked processes to hand over their sessions or to start no more.

Created before the worker forks, so that every process sees what the parent sets.
"""

from __future__ import annotations

import mmap


class Flag:
    """One byte of shared memory. `multiprocessing.Event` has a lock, which a killed process would hold for ever."""

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
    return DETACH.is_set()


def closing() -> bool:
    return CLOSING.is_set() or DETACH.is_set()
