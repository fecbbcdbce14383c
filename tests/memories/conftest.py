"""A tiny model on the disk, an endpoint next door, the real model when it is there; scratch databases made quickly."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection

from memories import embedding
from memories.embedding import install, state
from memories.embedding.local import MINILM, quantise
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
    assert not quantise(folder, MINILM)
    return folder


@pytest.fixture(scope="session")
def vectors(request):
    """The folder of vectors that all workers and later runs share, as long as the code that makes them is the same."""
    code = hashlib.sha256()
    for path in sorted(Path(embedding.__file__).parent.glob("*.*")):
        code.update(path.read_bytes())
    return request.config.cache.mkdir(f"vectors-{code.hexdigest()[:12]}")


@pytest.fixture
def scratch_is_a_copy(transactional_db, monkeypatch, tmp_path) -> Iterator[None]:
    """Scratch databases begin as copies of the suite's own, which is empty and migrated: migrating takes seconds.

    What makes a scratch database still looks for what is not migrated. evaluation/test_scratch.py tests
    that nothing is left of one, and on PostgreSQL that an empty one is migrated.
    """
    name = connection.settings_dict["NAME"]
    if connection.vendor == "postgresql":
        copy = f"{name}_copy"
        connection.close()
        with connection._nodb_cursor() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS "{copy}"')
            cursor.execute(f'CREATE DATABASE "{copy}" TEMPLATE "{name}"')
        monkeypatch.setitem(connection.settings_dict["TEST"], "TEMPLATE", copy)
        yield
        with connection._nodb_cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{copy}"')
        return
    copy = tmp_path / "migrated.sqlite3"
    connection.ensure_connection()
    with closing(sqlite3.connect(copy)) as target:
        connection.connection.backup(target)
    create = connection.creation._create_test_db

    def create_as_a_copy(*arguments: object, **named: object) -> str:
        made = create(*arguments, **named)
        shutil.copyfile(copy, made)
        return made

    monkeypatch.setattr(connection.creation, "_create_test_db", create_as_a_copy)
    yield
