"""The table that pgvector searches, kept in step with the stored vectors by triggers, and its index, built meanwhile.

The table is a copy at half precision that can be dropped at any time. Whatever is missing of it is made again by
`keep`, a minute's task; until it is whole, numpy answers. Runs on PostgreSQL alone and asks no model.
"""

from __future__ import annotations

import logging
import select
import time
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from claudeops.lib.locks import single_flight
from memories.models import Embedding, EmbeddingModel, ModelState
from memories.recall import pgvector, pgvector_copy
from memories.recall.pgvector import DUE, TABLE, TRIGGERS, Extension

logger = logging.getLogger(__name__)

AUTO_FROM = 1_000_000
"""Vectors from which on `auto` makes an index. Below, numpy is the quicker one wherever it was measured (see
docs/recall.md); its scan and its file grow in proportion, an index's way does not."""
LINKS, BUILD_CANDIDATES = 16, 100
"""The index's m and ef_construction. What they give is in docs/recall.md."""
BUILD_MEMORY = 1_048_576
"""Kilobytes at most for a build, when so many are needed: an index that does not fit is built ten times as slowly."""
LOCK_KEY = 0x636C_7067_76  # "clpgv"

_GUARDED = "IF to_regclass('embedding_vectors') IS NOT NULL AND to_regclass('embedding_vectors_due') IS NOT NULL THEN"
"""A dump that was restored where there is no pgvector has the triggers and no table: writing goes on."""


def _function(name: str, body: str) -> str:
    return (
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {_GUARDED} {body} "
        "END IF; RETURN NULL; END $$"
    )


FUNCTIONS = (
    _function(
        "embedding_vectors_added",
        f"INSERT INTO {DUE} (embedding_id, model_id) SELECT id, model_id FROM added ON CONFLICT DO NOTHING;",  # noqa: S608
    ),
    _function(
        "embedding_vectors_changed",
        f"DELETE FROM {TABLE} WHERE embedding_id = OLD.id; DELETE FROM {DUE} WHERE embedding_id = OLD.id; "  # noqa: S608
        f"INSERT INTO {DUE} (embedding_id, model_id) VALUES (NEW.id, NEW.model_id) "
        "ON CONFLICT (embedding_id) DO UPDATE SET model_id = EXCLUDED.model_id;",
    ),
    _function(
        "embedding_vectors_removed",
        f"DELETE FROM {TABLE} WHERE embedding_id IN (SELECT id FROM removed); "  # noqa: S608
        f"DELETE FROM {DUE} WHERE embedding_id IN (SELECT id FROM removed);",
    ),
    _function("embedding_vectors_emptied", f"DELETE FROM {TABLE}; DELETE FROM {DUE};"),  # noqa: S608
)
WHEN = {
    "embedding_vectors_added": "AFTER INSERT ON embeddings REFERENCING NEW TABLE AS added FOR EACH STATEMENT",
    "embedding_vectors_changed": "AFTER UPDATE ON embeddings FOR EACH ROW",
    "embedding_vectors_removed": "AFTER DELETE ON embeddings REFERENCING OLD TABLE AS removed FOR EACH STATEMENT",
    "embedding_vectors_emptied": "AFTER TRUNCATE ON embeddings FOR EACH STATEMENT",
}


@dataclass(frozen=True, slots=True)
class Kept:
    """What `keep` did: `moved` vectors copied, `built` the index that was made, `reason` why there is none."""

    moved: int = 0
    built: str = ""
    reason: str = ""


def try_extension() -> str:
    """Make the extension where it is not there and this user may. Returns why not; empty when it is there.

    After a migrate alone: a refusal is a line in the server's log, and what somebody dropped stays dropped.
    """
    if connection.vendor != "postgresql":
        return pgvector.SQLITE
    if settings.CLAUDEOPS_VECTOR_SEARCH == "numpy":
        return "CLAUDEOPS_VECTOR_SEARCH is numpy"
    if pgvector.extension() is not None:
        return ""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
            if cursor.fetchone() is None:
                return "this PostgreSQL server has no pgvector installed"
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except DatabaseError as error:
        reason = str(error).splitlines()[0][:200]
        logger.info("pgvector is not used: %s", reason)
        return reason
    finally:
        pgvector.forget()
    return ""


def keep(seconds: float = 200.0) -> Kept:
    """Copy what is due, and make the active model's index where it is missing. Never raises for what pgvector lacks.

    Works for about `seconds`; an index that is not ready by then goes on being built by the database itself.
    """
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        return Kept(reason="inside a transaction" if connection.in_atomic_block else pgvector.SQLITE)
    if settings.CLAUDEOPS_VECTOR_SEARCH == "numpy":
        drop()
        return Kept(reason="CLAUDEOPS_VECTOR_SEARCH is numpy")
    end = time.monotonic() + seconds
    try:
        with single_flight(LOCK_KEY, Path(settings.CLAUDEOPS_DATA_DIR) / "pgvector.lock") as only:
            return _kept(end) if only else Kept(reason="another one is at it")
    except DatabaseError as error:
        logger.warning("pgvector's index could not be kept: %s", error)
        return Kept(reason=str(error).splitlines()[0][:200])
    finally:
        pgvector.forget()


def drop() -> None:
    """Remove table, index and triggers: numpy answers, and writing a vector costs nothing more."""
    if connection.vendor != "postgresql":
        return
    pgvector.forget()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL OR to_regproc(%s) IS NOT NULL", [TABLE, TRIGGERS[0]])
        if not cursor.fetchone()[0]:
            return
        with transaction.atomic():
            cursor.execute("SELECT to_regclass('embeddings') IS NOT NULL")
            if cursor.fetchone()[0]:
                for name in TRIGGERS:
                    cursor.execute(f"DROP TRIGGER IF EXISTS {name} ON embeddings")
            for name in TRIGGERS:
                cursor.execute(f"DROP FUNCTION IF EXISTS {name}()")
            cursor.execute(f"DROP TABLE IF EXISTS {TABLE}, {DUE}")


def _kept(end: float) -> Kept:
    model = EmbeddingModel.objects.filter(state=ModelState.ACTIVE).first()
    if model is None:
        return Kept(reason="no model's vectors answer yet")
    found = pgvector.extension()
    reason = pgvector.unfit(model, found)
    if reason or found is None:
        return Kept(reason=reason)
    if _building():
        return Kept(
            pgvector_copy.move(found, end, pgvector_copy.BATCH_INDEXED), reason="pgvector's index is being built"
        )
    whole = _whole()
    if not whole and settings.CLAUDEOPS_VECTOR_SEARCH == "auto" and not _many(model):
        return Kept(reason=f"fewer than {AUTO_FROM:,} vectors")
    if not whole:
        _make(found)
    index = pgvector.index_name(model)
    valid = _valid(index)
    moved = pgvector_copy.move(found, end, pgvector_copy.BATCH if valid is None else pgvector_copy.BATCH_INDEXED)
    _drop_others(index)
    if valid:
        return Kept(moved)
    if settings.CLAUDEOPS_VECTOR_SEARCH == "auto" and not _many(model):
        return Kept(moved, reason=f"fewer than {AUTO_FROM:,} vectors")
    moved += pgvector_copy.walk(found, model, end)
    if time.monotonic() >= end:
        return Kept(moved, reason="the vectors are being copied")
    if valid is not None:  # begun by a process that died
        with connection.cursor() as cursor:
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index}")
    done = _build(found, model, end)
    return Kept(moved, built=index if done else "", reason="" if done else "pgvector's index is being built")


def _many(model: EmbeddingModel) -> bool:
    return Embedding.objects.filter(model=model).order_by("id")[AUTO_FROM - 1 : AUTO_FROM].exists()


def _whole() -> bool:
    """Whether the tables are there with their column (a dropped extension takes that along) and all triggers work."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass('embeddings') AND tgname = ANY(%s) "
            "AND tgenabled IN ('O', 'A')), to_regclass(%s) IS NOT NULL, EXISTS (SELECT 1 FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attname = 'vector' AND NOT attisdropped)",
            [list(TRIGGERS), DUE, TABLE],
        )
        triggers, due, column = cursor.fetchone()
    return bool(triggers == len(TRIGGERS) and due and column)


def _make(found: Extension) -> None:
    """Tables and triggers, from nothing: what was written while one of them was missing is in no copy."""
    drop()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE {TABLE} (embedding_id bigint PRIMARY KEY, model_id bigint NOT NULL, "
            f"memory_id bigint NOT NULL, vector {found.type()} NOT NULL)"
        )
        cursor.execute(f"CREATE INDEX {TABLE}_by_memory ON {TABLE} (memory_id, model_id)")
        cursor.execute(f"CREATE TABLE {DUE} (embedding_id bigint PRIMARY KEY, model_id bigint NOT NULL)")
        cursor.execute(f"CREATE INDEX {DUE}_by_model ON {DUE} (model_id, embedding_id)")
        for statement in FUNCTIONS:
            cursor.execute(statement)
        for name, when in WHEN.items():
            cursor.execute(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {name}()")


def _valid(index: str) -> bool | None:
    """Whether the index answers; None when there is none."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid AND indisready FROM pg_index WHERE indexrelid = to_regclass(%s)", [index])
        found = cursor.fetchone()
    return bool(found[0]) if found else None


def _building() -> bool:
    """Whether an index is being built: whoever began it may be gone by now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
            "WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database() "
            "AND (l.classid::bigint << 32) + l.objid::bigint = %s)",
            [LOCK_KEY + 1],
        )
        return bool(cursor.fetchone()[0])


def _drop_others(index: str) -> None:
    """Indexes of models that answer no more."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "WHERE i.indrelid = to_regclass(%s) AND c.relname LIKE %s AND c.relname <> %s",
            [TABLE, f"{TABLE}\\_hnsw\\_%", index],
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {connection.ops.quote_name(name)}")


def _build(found: Extension, model: EmbeddingModel, end: float) -> bool:
    """Make the model's index while everybody reads and writes. Returns whether it was ready in time; if not, the
    database goes on by itself: the statement ends with its work, not with our connection."""
    other = connection.copy()
    other.ensure_connection()
    raw = other.connection
    try:
        with raw.cursor() as cursor:
            # On the connection that builds: held until the build ends, though we are gone by then.
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK_KEY + 1])
            if not cursor.fetchone()[0]:
                return False
            cursor.execute("SELECT count(*) FROM embeddings WHERE model_id = %s", [model.pk])
            kilobytes = min(BUILD_MEMORY, cursor.fetchone()[0] * (2 * model.dimensions + 500) // 1000 + 65_536)
            cursor.execute(
                "SELECT set_config('client_min_messages', 'error', false), "
                "set_config('statement_timeout', '0', false), "
                "set_config('maintenance_work_mem', greatest(%s, setting::int)::text, false) "
                "FROM pg_settings WHERE name = 'maintenance_work_mem'",
                [kilobytes],
            )
        expression = f"(vector::{found.type(model.dimensions)})"
        kind = f"{connection.ops.quote_name(found.schema)}.halfvec_ip_ops"
        raw.pgconn.send_query(
            f"CREATE INDEX CONCURRENTLY {pgvector.index_name(model)} ON {TABLE} USING hnsw ({expression} {kind}) "
            f"WITH (m = {LINKS}, ef_construction = {BUILD_CANDIDATES}) WHERE model_id = {model.pk:d}".encode()
        )
        while raw.pgconn.is_busy():
            if not select.select([raw.fileno()], [], [], max(0.0, end - time.monotonic()))[0]:
                return False
            raw.pgconn.consume_input()
        result = raw.pgconn.get_result()
        if result is not None and result.error_message:
            raise DatabaseError(result.error_message.decode(errors="replace"))
        return True
    finally:
        raw.pgconn.finish() if raw.pgconn.is_busy() else other.close()
