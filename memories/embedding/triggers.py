"""Create the database triggers that keep vectors in step with memories, whoever writes them.

A new memory is queued for each model in use; a changed text loses its vector and is queued; a deleted memory takes its
vectors along. Every `migrate` makes them, because SQLite drops a table's triggers when it rebuilds the table.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

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


def make(connection: Any) -> None:
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
