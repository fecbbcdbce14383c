"""An ingest asks models before its transaction: who else wants to write does not wait for them."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from memories.models import Embedding, Memory, MemoryChange
from sessions_app.models import Event
from tests.sessions_app.runner.test_ingest import a_session, feed, ingest_at_once, log_of
from tests.support.factories import MemoryFactory
from tests.support.models_http import embedded_by, embeddings
from tests.support.streams import init, result, text

pytestmark = pytest.mark.django_db(transaction=True)

KNOWN = "Purges old media files after 90 days"
NEW = "Media goes when it is three months old"


@pytest.fixture
def another():
    """A writer in another thread, with a connection of its own, while a model is asked; and what it saw."""
    wrote: list[int] = []

    def write() -> None:
        # Were the ingest's transaction open, this would wait for it, and it for this.
        MemoryFactory(observation=f"Written while a model was asked, number {len(wrote)}", service="elsewhere")
        wrote.append(Event.objects.count())
        connection.close()

    return write, wrote


def ingested(session):
    said = text(f"[MEMORY:maintenance:plex] {NEW}\n[EVENT:info:plex] looked")
    return feed(session, init(), said, result())


def test_embeddings_are_made_before_the_transaction_and_stored_in_it(settings, another):
    write, wrote = another
    asked: list[str] = []

    def answer(body):
        asked.extend(body["input"])
        if not wrote:
            write()
        return embeddings(body)

    with embedded_by(settings, answer):
        session = ingested(a_session())
    assert any(NEW in said for said in asked)
    assert wrote == [0]  # nothing of the batch was there yet
    memory = Memory.objects.get(observation=NEW)
    assert Embedding.objects.filter(memory=memory).count() == 1
    assert (Event.objects.count(), session.stats["memories_created"]) == (1, 1)


def test_two_ingests_of_the_same_log_ask_and_one_stores(settings):
    """The second finds the lines taken, and what it prepared is left."""
    both = threading.Barrier(2, timeout=60)

    def answer(body):
        if any(NEW in said for said in body["input"]):
            try:
                both.wait()
            except threading.BrokenBarrierError:
                pass
        return embeddings(body)

    with embedded_by(settings, answer):
        session = a_session()
        log_of(session).write_text(init() + text(f"[MEMORY:maintenance:plex] {NEW}") + result())
        errors = ingest_at_once(session, 2)
    assert errors == []
    assert Memory.objects.count() == MemoryChange.objects.count() == 1
    assert Embedding.objects.count() <= 1  # none when one waited too long for the other at the model
