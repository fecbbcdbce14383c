"""Storing the same fact at once, from several threads and processes: one row, confirmed once a session."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier

import pytest
from django.db import connection

from memories.lifecycle.sweep import sweep
from memories.models import Change, Memory, MemoryChange
from memories.store import Provenance, Statement, remember
from tests.memories.at_once import remember_at_once
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)
FACT = "Takes 60s to start after restart"


def run_at_once(tmp_path, sessions):
    """Return the result of each process for each of 20 services, all started together."""
    candidate = 'Statement("timing", "Takes 60s to start after restart", f"service-{number}")'
    return remember_at_once(tmp_path, [(session.pk, candidate) for session in sessions], 20)


def test_two_processes_that_store_the_same_facts_at_once_make_one_row_each(tmp_path):
    outcomes = run_at_once(tmp_path, [SessionFactory(), SessionFactory()])
    assert [sorted(pair) for pair in zip(*outcomes, strict=True)] == [["created", "reinforced"]] * 20
    assert sorted(Memory.objects.values_list("service", flat=True)) == sorted(f"service-{n}" for n in range(20))
    assert set(Memory.objects.values_list("confidence", flat=True)) == {0.8}
    assert MemoryChange.objects.filter(kind=Change.CREATED).count() == 20
    assert MemoryChange.objects.filter(kind=Change.REINFORCED).count() == 20


def test_two_processes_that_ingest_the_same_session_at_once_count_it_once(tmp_path):
    session = SessionFactory()
    outcomes = run_at_once(tmp_path, [session, session])
    assert [sorted(pair) for pair in zip(*outcomes, strict=True)] == [["created", "duplicate"]] * 20
    assert set(Memory.objects.values_list("confidence", flat=True)) == {0.7}
    assert MemoryChange.objects.count() == 20


def test_threads_that_confirm_and_sweep_the_same_memories_at_once_lose_nothing():
    sessions = SessionFactory.create_batch(6)
    old = datetime(2026, 4, 1, tzinfo=UTC)
    memories = [MemoryFactory(service=f"service-{n}", observation=FACT, updated_at=old) for n in range(5)]
    barrier = Barrier(len(sessions) + 1)

    def confirm(session, order):
        barrier.wait()
        try:
            for memory in memories[::order]:
                provenance = Provenance("run", "agent:watcher", session.pk)
                remember(Statement("timing", FACT, memory.service), provenance, at=NOW)
        finally:
            connection.close()

    def age():
        barrier.wait()
        try:
            return [sweep(NOW) for _ in range(5)]
        finally:
            connection.close()

    with ThreadPoolExecutor(len(sessions) + 1) as pool:
        work = [pool.submit(confirm, session, 1 if n % 2 else -1) for n, session in enumerate(sessions)]
        work.append(pool.submit(age))
        for done in work:
            done.result(timeout=60)

    assert Memory.objects.count() == 5
    for memory in Memory.objects.all():
        changes = MemoryChange.objects.filter(memory=memory).order_by("id")
        assert changes.filter(kind=Change.REINFORCED).count() == 6
        confidence = 0.7
        for change in changes:  # each began where the one before it ended
            if "confidence" in change.before:
                assert change.before["confidence"] == confidence
                confidence = change.after["confidence"]
        assert confidence == memory.confidence
        assert memory.updated_at == NOW
