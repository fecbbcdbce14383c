"""Another model's vectors are built while the old one answers; then it takes its place."""

from __future__ import annotations

import pytest

from memories import embedding
from memories.embedding import backfill as backfilling
from memories.embedding.backfill import Backfilled, backfill
from memories.embedding.endpoint import PROBE
from memories.models import Embedding, EmbeddingModel, ModelState, PendingEmbedding
from tests.memories.embedding.found import close, expected, stored
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db


class TestAnotherModel:
    def test_the_old_one_answers_until_the_new_one_is_whole(self, endpoint, settings, monkeypatch):
        monkeypatch.setattr(backfilling, "BATCH", 2)
        rows = MemoryFactory.create_batch(3)
        backfill()
        old = embedding.active_model()
        settings.CLAUDEOPS_EMBEDDINGS_MODEL = "two"
        endpoint.answer = lambda texts, model: (
            (500, "down") if model == "two" and len(texts) != 2 and texts != [PROBE] else None
        )
        backfill()  # two of three, then it fails
        new = EmbeddingModel.objects.get(name="endpoint:two:4")
        assert (new.state, new.embeddings.count()) == (ModelState.BUILDING, 2)
        assert embedding.active_model() == old
        assert embedding.current().name == old.name
        assert embedding.off_reason() is None
        endpoint.answer = lambda texts, model: (500, "down") if model == "two" else None
        fresh = MemoryFactory()
        backfill()
        assert old.embeddings.filter(memory=fresh).exists()  # what answers is kept up to date meanwhile
        assert embedding.active_model() == old

        endpoint.answer = lambda texts, model: None
        backfill()
        assert embedding.active_model() == new
        assert embedding.current().name == new.name
        assert close(stored()[rows[0].pk], expected(rows[0], "two"))
        old.refresh_from_db()
        assert (old.state, old.embeddings.count(), old.pending.count()) == (ModelState.RETIRED, 0, 0)
        assert new.embeddings.count() == 4

    def test_a_retired_model_is_built_anew_when_it_is_wanted_again(self, endpoint, settings):
        MemoryFactory()
        backfill()
        settings.CLAUDEOPS_EMBEDDINGS_MODEL = "two"
        backfill()
        MemoryFactory()
        settings.CLAUDEOPS_EMBEDDINGS_MODEL = "one"
        assert backfill().embedded == 3  # one by the second, then both by the first
        assert embedding.active_model().name == "endpoint:one:4"
        assert Embedding.objects.count() == 2

    def test_a_model_that_was_only_begun_is_given_up_for_the_next(self, endpoint, settings):
        rows = MemoryFactory.create_batch(2)
        backfill()
        settings.CLAUDEOPS_EMBEDDINGS_MODEL = "two"
        backfill(seconds=-1)
        settings.CLAUDEOPS_EMBEDDINGS_MODEL = "one"
        backfill()
        assert embedding.active_model().name == "endpoint:one:4"
        assert EmbeddingModel.objects.get(name="endpoint:two:4").state == ModelState.RETIRED
        assert not PendingEmbedding.objects.exists()
        assert set(stored()) == {row.pk for row in rows}

    def test_a_memory_that_was_overlooked_when_it_began_is_not_left_out(self, endpoint):
        MemoryFactory.create_batch(2)
        model = EmbeddingModel.objects.create(name="endpoint:one:4", dimensions=4, filled_to=None)
        assert backfill() == Backfilled()
        assert embedding.active_model() is None
        assert backfill() == Backfilled(embedded=2)
        assert embedding.active_model() == model
