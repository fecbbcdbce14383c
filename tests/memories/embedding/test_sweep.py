"""The vectors that are missing are made: in batches, outside transactions, whoever dies in between."""

from __future__ import annotations

import hashlib
import signal
import threading
from datetime import timedelta

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from memories import embedding
from memories.embedding import sweep as sweeping
from memories.embedding.base import embedded_text, from_bytes
from memories.embedding.endpoint import PROBE
from memories.embedding.sweep import Swept, check_all, sweep
from memories.embedding.vectors import Made, store, store_all
from memories.lifecycle import curate, verbs
from memories.models import Embedding, EmbeddingModel, Memory, ModelState, PendingEmbedding
from tests import processes
from tests.factories import MemoryFactory
from tests.memories.embedding.servers import vector_of

pytestmark = pytest.mark.django_db


def stored() -> dict[int, list[float]]:
    return {row.memory_id: list(from_bytes(row.vector, row.model.dimensions)) for row in Embedding.objects.all()}


def expected(memory: Memory, model: str = "one", dimensions: int = 4) -> list[float]:
    vector = np.array(vector_of(embedded_text(memory), dimensions, model))
    return list(np.float32(vector / np.linalg.norm(vector)))


def close(found: list[float], wanted: list[float]) -> bool:
    return len(found) == len(wanted) and np.allclose(found, wanted, atol=1e-6)


def waiting() -> set[int]:
    return set(PendingEmbedding.objects.values_list("memory_id", flat=True))


class TestMaking:
    def test_every_memory_gets_its_vector_whatever_its_state(self, endpoint):
        rows = [
            MemoryFactory(),
            MemoryFactory(active=False, inactive_reason="decayed"),
            MemoryFactory(verdict="hold"),
            MemoryFactory(service=None),
        ]
        assert sweep() == Swept(embedded=4)
        found = stored()
        assert set(found) == {row.pk for row in rows}
        assert all(close(found[row.pk], expected(row)) for row in rows)
        model = EmbeddingModel.objects.get()
        assert (model.name, model.state, model.dimensions) == ("endpoint:one:4", ModelState.ACTIVE, 4)
        assert model.activated_at is not None
        assert waiting() == set()

    def test_the_hash_is_that_of_the_text_that_was_embedded(self, endpoint):
        memory = MemoryFactory(service="media-server", observation="Takes 60s to start")
        sweep()
        assert endpoint.texts[-1] == "media server: Takes 60s to start"
        assert Embedding.objects.get().content_hash == hashlib.sha256(b"media server: Takes 60s to start").hexdigest()
        assert embedded_text(Memory(service="wg0", observation="wg0 has no route")) == "wg0 has no route"
        assert embedded_text(Memory(service="media_server", observation="The Media Server sleeps")) == (
            "The Media Server sleeps"
        )
        assert memory.observation == "Takes 60s to start"

    def test_with_nothing_to_do_nobody_is_asked_and_little_is_read(self, endpoint, django_assert_max_num_queries):
        MemoryFactory.create_batch(3)
        sweep()
        endpoint.requests.clear()
        with django_assert_max_num_queries(7):
            assert sweep() == Swept()
        assert endpoint.requests == []

    def test_the_same_text_is_embedded_once(self, endpoint):
        MemoryFactory.create_batch(5, observation="The same everywhere")
        assert sweep().embedded == 5
        assert endpoint.texts.count("jellyfin: The same everywhere") == 1

    def test_it_goes_on_batch_by_batch(self, endpoint, monkeypatch):
        monkeypatch.setattr(sweeping, "BATCH", 2)
        MemoryFactory.create_batch(5)
        assert sweep() == Swept(embedded=5)
        assert [len(body["input"]) for _, _, body in endpoint.requests] == [1, 2, 2, 1]  # the first is the probe

    def test_it_stops_when_its_time_is_up_and_the_next_goes_on(self, endpoint):
        MemoryFactory.create_batch(3)
        assert sweep(seconds=-1) == Swept()
        assert embedding.off_reason() == "semantic search is off: the first vectors are being made, 0 memories to go"
        assert sweep() == Swept(embedded=3)

    def test_switched_off_it_does_nothing(self, endpoint, settings):
        settings.CLAUDEOPS_EMBEDDINGS = "off"
        MemoryFactory()
        assert sweep() == Swept(reason="it is switched off")
        assert not EmbeddingModel.objects.exists()

    def test_while_one_is_at_work_another_does_nothing(self, endpoint):
        MemoryFactory()
        answers = []
        endpoint.hold_from = 1

        def ask():
            endpoint.arrived.wait(30)
            try:
                answers.append(sweep())
            finally:
                connection.close()
                endpoint.go_on.set()

        other = threading.Thread(target=ask)
        other.start()
        assert sweep() == Swept(embedded=1)
        other.join()
        assert answers == [Swept(busy=True)]


class TestInStep:
    """What happens to a memory, whoever does it, happens to its vector."""

    @pytest.fixture
    def memory(self, endpoint):
        memory = MemoryFactory()
        MemoryFactory(observation="Another one, which stays")
        sweep()
        return memory

    def others(self, memory):
        return {pk: vector for pk, vector in stored().items() if pk != memory.pk}

    def test_a_new_one_waits_in_line(self, memory):
        fresh = MemoryFactory()
        assert waiting() == {fresh.pk}
        assert embedding.pending_count() == 1
        assert sweep() == Swept(embedded=1)
        assert close(stored()[fresh.pk], expected(fresh))

    def test_an_edited_one_loses_its_vector_at_once_and_gets_another_row(self, memory):
        before, others = Embedding.objects.get(memory=memory), self.others(memory)
        verbs.edit(memory.pk, by="operator", observation="It says something else now")
        assert memory.pk not in stored()
        assert waiting() == {memory.pk}
        assert sweep() == Swept(embedded=1)
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
        sweep()
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM memory_changes")
            cursor.execute("DELETE FROM memories WHERE id = %s", [memory.pk])
        assert memory.pk not in stored()
        assert waiting() == set()

    def test_many_at_once_are_met_too(self, memory):
        rows = Memory.objects.bulk_create(MemoryFactory.build_batch(20))
        assert waiting() == {row.pk for row in rows}
        sweep()
        Memory.objects.filter(pk__in=[row.pk for row in rows[:15]]).update(observation="All say this")
        assert waiting() == {row.pk for row in rows[:15]}
        Memory.objects.filter(pk__in=[row.pk for row in rows]).delete()
        assert waiting() == set()
        assert set(stored()) == set(Memory.objects.values_list("pk", flat=True))

    def test_a_deleted_one_takes_its_vector_along(self, memory):
        pk = memory.pk
        curate.delete(pk, by="operator")
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


class TestMeanwhile:
    """The text is embedded outside the transaction, so the world may have moved on when the vector comes."""

    def test_a_text_that_changed_meanwhile_is_not_given_the_old_vector(self, endpoint):
        memory, other = MemoryFactory(), MemoryFactory()

        EmbeddingModel.objects.create(name="endpoint:one:4", dimensions=4)
        made = {
            row.pk: Made(np.float32([1, 0, 0, 0]), hashlib.sha256(embedded_text(row).encode()).hexdigest())
            for row in (memory, other)
        }
        Memory.objects.filter(pk=memory.pk).update(observation="Edited while it was embedded")
        assert store_all(EmbeddingModel.objects.get(), made) == 1
        assert set(stored()) == {other.pk}
        sweep()
        assert close(stored()[memory.pk], expected(Memory.objects.get(pk=memory.pk)))

    def test_one_that_was_deleted_meanwhile_is_forgotten(self, endpoint):
        memory = MemoryFactory()
        model = EmbeddingModel.objects.create(name="endpoint:one:4", dimensions=4)
        made = {memory.pk: Made(np.float32([1, 0, 0, 0]), "x" * 64)}
        memory.delete()
        assert store_all(model, made) == 0
        assert stored() == {}

    def test_whoever_writes_a_memory_may_keep_its_vector_in_the_same_transaction(self, endpoint):
        sweep()
        model = embedding.active_model()
        with transaction.atomic():
            memory = MemoryFactory()
            store(memory, model, np.float32([0, 1, 0, 0]))
        assert stored() == {memory.pk: [0, 1, 0, 0]}
        assert waiting() == set()
        assert sweep() == Swept()

    def test_a_vector_of_the_wrong_dimension_is_never_stored(self, endpoint):
        sweep()
        with pytest.raises(ValueError, match="cannot be kept for endpoint:one:4, which has 4"):
            store(MemoryFactory(), embedding.active_model(), np.float32([0, 1, 0]))
        with pytest.raises(ValueError, match="3 dimensions, not 4"):
            from_bytes(np.float32([1, 2, 3]).tobytes(), 4)
        assert stored() == {}


class TestTrouble:
    def test_an_endpoint_that_fails_leaves_everything_in_line_and_its_reason(self, endpoint):
        rows = MemoryFactory.create_batch(2)
        sweep()
        fresh = MemoryFactory()
        endpoint.answer = lambda texts, model: (503, "down")
        swept = sweep()
        assert "answers with HTTP 503" in swept.reason
        assert waiting() == {fresh.pk}
        assert set(stored()) == {row.pk for row in rows}
        assert "answers with HTTP 503" in embedding.off_reason()
        endpoint.answer = lambda texts, model: None
        assert sweep() == Swept(embedded=1)
        assert embedding.off_reason() is None

    def test_other_dimensions_than_the_stored_ones_are_refused_and_then_built_as_another_model(self, endpoint):
        old = MemoryFactory()
        sweep()
        endpoint.dimensions = 6
        fresh = MemoryFactory()
        swept = sweep()
        assert "answers with 6 dimensions; 4 were expected" in swept.reason
        assert swept.embedded == 2
        assert EmbeddingModel.objects.get(state=ModelState.ACTIVE).name == "endpoint:one:6"
        assert close(stored()[old.pk], expected(old, dimensions=6))
        assert close(stored()[fresh.pk], expected(fresh, dimensions=6))

    def test_a_text_that_is_refused_does_not_hold_up_the_others(self, endpoint):
        bad, *good = MemoryFactory(observation="Refuse me"), MemoryFactory(), MemoryFactory()
        endpoint.answer = lambda texts, model: (
            (400, {"error": "too long"}) if any("Refuse me" in text for text in texts) else None
        )
        assert sweep() == Swept(embedded=2, refused=1)
        assert set(stored()) == {row.pk for row in good}
        assert embedding.off_reason() is None
        row = PendingEmbedding.objects.get()
        assert (row.memory_id, row.failed_at is not None) == (bad.pk, True)
        assert "too long" in row.error
        endpoint.requests.clear()
        assert sweep() == Swept()
        assert endpoint.requests == []
        PendingEmbedding.objects.update(failed_at=timezone.now() - timedelta(hours=2))
        endpoint.answer = lambda texts, model: None
        assert sweep() == Swept(embedded=1)

    def test_a_refused_text_that_is_edited_is_tried_at_once(self, endpoint):
        bad = MemoryFactory(observation="Refuse me")
        endpoint.answer = lambda texts, model: (400, "too long") if any("Refuse me" in text for text in texts) else None
        assert sweep().refused == 1
        verbs.edit(bad.pk, by="operator", observation="Take me")
        assert sweep() == Swept(embedded=1)

    def test_an_endpoint_that_refuses_every_text_is_itself_at_fault(self, endpoint):
        MemoryFactory.create_batch(5)
        EmbeddingModel.objects.create(name="endpoint:one:4", dimensions=4)
        endpoint.answer = lambda texts, model: (400, "unknown model") if texts != [PROBE] else None
        swept = sweep()
        assert "unknown model" in swept.reason
        assert len(waiting()) == 5
        assert not PendingEmbedding.objects.exclude(failed_at=None).exists()

    def test_a_half_finished_line_is_gone_on_with_after_a_failure(self, endpoint, monkeypatch):
        monkeypatch.setattr(sweeping, "BATCH", 2)
        MemoryFactory.create_batch(5)
        endpoint.answer = lambda texts, model: (500, "down") if len(endpoint.requests) > 2 else None
        assert "HTTP 500" in sweep().reason
        assert len(stored()) == 2
        endpoint.answer = lambda texts, model: None
        assert sweep() == Swept(embedded=3)


class TestAnotherModel:
    def test_the_old_one_answers_until_the_new_one_is_whole(self, endpoint, settings, monkeypatch):
        monkeypatch.setattr(sweeping, "BATCH", 2)
        rows = MemoryFactory.create_batch(3)
        sweep()
        old = embedding.active_model()
        settings.CLAUDEOPS_EMBEDDINGS_MODEL = "two"
        endpoint.answer = lambda texts, model: (
            (500, "down") if model == "two" and len(texts) != 2 and texts != [PROBE] else None
        )
        sweep()  # two of three, then it fails
        new = EmbeddingModel.objects.get(name="endpoint:two:4")
        assert (new.state, new.embeddings.count()) == (ModelState.BUILDING, 2)
        assert embedding.active_model() == old
        assert embedding.current().name == old.name
        assert embedding.off_reason() is None
        endpoint.answer = lambda texts, model: (500, "down") if model == "two" else None
        fresh = MemoryFactory()
        sweep()
        assert old.embeddings.filter(memory=fresh).exists()  # what answers is kept up to date meanwhile
        assert embedding.active_model() == old

        endpoint.answer = lambda texts, model: None
        sweep()
        assert embedding.active_model() == new
        assert embedding.current().name == new.name
        assert close(stored()[rows[0].pk], expected(rows[0], "two"))
        old.refresh_from_db()
        assert (old.state, old.embeddings.count(), old.pending.count()) == (ModelState.RETIRED, 0, 0)
        assert new.embeddings.count() == 4

    def test_a_retired_model_is_built_anew_when_it_is_wanted_again(self, endpoint, settings):
        MemoryFactory()
        sweep()
        settings.CLAUDEOPS_EMBEDDINGS_MODEL = "two"
        sweep()
        MemoryFactory()
        settings.CLAUDEOPS_EMBEDDINGS_MODEL = "one"
        assert sweep().embedded == 3  # one by the second, then both by the first
        assert embedding.active_model().name == "endpoint:one:4"
        assert Embedding.objects.count() == 2

    def test_a_model_that_was_only_begun_is_given_up_for_the_next(self, endpoint, settings):
        rows = MemoryFactory.create_batch(2)
        sweep()
        settings.CLAUDEOPS_EMBEDDINGS_MODEL = "two"
        sweep(seconds=-1)
        settings.CLAUDEOPS_EMBEDDINGS_MODEL = "one"
        sweep()
        assert embedding.active_model().name == "endpoint:one:4"
        assert EmbeddingModel.objects.get(name="endpoint:two:4").state == ModelState.RETIRED
        assert not PendingEmbedding.objects.exists()
        assert set(stored()) == {row.pk for row in rows}

    def test_a_memory_that_was_overlooked_when_it_began_is_not_left_out(self, endpoint):
        MemoryFactory.create_batch(2)
        model = EmbeddingModel.objects.create(name="endpoint:one:4", dimensions=4, filled_to=None)
        assert sweep() == Swept()
        assert embedding.active_model() is None
        assert sweep() == Swept(embedded=2)
        assert embedding.active_model() == model


class TestRebuilding:
    def test_what_is_right_already_is_not_embedded_again(self, endpoint):
        MemoryFactory.create_batch(3)
        sweep()
        ids = set(Embedding.objects.values_list("pk", flat=True))
        broken = Embedding.objects.first()
        Embedding.objects.filter(pk=broken.pk).update(content_hash="0" * 64)
        Embedding.objects.filter(pk=max(ids)).delete()
        assert check_all() == 3
        assert sweep() == Swept(embedded=2, unchanged=1)
        assert not PendingEmbedding.objects.exists()
        assert broken.pk not in set(Embedding.objects.values_list("pk", flat=True))

    def test_forced_every_vector_is_made_anew_while_the_others_answer(self, endpoint):
        MemoryFactory.create_batch(3)
        sweep()
        ids = set(Embedding.objects.values_list("pk", flat=True))
        check_all(force=True)
        assert set(Embedding.objects.values_list("pk", flat=True)) == ids
        assert sweep() == Swept(embedded=3)
        assert not ids & set(Embedding.objects.values_list("pk", flat=True))


@pytest.mark.django_db(transaction=True)
def test_others_write_while_texts_are_embedded_and_no_text_gets_an_old_vector(endpoint):
    """Were a transaction open meanwhile, the other writer would wait for it, and it for the other."""
    memory, other = MemoryFactory(), MemoryFactory()
    edited = []

    def edit_meanwhile(texts, model):
        if embedded_text(memory) in texts and not edited:
            edited.append(verbs.edit(memory.pk, by="operator", observation="Edited while it was embedded"))
            connection.close()  # this thread's own

    endpoint.answer = edit_meanwhile
    assert sweep() == Swept(embedded=1)
    assert edited
    assert set(stored()) == {other.pk}
    assert waiting() == {memory.pk}
    assert sweep() == Swept(embedded=1)
    assert close(stored()[memory.pk], expected(Memory.objects.get(pk=memory.pk)))


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_is_killed_in_the_middle_leaves_its_rows_to_the_next(endpoint):
    first = sweeping.BATCH
    MemoryFactory.create_batch(first + 3)
    EmbeddingModel.objects.create(name="endpoint:one:4", dimensions=4, state=ModelState.ACTIVE)
    endpoint.hold_from = 2
    more = {
        "CLAUDEOPS_EMBEDDINGS": "endpoint",
        "CLAUDEOPS_EMBEDDINGS_URL": endpoint.url,
        "CLAUDEOPS_EMBEDDINGS_MODEL": "one",
    }
    worker = processes.start(["-c", "import django; django.setup()\nfrom memories.tasks import embed; embed()"], more)
    try:
        assert endpoint.arrived.wait(60), "the worker asked for no second batch"
    finally:
        worker.kill()
        said = worker.communicate()
    assert worker.returncode == -signal.SIGKILL, said
    assert len(stored()) == first
    assert len(waiting()) == 3
    endpoint.hold_from = None
    endpoint.go_on.set()
    assert sweep() == Swept(embedded=3)
    assert len(stored()) == first + 3
    assert waiting() == set()
