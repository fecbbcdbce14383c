"""Serialise the writers of memories, on both databases.

Two processes must not store the same fact at once, since what is stored depends on what is known. One lock also
prevents deadlocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from claudeops.lib.locks import one_at_a_time

LOCK_KEY = 0x636C_6D65_6D6F  # any fixed number; this one spells "clmemo"


@contextmanager
def write_lock() -> Iterator[None]:
    """Hold back other writers until the surrounding transaction ends; on SQLite its BEGIN IMMEDIATE is the lock."""
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("write_lock() needs a transaction around it.")
    one_at_a_time(LOCK_KEY)
    yield


@contextmanager
def writing() -> Iterator[None]:
    """Open a transaction with the write lock; inside another one a savepoint, so that a refusal spoils nothing."""
    with transaction.atomic(), write_lock():
        yield
