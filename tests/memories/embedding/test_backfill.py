"""Missing vectors are made in batches, outside transactions, even when a worker dies in between."""

from __future__ import annotations

import hashlib
import signal
import threading
from datetime import timedelta

import numpy as np
import pytest
from django.db import connection, transaction
from django.utils import timezone

from memories import embedding
from memories.embedding import backfill as backfilling
from memories.embedding.backfill import Backfilled, backfill, enqueue_all
from memories.embedding.base import embedded_text, from_bytes
from memories.embedding.endpoint import PROBE
from memories.embedding.storage import Made, store, store_all
from memories.lifecycle import verbs
from memories.models import Embedding, EmbeddingModel, Memory, ModelState, PendingEmbedding
from tests.memories.embedding.found import close, expected, stored, waiting
from tests.support import processes
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db


class TestMaking:
    def test_every_memory_gets_its_vector_whatever_its_state(self, endpoint):
        rows = [
            MemoryFactory(),
            MemoryFactory(active=False, inactive_reason="decayed"),
            MemoryFactory(verdict="hold"),
            MemoryFactory(service=None),
        ]
        assert backfill() == Backfilled(embedded=4)
        found = stored()
        assert set(found) == {row.pk for row in rows}
        assert all(close(found[row.pk], expected(row)) for row in rows)
        model = EmbeddingModel.objects.get()
        assert (model.name, model.state, model.dimensions) == ("endpoint:one:4", ModelState.ACTIVE, 4)
        assert model.activated_at is not None
        assert waiting() == set()

    def test_the_hash_is_that_of_the_text_that_was_embedded(self, endpoint):
        memory = MemoryFactory(service="media-server", observation="Takes 60s to start")
        backfill()
        assert endpoint.texts[-1] == "media server: Takes 60s to start"
        assert Embedding.objects.get().content_hash == hashlib.sha256(b"media server: Takes 60s to start").hexdigest()
        assert embedded_text(Memory(service="wg0", observation="wg0 has no route")) == "wg0 has no route"
        assert embedded_text(Memory(service="media_server", observation="The Media Server sleeps")) == (
            "The Media Server sleeps"
        )
        assert memory.observation == "Takes 60s to start"

    def test_with_nothing_to_do_nobody_is_asked_and_little_is_read(self, endpoint, django_assert_max_num_queries):
        MemoryFactory.create_batch(3)
        backfill()
        endpoint.requests.clear()
        with django_assert_max_num_queries(7):
            assert backfill() == Backfilled()
        assert endpoint.requests == []

    def test_the_same_text_is_embedded_once(self, endpoint):
        MemoryFactory.create_batch(5, observation="The same everywhere")
        assert backfill().embedded == 5
        assert endpoint.texts.count("jellyfin: The same everywhere") == 1

    def test_it_goes_on_batch_by_batch(self, endpoint, monkeypatch):
        monkeypatch.setattr(backfilling, "BATCH", 2)
        MemoryFactory.create_batch(5)
        assert backfill() == Backfilled(embedded=5)
        assert [len(body["input"]) for _, _, body in endpoint.requests] == [1, 2, 2, 1]  # the first is the probe

    def test_it_stops_when_its_time_is_up_and_the_next_goes_on(self, endpoint):
        MemoryFactory.create_batch(3)
        assert backfill(seconds=-1) == Backfilled()
        assert embedding.off_reason() == "semantic search is off: the first vectors are being made, 0 memories to go"
        assert backfill() == Backfilled(embedded=3)

    def test_switched_off_it_does_nothing(self, endpoint, settings):
        settings.CLAUDEOPS_EMBEDDINGS = "off"
        MemoryFactory()
        assert backfill() == Backfilled(reason="it is switched off")
        assert not EmbeddingModel.objects.exists()

    def test_while_one_is_at_work_another_does_nothing(self, endpoint):
        MemoryFactory()
        answers = []
        endpoint.hold_from = 1

        def ask():
            endpoint.arrived.wait(30)
            try:
                answers.append(backfill())
            finally:
                connection.close()
                endpoint.go_on.set()

        other = threading.Thread(target=ask)
        other.start()
        assert backfill() == Backfilled(embedded=1)
        other.join()
        assert answers == [Backfilled(busy=True)]


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
        backfill()
        assert close(stored()[memory.pk], expected(Memory.objects.get(pk=memory.pk)))

    def test_one_that_was_deleted_meanwhile_is_forgotten(self, endpoint):
        memory = MemoryFactory()
        model = EmbeddingModel.objects.create(name="endpoint:one:4", dimensions=4)
        made = {memory.pk: Made(np.float32([1, 0, 0, 0]), "x" * 64)}
        memory.delete()
        assert store_all(model, made) == 0
        assert stored() == {}

    def test_whoever_writes_a_memory_may_keep_its_vector_in_the_same_transaction(self, endpoint):
        backfill()
        model = embedding.active_model()
        with transaction.atomic():
            memory = MemoryFactory()
            store(memory, model, np.float32([0, 1, 0, 0]))
        assert stored() == {memory.pk: [0, 1, 0, 0]}
        assert waiting() == set()
        assert backfill() == Backfilled()

    def test_a_vector_of_the_wrong_dimension_is_never_stored(self, endpoint):
        backfill()
        with pytest.raises(ValueError, match="cannot be stored for endpoint:one:4, which has 4"):
            store(MemoryFactory(), embedding.active_model(), np.float32([0, 1, 0]))
        with pytest.raises(ValueError, match="3 dimensions, not 4"):
            from_bytes(np.float32([1, 2, 3]).tobytes(), 4)
        assert stored() == {}


class TestTrouble:
    def test_an_endpoint_that_fails_leaves_everything_in_line_and_its_reason(self, endpoint):
        rows = MemoryFactory.create_batch(2)
        backfill()
        fresh = MemoryFactory()
        endpoint.answer = lambda texts, model: (503, "down")
        done = backfill()
        assert "answers with HTTP 503" in done.reason
        assert waiting() == {fresh.pk}
        assert set(stored()) == {row.pk for row in rows}
        assert "answers with HTTP 503" in embedding.off_reason()
        endpoint.answer = lambda texts, model: None
        assert backfill() == Backfilled(embedded=1)
        assert embedding.off_reason() is None

    def test_other_dimensions_than_the_stored_ones_are_refused_and_then_built_as_another_model(self, endpoint):
        old = MemoryFactory()
        backfill()
        endpoint.dimensions = 6
        fresh = MemoryFactory()
        done = backfill()
        assert "answers with 6 dimensions; 4 were expected" in done.reason
        assert done.embedded == 2
        assert EmbeddingModel.objects.get(state=ModelState.ACTIVE).name == "endpoint:one:6"
        assert close(stored()[old.pk], expected(old, dimensions=6))
        assert close(stored()[fresh.pk], expected(fresh, dimensions=6))

    def test_a_text_that_is_refused_does_not_hold_up_the_others(self, endpoint):
        bad, *good = MemoryFactory(observation="Refuse me"), MemoryFactory(), MemoryFactory()
        endpoint.answer = lambda texts, model: (
            (400, {"error": "too long"}) if any("Refuse me" in text for text in texts) else None
        )
        assert backfill() == Backfilled(embedded=2, refused=1)
        assert set(stored()) == {row.pk for row in good}
        assert embedding.off_reason() is None
        row = PendingEmbedding.objects.get()
        assert (row.memory_id, row.failed_at is not None) == (bad.pk, True)
        assert "too long" in row.error
        endpoint.requests.clear()
        assert backfill() == Backfilled()
        assert endpoint.requests == []
        PendingEmbedding.objects.update(failed_at=timezone.now() - timedelta(hours=2))
        endpoint.answer = lambda texts, model: None
        assert backfill() == Backfilled(embedded=1)

    def test_a_refused_text_that_is_edited_is_tried_at_once(self, endpoint):
        bad = MemoryFactory(observation="Refuse me")
        endpoint.answer = lambda texts, model: (400, "too long") if any("Refuse me" in text for text in texts) else None
        assert backfill().refused == 1
        verbs.edit(bad.pk, by="operator", observation="Take me")
        assert backfill() == Backfilled(embedded=1)

    def test_an_endpoint_that_refuses_every_text_is_itself_at_fault(self, endpoint):
        MemoryFactory.create_batch(5)
        EmbeddingModel.objects.create(name="endpoint:one:4", dimensions=4)
        endpoint.answer = lambda texts, model: (400, "unknown model") if texts != [PROBE] else None
        done = backfill()
        assert "unknown model" in done.reason
        assert len(waiting()) == 5
        assert not PendingEmbedding.objects.exclude(failed_at=None).exists()

    def test_a_half_finished_line_is_gone_on_with_after_a_failure(self, endpoint, monkeypatch):
        monkeypatch.setattr(backfilling, "BATCH", 2)
        MemoryFactory.create_batch(5)
        endpoint.answer = lambda texts, model: (500, "down") if len(endpoint.requests) > 2 else None
        assert "HTTP 500" in backfill().reason
        assert len(stored()) == 2
        endpoint.answer = lambda texts, model: None
        assert backfill() == Backfilled(embedded=3)


class TestRebuilding:
    def test_what_is_right_already_is_not_embedded_again(self, endpoint):
        MemoryFactory.create_batch(3)
        backfill()
        ids = set(Embedding.objects.values_list("pk", flat=True))
        broken = Embedding.objects.first()
        Embedding.objects.filter(pk=broken.pk).update(content_hash="0" * 64)
        Embedding.objects.filter(pk=max(ids)).delete()
        assert enqueue_all() == 3
        assert backfill() == Backfilled(embedded=2, unchanged=1)
        assert not PendingEmbedding.objects.exists()
        assert broken.pk not in set(Embedding.objects.values_list("pk", flat=True))

    def test_forced_every_vector_is_made_anew_while_the_others_answer(self, endpoint):
        MemoryFactory.create_batch(3)
        backfill()
        ids = set(Embedding.objects.values_list("pk", flat=True))
        enqueue_all(force=True)
        assert set(Embedding.objects.values_list("pk", flat=True)) == ids
        assert backfill() == Backfilled(embedded=3)
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
    assert backfill() == Backfilled(embedded=1)
    assert edited
    assert set(stored()) == {other.pk}
    assert waiting() == {memory.pk}
    assert backfill() == Backfilled(embedded=1)
    assert close(stored()[memory.pk], expected(Memory.objects.get(pk=memory.pk)))


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_is_killed_in_the_middle_leaves_its_rows_to_the_next(endpoint):
    first = backfilling.BATCH
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
    assert backfill() == Backfilled(embedded=3)
    assert len(stored()) == first + 3
    assert waiting() == set()
