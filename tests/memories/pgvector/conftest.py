"""pgvector in the test's own database, and an embedder whose vectors answer."""

from __future__ import annotations

import pytest

from memories.recall import binary_index, pgvector, query_vector, vector_search
from tests.embedders import WordEmbedder, active_model, answer_by


@pytest.fixture(autouse=True)
def clean_process(settings, tmp_path, monkeypatch):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    settings.CLAUDEOPS_VECTOR_SEARCH = "pgvector"
    monkeypatch.setattr(binary_index, "_written", {})
    for module in (vectors, meaning, pgvector):
        module.forget()
    yield
    for module in (vectors, meaning, pgvector):
        module.forget()


@pytest.fixture
def extension(transactional_db):
    """pgvector in the test's database, and nothing of ours left behind."""
    if reason := pgvector.try_extension():
        pytest.skip(f"needs a PostgreSQL with pgvector: {reason}")
    yield
    pgvector.try_extension()
    pgvector.drop()


@pytest.fixture
def embedder(monkeypatch, transactional_db):
    found = WordEmbedder()
    answer_by(monkeypatch, found)
    return found


@pytest.fixture
def model(embedder, extension):
    return active_model(embedder)


@pytest.fixture
def walking(monkeypatch):
    """The index is asked, however small the scope."""
    monkeypatch.setattr(pgvector, "NARROW", 0)
    monkeypatch.setattr(pgvector, "NARROW_SHARE", 0.0)
