"""A piece of work done beside the caller's own: a query's vector is made while its words are looked up,
a new observation's while what is like it in words is read.

For arithmetic and for an endpoint's answer. What is done here must not ask the database: a thread's connection would
be another one, and stay open.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

AT_ONCE = 4
"""Pieces of work that a process does aside at a time. One more is done by its caller."""


class _Threads:
    """The threads of this process, made when they are first needed."""

    def __init__(self) -> None:
        self.free = threading.BoundedSemaphore(AT_ONCE)
        self.pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="recall-aside")


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_several = _processors() > 1
_threads = _Threads()


def begin(work: Callable[[], T]) -> Callable[[], T]:
    """Begin `work`. What is returned gives its result, or raises what it raised, once it is done.

    With one processor, or when AT_ONCE are at work, it is done when its result is asked for.
    """
    threads = _threads
    if not _several or not threads.free.acquire(blocking=False):
        return work
    try:
        begun = threads.pool.submit(work)
    except BaseException:  # the interpreter is about to end
        threads.free.release()
        return work
    begun.add_done_callback(lambda _: threads.free.release())
    return begun.result


def _anew() -> None:
    """A forked process has none of the threads, and would wait for them."""
    global _threads
    _threads = _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_anew)
