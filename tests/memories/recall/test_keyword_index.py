"""The full-text index stays in step with the memories, whoever writes them and by whatever way."""

from __future__ import annotations

import sqlite3

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from memories.capture.statement import Provenance, Statement
from memories.checks import check_recall_index
from memories.lifecycle import bulk, merge, verbs
from memories.models import Memory, MemoryTerms, MemoryTermsDue
from memories.recall import Filters, keyword_index, recall
from memories.store import remember
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db
INDEX_ANEW = next(one for (_, name), one in MigrationLoader(None).disk_migrations.items() if name.endswith("_matching"))


@pytest.fixture(params=["indexed", "not indexed yet"])
def settle(request):
    """What is written is found at once: whether the index was filled meanwhile or not."""

    def run() -> None:
        if request.param == "indexed":
            keyword_index.catch_up()
            assert not MemoryTermsDue.objects.exists()

    return run


def found(query: str) -> list[int]:
    return [hit.memory_id for hit in recall(query, Filters()).hits]


def test_a_memory_is_found_when_it_was_created(settle):
    said = remember(Statement("timing", "The tunnel wg0 needs a minute", "vpn"), Provenance("human", "operator"))
    settle()
    assert found("wg0 tunnel") == [said.memory_id]


def test_a_text_without_blanks_is_found_by_its_parts(settle):
    said = {
        text: MemoryFactory(observation=text, service=None).pk
        for text in (
            "每天的备份在凌晨失败了",
            "网关的证书每年更新",
            "バックアップは毎晩二時に動きます",
            "서버를 재시작하면 캐시가 비워집니다",
            "ห้ามรีสตาร์ทเกตเวย์ระหว่างสำรองข้อมูล",
        )
    }
    settle()
    for query, text in (
        ("备份", "每天的备份在凌晨失败了"),
        ("备份失败", "每天的备份在凌晨失败了"),
        ("证书什么时候更新?", "网关的证书每年更新"),
        ("バックアップ", "バックアップは毎晩二時に動きます"),
        ("毎晩", "バックアップは毎晩二時に動きます"),
        ("서버", "서버를 재시작하면 캐시가 비워집니다"),
        ("เกตเวย์", "ห้ามรีสตาร์ทเกตเวย์ระหว่างสำรองข้อมูล"),
    ):
        assert found(query)[:1] == [said[text]], query
    assert found("打印机") == []


def test_an_index_of_an_earlier_version_is_made_anew():
    row = MemoryFactory(observation="每天的备份在凌晨失败了", service=None)
    keyword_index.catch_up()
    MemoryTerms.objects.filter(memory_id=row.pk).update(terms="_6bcf__5929__7684__5907__4efd_", length=1)
    assert found("备份") == []
    with connection.cursor() as cursor:
        cursor.execute(INDEX_ANEW.operations[0].sql)
    keyword_index.catch_up()
    assert found("备份") == [row.pk]


def test_an_edited_memory_is_found_by_its_new_words_alone(settle):
    memory = MemoryFactory(observation="The tunnel drops at night")
    keyword_index.catch_up()
    verbs.edit(memory, by="operator", observation="The printer jams at noon")
    settle()
    assert found("printer") == [memory.pk]
    assert found("tunnel") == []


def test_a_merged_memory_is_no_longer_found_and_its_target_is(settle):
    target, other = MemoryFactory(observation="Restart takes 90s"), MemoryFactory(observation="Restarts are slow")
    keyword_index.catch_up()
    merge.merge(target, [other], by="operator", observation="A restart is slow: 90s")
    settle()
    assert found("slow") == [target.pk]


def test_a_deleted_memory_leaves_nothing_behind(settle):
    memory = MemoryFactory(observation="The tunnel drops at night")
    settle()
    merge.delete(memory, by="operator")
    settle()
    assert found("tunnel") == []
    assert not MemoryTerms.objects.exists()
    assert not MemoryTermsDue.objects.exists()


def test_memories_deleted_in_bulk_leave_nothing_behind(settle):
    for _ in range(3):
        MemoryFactory(observation="The tunnel drops")
    settle()
    bulk.BULK_ACTIONS["delete"].run(Memory.objects.all(), by="operator")
    assert found("tunnel") == []
    assert not MemoryTerms.objects.exists()


def test_memories_created_in_bulk_are_found(settle):
    rows = Memory.objects.bulk_create([Memory(category="timing", observation=f"tunnel {n}") for n in range(3)])
    settle()
    assert set(found("tunnel")) == {row.pk for row in rows}


def test_raw_sql_is_noticed(settle):
    memory = MemoryFactory(observation="The tunnel drops at night")
    keyword_index.catch_up()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memories SET observation = %s WHERE id = %s", ["The printer jams", memory.pk])
    settle()
    assert (found("printer"), found("tunnel")) == ([memory.pk], [])


@pytest.mark.django_db(transaction=True)
def test_raw_sql_of_another_connection_is_noticed(settle):
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has no writer past its own server; the test above holds raw SQL")
    memory = MemoryFactory(observation="The tunnel drops at night")
    keyword_index.catch_up()
    with sqlite3.connect(connection.settings_dict["NAME"]) as other:
        other.execute("UPDATE memories SET observation = 'The printer jams' WHERE id = ?", [memory.pk])
        other.execute("DELETE FROM memory_changes")
    other.close()
    settle()
    assert (found("printer"), found("tunnel")) == ([memory.pk], [])


@pytest.mark.parametrize("odd", ["/etc/restic/.pass", "//", "a/.b/..", "'s", "-x- --", "😀", "\u0301"])
def test_odd_signs_hold_up_no_other_text_of_their_batch(odd):
    """One text that the database refused would keep the whole batch from the index for good."""
    memory = MemoryFactory(observation=f"The password file is {odd} here")
    other = MemoryFactory(observation="The tunnel drops at night")
    assert keyword_index.catch_up() == 2
    assert (found("password"), found("tunnel")) == ([memory.pk], [other.pk])


def test_a_change_of_confidence_alone_does_not_index_anew():
    memory = MemoryFactory()
    keyword_index.catch_up()
    verbs.set_confidence(memory, 0.9, by="operator")
    assert not MemoryTermsDue.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_migration_that_rebuilds_the_table_leaves_the_index_whole():
    memory = MemoryFactory(observation="The tunnel drops at night")
    keyword_index.catch_up()
    with connection.schema_editor() as editor:
        if connection.vendor == "sqlite":
            editor._remake_table(Memory)
        else:
            for name in keyword_index.POSTGRESQL_TRIGGERS:
                editor.execute(f"DROP TRIGGER {name} ON memories")
    assert keyword_index.missing()
    assert [message.id for message in check_recall_index(None, databases=["default"])] == ["memories.W003"]
    Memory.objects.filter(pk=memory.pk).update(observation="The printer jams at noon")  # nothing notices this
    call_command("migrate", verbosity=0)
    assert keyword_index.missing() == []
    assert check_recall_index(None, databases=["default"]) == []
    assert (found("printer"), found("tunnel")) == ([memory.pk], [])


@pytest.mark.django_db(transaction=True)
def test_a_lost_full_text_table_is_made_again():
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite keeps the index in a table of its own")
    memory = MemoryFactory(observation="The tunnel drops at night")
    keyword_index.catch_up()
    with connection.cursor() as cursor:
        for name in keyword_index.SQLITE_TRIGGERS:
            if "_fts_" in name:
                cursor.execute(f"DROP TRIGGER {name}")
        cursor.execute("DROP TABLE memory_terms_vocabulary")
        cursor.execute("DROP TABLE memory_terms_fts")
    keyword_index.ensure()
    assert found("tunnel") == [memory.pk]


def test_ensuring_twice_changes_nothing():
    MemoryFactory()
    keyword_index.catch_up()
    assert keyword_index.ensure() == []
    assert not MemoryTermsDue.objects.exists()


def test_catching_up_in_batches_does_all():
    for _ in range(7):
        MemoryFactory()
    assert keyword_index.catch_up(batch=2) == 7
    assert MemoryTerms.objects.count() == 7
