"""Which embedder answers, or why none does, and how that changes while the process runs."""

from __future__ import annotations

import weakref

import pytest

from memories import embedding
from memories.embedding import install, state
from memories.embedding.backfill import Backfilled, backfill
from memories.embedding.base import SemanticOff
from memories.embedding.local import WEIGHTS
from memories.models import EmbeddingModel, ModelState
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db


def off() -> str:
    """What is said, by whoever asks: the cheap look and the embedder agree."""
    with pytest.raises(SemanticOff) as raised:
        embedding.current()
    assert str(raised.value) == embedding.off_reason()
    return raised.value.reason


def test_switched_off(settings):
    settings.CLAUDEOPS_EMBEDDINGS = "off"
    assert off() == "it is switched off"


def test_from_nothing_to_the_first_answer_without_a_restart(published, models_dir):
    MemoryFactory.create_batch(3)
    assert off() == "the model tiny is not installed"
    assert backfill().reason == "the model tiny is not installed"
    install.install(str(published))
    assert off() == "there are no vectors yet; workers make them within a minute or two"
    backfill(seconds=-1)
    assert off() == "the first vectors are being made, 0 memories to go"
    assert backfill() == Backfilled(embedded=3)
    assert embedding.off_reason() is None
    assert embedding.current().name == embedding.active_model().name == state.LOCAL.identity
    assert embedding.current() is embedding.current()


def test_without_memories_semantic_search_is_on_after_the_first_backfill(tiny):
    backfill()
    assert embedding.off_reason() is None


def test_a_model_that_is_released_is_kept_by_nobody_and_loaded_again_when_it_is_needed(tiny):
    backfill()
    loaded = weakref.ref(embedding.current())
    state.release()
    assert loaded() is None
    assert embedding.current().name == state.LOCAL.identity


def test_a_model_that_disappears_is_off_at_once_and_back_when_it_is(tiny, tmp_path):
    MemoryFactory()
    backfill()
    assert embedding.off_reason() is None
    tiny.rename(tmp_path / "elsewhere")
    assert off() == "the model tiny is not installed"
    MemoryFactory()
    assert backfill().reason == "the model tiny is not installed"
    (tmp_path / "elsewhere").rename(tiny)
    assert embedding.off_reason() is None
    assert backfill() == Backfilled(embedded=1)


def test_a_model_whose_file_was_damaged_is_off_and_names_it(tiny):
    MemoryFactory()
    backfill()
    raw = (tiny / WEIGHTS).read_bytes()
    (tiny / WEIGHTS).write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    with pytest.raises(SemanticOff, match=r"model\.safetensors is not the published file: its SHA-256 is"):
        embedding.current()
    assert "is not the published file" in off()
    (tiny / WEIGHTS).write_bytes(raw)
    assert embedding.current().dimensions == 8


def test_the_local_model_answers_until_the_endpoints_vectors_are_made(tiny, endpoint, settings):
    settings.CLAUDEOPS_EMBEDDINGS = "local"
    memory = MemoryFactory()
    backfill()
    settings.CLAUDEOPS_EMBEDDINGS = "endpoint"
    endpoint.answer = lambda texts, model: (500, "down")
    assert "HTTP 500" in backfill().reason
    assert embedding.current().name == state.LOCAL.identity
    assert embedding.off_reason() is None
    endpoint.answer = lambda texts, model: None
    assert backfill().embedded == 1
    assert embedding.current().name == "endpoint:one:4"
    assert [row.memory_id for row in embedding.active_model().embeddings.all()] == [memory.pk]


def test_vectors_of_a_model_that_is_not_known_any_more_do_not_answer(tiny):
    EmbeddingModel.objects.create(name="of-yesterday@1", dimensions=3, state=ModelState.ACTIVE)
    with pytest.raises(SemanticOff, match="of-yesterday@1, whose vectors are stored, is no longer known"):
        embedding.current()
    MemoryFactory()
    backfill()
    assert embedding.current().name == state.LOCAL.identity


def test_what_an_installation_left_is_said(published, models_dir):
    with pytest.raises(install.InstallFailed):
        install.install(str(models_dir / "nowhere"))
    assert off().startswith("the model tiny could not be installed: there is no file or folder")


def test_how_many_wait_is_counted_no_further_than_needed(tiny, monkeypatch):
    backfill()
    MemoryFactory.create_batch(5)
    assert embedding.pending_count() == 5
    monkeypatch.setattr(state, "MOST_COUNTED", 3)
    assert embedding.pending_count() == 3


def test_what_was_begun_ahead_is_loaded_when_it_is_asked_for(tiny):
    backfill()
    embedding.reset()
    path = tiny / WEIGHTS
    path.write_bytes(path.read_bytes()[:-1])
    assert embedding.off_reason() is None, "nobody has looked into the file yet"
    state.begin().join()
    assert "is not the published file" in embedding.off_reason()


def test_where_no_local_model_is_asked_for_or_there_none_is_begun(settings, models_dir):
    state.begin().join()
    assert off() == f"the model {state.LOCAL.name} is not installed"
    settings.CLAUDEOPS_EMBEDDINGS = "off"
    assert state.begin() is None
