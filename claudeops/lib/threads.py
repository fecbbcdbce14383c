"""Run a function in a helper thread. Fork-safe. The function must not use the database: it would open a connection."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

THREADS = 4


def _new_pool() -> None:
    global _pool
    _pool = ThreadPoolExecutor(THREADS, thread_name_prefix="helper")


_pool: ThreadPoolExecutor
_new_pool()
os.register_at_fork(after_in_child=_new_pool)  # a forked process has none of its parent's threads


def start(function: Callable[..., T], *args: Any) -> Callable[[], T]:
    """Start `function(*args)`; the returned function waits for its result, or raises what it raised."""
    try:
        return _pool.submit(function, *args).result
    except RuntimeError:  # the interpreter is shutting down and starts no threads
        return lambda: function(*args)
