"""Database triggers keep vectors in step with their memories, whoever writes those."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection

from memories import embedding
from memories.embedding.backfill import Backfilled, backfill
from memories.lifecycle import merge, verbs
from memories.models import Embedding, Memory
from tests.memories.embedding.found import close, expected, stored, waiting
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db


class TestInStep:
    """What happens to a memory, whoever does it, happens to its vector."""

    @pytest.fixture
    def memory(self, endpoint):
        memory = MemoryFactory()
        MemoryFactory(observation="Another one, which stays")
        backfill()
        return memory

    def others(self, memory):
        return {pk: vector for pk, vector in stored().items() if pk != memory.pk}

    def test_a_new_one_waits_in_line(self, memory):
        fresh = MemoryFactory()
        assert waiting() == {fresh.pk}
        assert embedding.pending_count() == 1
        assert backfill() == Backfilled(embedded=1)
        assert close(stored()[fresh.pk], expected(fresh))

    def test_an_edited_one_loses_its_vector_at_once_and_gets_another_row(self, memory):
        before, others = Embedding.objects.get(memory=memory), self.others(memory)
        verbs.edit(memory.pk, by="operator", observation="It says something else now")
        assert memory.pk not in stored()
        assert waiting() == {memory.pk}
        assert backfill() == Backfilled(embedded=1)
        after = Embedding.objects.get(memory=memory)
        assert after.pk > Embedding.objects.exclude(pk=after.pk).latest("pk").pk
        assert after.content_hash != before.content_hash
        assert self.others(memory) == others

    def test_what_leaves_the_text_as_it_is_leaves_the_vector(self, memory):
        before = list(Embedding.objects.values_list("pk", "memory"))
        verbs.edit(memory.pk, by="operator", confidence=0.9)
        verbs.reinforce(memory.pk, by="operator")
        verbs.deactivate(memory.pk, by="operator")
        Memory.objects.get(pk=memory.pk).save()
        assert list(Embedding.objects.values_list("pk", "memory")) == before
        assert waiting() == set()

    def test_raw_sql_of_anybody_is_met_too(self, memory):
        with connection.cursor() as cursor:
            cursor.execute("UPDATE memories SET service = 'other' WHERE id = %s", [memory.pk])
        assert waiting() == {memory.pk}
        assert memory.pk not in stored()
        backfill()
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM memory_changes")
            cursor.execute("DELETE FROM memories WHERE id = %s", [memory.pk])
        assert memory.pk not in stored()
        assert waiting() == set()

    def test_many_at_once_are_met_too(self, memory):
        rows = Memory.objects.bulk_create(MemoryFactory.build_batch(20))
        assert waiting() == {row.pk for row in rows}
        backfill()
        Memory.objects.filter(pk__in=[row.pk for row in rows[:15]]).update(observation="All say this")
        assert waiting() == {row.pk for row in rows[:15]}
        Memory.objects.filter(pk__in=[row.pk for row in rows]).delete()
        assert waiting() == set()
        assert set(stored()) == set(Memory.objects.values_list("pk", flat=True))

    def test_a_deleted_one_takes_its_vector_along(self, memory):
        pk = memory.pk
        merge.delete(pk, by="operator")
        assert pk not in stored()
        assert len(stored()) == 1

    def test_the_triggers_come_back_when_a_table_was_rebuilt(self, memory):
        if connection.vendor != "sqlite":
            pytest.skip("only SQLite rebuilds a table")
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER embeddings_memory_added")
        call_command("migrate", verbosity=0)
        assert waiting() == set()
        fresh = MemoryFactory()
        assert waiting() == {fresh.pk}
