"""Store vectors and dequeue their memories; hashes tell texts that changed since they were embedded.

A new memory is queued for each model in use; a changed text loses its vector and is queued; a deleted memory takes
its vectors along. Triggers do that; every `migrate` makes them, because SQLite drops a table's triggers when it
rebuilds the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from memories.embedding.base import HasText, Vectors, content_hash, embedded_text, to_bytes
from memories.models import Embedding, EmbeddingModel, Memory, PendingEmbedding


@dataclass(frozen=True, slots=True)
class Made:
    vector: Vectors
    content_hash: str


def store(memory: Memory, model: EmbeddingModel, vector: Vectors) -> None:
    """Store the vector of a memory that was created in the same transaction."""
    _checked(model, vector)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO embeddings (model_id, memory_id, vector, content_hash) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT DO NOTHING",
            [model.pk, memory.pk, to_bytes(vector), hash_of(memory)],
        )
        cursor.execute("DELETE FROM embedding_pending WHERE memory_id = %s AND model_id = %s", [memory.pk, model.pk])


def hash_of(memory: HasText) -> str:
    return content_hash(embedded_text(memory))


def store_all(model: EmbeddingModel, made: Mapping[int, Made], unchanged: Iterable[int] = ()) -> int:
    """Store vectors by memory id and dequeue them and `unchanged`; return how many were stored.

    A memory that was changed or deleted meanwhile, or is being changed, stays in the queue.
    """
    for one in made.values():
        _checked(model, one.vector)
    with transaction.atomic():
        rows = Memory.objects.filter(pk__in=made).only("pk", "observation", "service").order_by("pk")
        if connection.vendor == "postgresql":
            # Skipping locked rows avoids deadlocks; the lock keeps texts unchanged until the commit.
            rows = rows.select_for_update(skip_locked=True, of=("self",), no_key=True)
        same = {row.pk: made[row.pk] for row in rows if hash_of(row) == made[row.pk].content_hash}
        _replace(model, same)
        PendingEmbedding.objects.filter(model=model, memory__in=list(unchanged)).delete()
    return len(same)


def _replace(model: EmbeddingModel, vectors: Mapping[int, Made]) -> None:
    Embedding.objects.filter(model=model, memory__in=list(vectors)).delete()
    Embedding.objects.bulk_create(
        [
            Embedding(model=model, memory_id=pk, vector=to_bytes(one.vector), content_hash=one.content_hash)
            for pk, one in vectors.items()
        ],
        ignore_conflicts=True,
    )
    PendingEmbedding.objects.filter(model=model, memory__in=list(vectors)).delete()


def _checked(model: EmbeddingModel, vector: Vectors) -> None:
    if vector.shape != (model.dimensions,):
        raise ValueError(f"a vector of {vector.shape} cannot be stored for {model.name}, which has {model.dimensions}")


NAMES = ("embeddings_memory_added", "embeddings_memory_changed", "embeddings_memory_removed")

_IN_LINE = "INSERT INTO embedding_pending (model_id, memory_id)"
_AGAIN = "ON CONFLICT (memory_id, model_id) DO UPDATE SET failed_at = NULL, error = ''"

SQLITE = (
    f"""CREATE TRIGGER embeddings_memory_added AFTER INSERT ON memories BEGIN
  {_IN_LINE} SELECT id, NEW.id FROM embedding_models WHERE state <> 'retired' ON CONFLICT DO NOTHING;
END""",  # noqa: S608
    f"""CREATE TRIGGER embeddings_memory_changed AFTER UPDATE OF observation, service ON memories
WHEN OLD.observation IS NOT NEW.observation OR OLD.service IS NOT NEW.service BEGIN
  DELETE FROM embeddings WHERE memory_id = NEW.id;
  {_IN_LINE} SELECT id, NEW.id FROM embedding_models WHERE state <> 'retired' {_AGAIN};
END""",  # noqa: S608
    """CREATE TRIGGER embeddings_memory_removed AFTER DELETE ON memories BEGIN
  DELETE FROM embeddings WHERE memory_id = OLD.id;
  DELETE FROM embedding_pending WHERE memory_id = OLD.id;
END""",
)

POSTGRESQL = (
    f"""CREATE OR REPLACE FUNCTION embeddings_memory_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  {_IN_LINE} SELECT m.id, a.id FROM added a CROSS JOIN embedding_models m WHERE m.state <> 'retired'
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$""",  # noqa: S608
    f"""CREATE OR REPLACE FUNCTION embeddings_memory_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  DELETE FROM embeddings WHERE memory_id = NEW.id;
  {_IN_LINE} SELECT id, NEW.id FROM embedding_models WHERE state <> 'retired' {_AGAIN};
  RETURN NULL;
END $$""",  # noqa: S608
    """CREATE OR REPLACE FUNCTION embeddings_memory_removed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  DELETE FROM embeddings WHERE memory_id IN (SELECT id FROM removed);
  DELETE FROM embedding_pending WHERE memory_id IN (SELECT id FROM removed);
  RETURN NULL;
END $$""",
    "DROP TRIGGER IF EXISTS embeddings_memory_added ON memories",
    "DROP TRIGGER IF EXISTS embeddings_memory_changed ON memories",
    "DROP TRIGGER IF EXISTS embeddings_memory_removed ON memories",
    """CREATE TRIGGER embeddings_memory_added AFTER INSERT ON memories
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION embeddings_memory_added()""",
    """CREATE TRIGGER embeddings_memory_changed AFTER UPDATE OF observation, service ON memories FOR EACH ROW
WHEN (OLD.observation IS DISTINCT FROM NEW.observation OR OLD.service IS DISTINCT FROM NEW.service)
EXECUTE FUNCTION embeddings_memory_changed()""",
    """CREATE TRIGGER embeddings_memory_removed AFTER DELETE ON memories
REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION embeddings_memory_removed()""",
)


def make_triggers(connection: Any) -> None:
    """Create the triggers where their tables are; idempotent."""
    if "embedding_pending" not in connection.introspection.table_names():
        return  # of an app that was migrated alone, before this one
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            for statement in POSTGRESQL:
                cursor.execute(statement)
            return
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'memories'")
        there = dict(cursor.fetchall())
        for name, statement in zip(NAMES, SQLITE, strict=True):
            if there.get(name) != statement:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
                cursor.execute(statement)
