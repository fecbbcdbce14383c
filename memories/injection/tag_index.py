"""Keep the table `project_tags` in step with the tags of project memories, by triggers; find the tags of a project.

Triggers, because memories are written past the ORM in places. Must not import models: every `migrate` calls it, because
SQLite drops a table's triggers when it rebuilds the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.db import connection, transaction

ALL_PROJECTS = 0
"""The `project_id` of the tags of memories of all projects."""

PLAIN, PATTERN = 0, 1
"""A tag of ASCII letters, digits and underscores, stored in lower case: found by a word. Any other is compared."""

LONGEST = 200
"""Characters; a longer tag matches nothing."""
MOST_PATTERNS = 5000
"""Distinct patterns of a project that are compared, in the order of their text."""

NAMES = ("project_tags_added", "project_tags_changed", "project_tags_removed")
_INTO = "INSERT INTO project_tags (memory_id, project_id, kind, tag)"
_OURS = "{row}.taxonomy = 'project'"
_CHANGED = ("tags", "project_id", "taxonomy")

_SQLITE_TAGS = f"""{_INTO} SELECT DISTINCT m.id, COALESCE(m.project_id, {ALL_PROJECTS}), t.value GLOB '*[^A-Za-z0-9_]*',
  CASE WHEN t.value GLOB '*[^A-Za-z0-9_]*' THEN t.value ELSE lower(t.value) END
  FROM memories m, json_each(m.tags) t
  WHERE t.type = 'text' AND t.value <> '' AND length(t.value) <= {LONGEST} AND {_OURS.format(row="m")}"""  # noqa: S608
_POSTGRESQL_TAGS = f"""{_INTO} SELECT DISTINCT m.id, COALESCE(m.project_id, {ALL_PROJECTS}),
  (t.tag ~ '[^A-Za-z0-9_]')::int,
  CASE WHEN t.tag ~ '[^A-Za-z0-9_]' THEN t.tag ELSE lower(t.tag) END
  FROM memories m, jsonb_array_elements(CASE jsonb_typeof(m.tags) WHEN 'array' THEN m.tags ELSE '[]' END) e(item),
  LATERAL (SELECT e.item #>> '{{}}' AS tag) t
  WHERE jsonb_typeof(e.item) = 'string' AND t.tag <> '' AND length(t.tag) <= {LONGEST}
  AND {_OURS.format(row="m")}"""  # noqa: S608

SQLITE = (
    f"""CREATE TRIGGER project_tags_added AFTER INSERT ON memories
WHEN {_OURS.format(row="NEW")} AND NEW.tags <> '[]' BEGIN
  {_SQLITE_TAGS} AND m.id = NEW.id;
END""",
    f"""CREATE TRIGGER project_tags_changed AFTER UPDATE OF {", ".join(_CHANGED)} ON memories
WHEN {" OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in _CHANGED)} BEGIN
  DELETE FROM project_tags WHERE memory_id = OLD.id;
  {_SQLITE_TAGS} AND m.id = NEW.id;
END""",  # noqa: S608
    """CREATE TRIGGER project_tags_removed AFTER DELETE ON memories
WHEN OLD.taxonomy = 'project' BEGIN
  DELETE FROM project_tags WHERE memory_id = OLD.id;
END""",
)

POSTGRESQL = (
    f"""CREATE OR REPLACE FUNCTION project_tags_keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP <> 'INSERT' THEN DELETE FROM project_tags WHERE memory_id = OLD.id; END IF;
  IF TG_OP <> 'DELETE' THEN {_POSTGRESQL_TAGS} AND m.id = NEW.id; END IF;
  RETURN NULL;
END $$""",  # noqa: S608
    *(f"DROP TRIGGER IF EXISTS {name} ON memories" for name in NAMES),
    f"""CREATE TRIGGER project_tags_added AFTER INSERT ON memories FOR EACH ROW
WHEN ({_OURS.format(row="NEW")} AND NEW.tags <> '[]') EXECUTE FUNCTION project_tags_keep()""",
    f"""CREATE TRIGGER project_tags_changed AFTER UPDATE OF {", ".join(_CHANGED)} ON memories FOR EACH ROW
WHEN ({" OR ".join(f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in _CHANGED)})
EXECUTE FUNCTION project_tags_keep()""",
    """CREATE TRIGGER project_tags_removed AFTER DELETE ON memories FOR EACH ROW
WHEN (OLD.taxonomy = 'project') EXECUTE FUNCTION project_tags_keep()""",
)


def keep(connection: Any) -> None:
    """Make the triggers if they are missing or of another text, and fill the table then; idempotent."""
    if not {"memories", "project_tags"} <= set(connection.introspection.table_names()):
        return
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT tgname FROM pg_trigger WHERE tgname = ANY(%s)", [list(NAMES)])
            complete = len(cursor.fetchall()) == len(NAMES)
            for statement in POSTGRESQL:
                cursor.execute(statement)
        else:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'memories'")
            there = dict(cursor.fetchall())
            complete = all(there.get(name) == text for name, text in zip(NAMES, SQLITE, strict=True))
            if not complete:
                for name, statement in zip(NAMES, SQLITE, strict=True):
                    cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
                    cursor.execute(statement)
        if not complete:
            cursor.execute("DELETE FROM project_tags")
            cursor.execute(_POSTGRESQL_TAGS if connection.vendor == "postgresql" else _SQLITE_TAGS)


def plain_among(project_id: int, words: Iterable[str]) -> list[str]:
    """Return those of `words` (casefolded) that are plain tags of the project: one look into the index a word."""
    tags = sorted({word for word in words if word.isascii() and len(word) <= LONGEST})
    if not tags:
        return []
    values = (
        "unnest(CAST(%s AS text[])) AS word(value)" if connection.vendor == "postgresql" else "json_each(%s) AS word"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT word.value FROM {values} WHERE EXISTS (SELECT 1 FROM project_tags t "  # noqa: S608
            f"WHERE t.project_id = %s AND t.kind = {PLAIN} AND t.tag = word.value) ORDER BY 1",
            [tags if connection.vendor == "postgresql" else json.dumps(tags), project_id],
        )
        return [row[0] for row in cursor.fetchall()]


def patterns(project_id: int) -> Iterator[str]:
    """Yield the distinct patterns of the project, jumping from one to the next in the index."""
    ours = f"SELECT tag FROM project_tags WHERE project_id = %s AND kind = {PATTERN}"  # noqa: S608
    first = "ORDER BY tag LIMIT 1"
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH RECURSIVE one(tag) AS (SELECT ({ours} {first}) UNION ALL "  # noqa: S608
            f"SELECT ({ours} AND tag > one.tag {first}) FROM one WHERE one.tag IS NOT NULL) "
            f"SELECT tag FROM one WHERE tag IS NOT NULL LIMIT {MOST_PATTERNS}",
            [project_id, project_id],
        )
        yield from (row[0] for row in cursor.fetchall())
