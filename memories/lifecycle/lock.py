"""One writer of memories at a time, on both databases.

What is stored depends on what is known: two processes that store the same fact at once must not both find
nothing. It also gives every writer the same order of locks, so that they cannot deadlock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

LOCK_KEY = 0x636C_6D65_6D6F  # any fixed number; this one spells "clmemo"


@contextmanager
def write_lock() -> Iterator[None]:
    """Holds back other writers of memories until the transaction around it ends.

    Must be used inside `transaction.atomic()`. On SQLite the transaction itself is the lock: it begins as
    IMMEDIATE (settings), and there can be only one.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("write_lock() needs a transaction around it.")
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])
    yield


@contextmanager
def writing() -> Iterator[None]:
    """A transaction with the write lock; inside another one a savepoint, so that a refusal spoils nothing."""
    with transaction.atomic(), write_lock():
        yield
