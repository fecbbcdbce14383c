"""What was recalled is kept, counted once in a batch, and marked right or wrong."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from memories import tasks
from memories.lifecycle.lock import write_lock
from memories.models import Memory, MemoryTermsDue, Recalled
from memories.recall import Asker, Filters, log, recall
from tests.support.factories import MemoryFactory, SessionFactory
from tests.support.processes import wait_for

pytestmark = pytest.mark.django_db


def test_an_answer_is_recorded_with_who_asked():
    memory, session = MemoryFactory(observation="The tunnel drops"), SessionFactory()
    found = recall("tunnel", Filters(services=("jellyfin",)), asked_by=Asker("mcp", "agent:scout", session.pk))
    row = Recalled.objects.get(pk=found.recall_id)
    assert (row.query, row.surface, row.actor, row.session_id) == ("tunnel", "mcp", "agent:scout", session.pk)
    assert row.hits == [[memory.pk, round(found.hits[0].score, 4)]]
    assert row.filters == {"services": ["jellyfin"]}


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite has one writer")
def test_an_answer_does_not_wait_for_the_writer_and_its_record_follows():
    MemoryFactory(observation="The tunnel drops")
    writer = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    try:
        writer.execute("BEGIN IMMEDIATE")
        # Held until both answers are here: one that waited for it would never come.
        found = [recall(query, Filters(), asked_by=Asker("cli")) for query in ("tunnel", "drops")]
        assert [(len(one.hits), one.recall_id) for one in found] == [(1, None), (1, None)]
        assert not Recalled.objects.exists()
        writer.execute("COMMIT")
    finally:
        writer.close()
    wait_for(lambda: Recalled.objects.count() == 2)
    assert {row.query for row in Recalled.objects.all()} == {"tunnel", "drops"}
    wait_for(lambda: not any(one.name == "appended-rows" for one in threading.enumerate()))
    assert recall("tunnel", Filters(), asked_by=Asker("cli")).recall_id is not None


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="on SQLite no commit waits for the disk")
def test_a_record_alone_does_not_wait_for_the_disk():
    MemoryFactory(observation="The tunnel drops")
    with transaction.atomic():
        recall("tunnel", Filters(), asked_by=Asker("cli"))
        assert _waits_for_the_disk()  # what else this transaction writes is as safe as ever
    with CaptureQueriesContext(connection) as seen:
        recall("tunnel", Filters(), asked_by=Asker("cli"))
    assert [query for query in seen if "synchronous_commit = off" in (query["sql"] or "")]
    assert _waits_for_the_disk()
    assert Recalled.objects.count() == 2


def _waits_for_the_disk() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        return bool(cursor.fetchone()[0] == "on")


def test_nothing_is_recorded_for_nobody():
    MemoryFactory(observation="The tunnel drops")
    assert recall("tunnel", Filters()).recall_id is None
    assert not Recalled.objects.exists()


def test_a_read_does_not_write_the_memories_and_counting_does_it_once():
    memory, other = MemoryFactory(observation="The tunnel drops"), MemoryFactory(observation="Backups run")
    before = memory.updated_at
    for _ in range(3):
        recall("tunnel", Filters(), asked_by=Asker("cli", "operator"))
    memory.refresh_from_db()
    assert memory.recall_count == 0
    assert log.count() == 3
    assert log.count() == 0
    memory.refresh_from_db()
    other.refresh_from_db()
    assert (memory.recall_count, other.recall_count, other.last_recalled_at) == (3, 0, None)
    assert memory.last_recalled_at == Recalled.objects.latest("at").at
    assert memory.updated_at == before


def test_counting_takes_few_queries_however_many_records(django_assert_max_num_queries):
    for n in range(20):
        MemoryFactory(observation=f"The tunnel drops {n}")
    for _ in range(10):
        recall("tunnel", Filters(), limit=20, asked_by=Asker("cli"))
    with django_assert_max_num_queries(20):
        log.count()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer, so it has no deadlocks")
@pytest.mark.parametrize("locked", [False, True], ids=["raw SQL", "with the write lock"])
def test_counting_gives_way_to_another_writer_and_counts_later(locked):
    """Rows locked in another order: one of the two has to give up, and it is never the operator's action."""
    first, second = MemoryFactory(observation="The tunnel drops"), MemoryFactory(observation="The tunnel is slow")
    recall("tunnel", Filters(), asked_by=Asker("cli"))
    counted, errors = [], []

    def count() -> None:
        try:
            counted.append(log.count())
        except DatabaseError as error:
            errors.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=count)
    with transaction.atomic():
        with write_lock() if locked else nullcontext():
            Memory.objects.filter(pk=second.pk).update(confidence=0.5)
        thread.start()
        wait_for(lambda: _waiting_for_a_lock() or not thread.is_alive())
        Memory.objects.filter(pk=first.pk).update(confidence=0.5)
        thread.join(10)
        assert not thread.is_alive()
    assert (counted, errors) == ([0], [])
    assert log.count() == 1
    for memory in (first, second):
        memory.refresh_from_db()
        assert (memory.recall_count, memory.confidence) == (1, 0.5)


def _waiting_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return bool(cursor.fetchone()[0])


def test_an_older_record_does_not_set_the_time_back():
    noon = datetime(2026, 5, 1, tzinfo=UTC)
    memory = MemoryFactory(observation="The tunnel drops", last_recalled_at=noon)
    Recalled.objects.create(query="x", hits=[[memory.pk, 1.0]], surface="cli", at=noon - timedelta(days=1))
    log.count()
    memory.refresh_from_db()
    assert (memory.recall_count, memory.last_recalled_at) == (1, noon)


def test_a_query_with_what_no_database_stores_is_recorded_without_it():
    found = recall("tunnel\x00 \ud83d " + "x" * 100_000, Filters(), asked_by=Asker("api"))
    assert len(Recalled.objects.get(pk=found.recall_id).query) <= 2_000


def test_the_schedule_fills_the_index_and_counts():
    memory = MemoryFactory(observation="The tunnel drops")
    recall("tunnel", Filters(), asked_by=Asker("cli"))
    tasks.keep_recall()
    memory.refresh_from_db()
    assert memory.recall_count == 1
    assert not MemoryTermsDue.objects.exists()
