"""The index is built beside the work: searches and writes go on, and who began it may die."""

from __future__ import annotations

import threading

from django.db import connection

from memories.recall import Filters, pgvector, recall
from tests.embedders import embed_all
from tests.factories import MemoryFactory
from tests.memories.pgvector.database import (
    by_itself,
    ids,
    needs_postgresql,
    second_connection,
    served,
    sql,
    wait_until,
)

needs_postgresql()


@by_itself
def test_while_the_index_is_built_searches_and_writes_go_on(embedder, model, walking):
    rows = [MemoryFactory(observation=f"wireguard sluggish {n}") for n in range(5)]
    embed_all(embedder, model)
    results = []

    def build():
        try:
            results.append(pgvector.keep())
        finally:
            connection.close()

    worker = threading.Thread(target=build)
    # A reader with an old picture of the database: the build has to wait for it.
    with second_connection() as old, old.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT count(*) FROM memories")
        worker.start()
        wait_until(lambda: served(model) == "numpy: pgvector's index is being built")
        found = recall("tunnel slow", Filters())
        assert {hit.memory_id for hit in found.hits} == {row.pk for row in rows}
        assert found.trace.vectors == "numpy: pgvector's index is being built"
        later = MemoryFactory(observation="wireguard sluggish at last")
        embed_all(embedder, model)
        assert later.pk in ids("tunnel slow")
        assert pgvector.keep().reason, "a second one leaves the first alone"
        assert served(model) == "numpy: pgvector's index is being built"
        cursor.execute("ROLLBACK")
    worker.join(60)
    assert [kept.built for kept in results] == [pgvector.index_name(model)]
    assert served(model).startswith("pgvector")
    assert {later.pk, *(row.pk for row in rows)} == set(ids("tunnel slow", limit=20))


@by_itself
def test_a_build_that_takes_longer_than_its_task_goes_on_in_the_database(embedder, model, walking):
    MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    with second_connection() as old, old.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT count(*) FROM memories")
        assert pgvector.keep(seconds=2).reason == "pgvector's index is being built"
        assert pgvector.keep(seconds=2).reason == "pgvector's index is being built", "it is not begun twice"
        cursor.execute("ROLLBACK")
    wait_until(lambda: served(model).startswith("pgvector"))


@by_itself
def test_an_index_that_a_dead_process_left_half_made_is_made_again(embedder, model, walking):
    memory = MemoryFactory(observation="wireguard sluggish")
    embed_all(embedder, model)
    pgvector.keep()
    name = pgvector.index_name(model)
    sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", name)
    assert served(model) == "numpy: pgvector's index is being built"
    assert ids("tunnel slow") == [memory.pk]
    assert pgvector.keep().built == name
    assert served(model).startswith("pgvector")
