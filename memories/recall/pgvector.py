"""Search vectors by pgvector: an HNSW index over half-precision copies in a sibling table, which triggers keep.

A dump can be restored without pgvector. `ensure` runs every minute; until all copies exist, numpy answers.
"""

from __future__ import annotations

import logging
import time
from threading import Lock
from typing import Any

from django.db import DatabaseError, connection, transaction

from memories.models import Embedding, EmbeddingModel, ModelState
from memories.recall.filters import EVERYTHING, Where
from memories.recall.query_vector import QueryVector

logger = logging.getLogger(__name__)

TABLE = "embedding_halves"
NEAREST = 120
"""Memories that the index returns: a recall continues with at most a hundred."""
EF_SEARCH = 400
"""Candidates of an index scan. Recall@10 against the exact search is above .99 up to 200,000 vectors."""
NARROW = 5_000
NARROW_SHARE = 0.2
"""A scope of at most this many rows, or this share of all, is compared row by row.

There the index is no faster, and missed some of the nearest (recall@10 of 100,000: .995 in a fifth, .96 in a tenth, .91
in a fiftieth).
"""
AUTO_FROM = 1_000_000
"""Vectors from which pgvector is used: numpy was faster wherever it was measured below."""
BATCH = 200
"""Copies made in one transaction, about a millisecond each."""
CHECKED = 30.0
"""Seconds for which a process caches the state of the index."""
COMPLETE = "complete"
"""The comment on the index when all vectors are copied."""
MOST_DIMENSIONS = 4_000
"""The limit of an HNSW index at half precision."""

_lock = Lock()
_seen: dict[tuple[str, int], tuple[float, str]] = {}

HAS_COPIES = (
    f"SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('{TABLE}') AND attname = 'half' AND NOT attisdropped"  # noqa: S608
)
"""A dropped extension removes the column, and a dump restored without pgvector has no table."""
COPY = f"""
CREATE OR REPLACE FUNCTION embedding_half(raw bytea, dimensions int) RETURNS halfvec LANGUAGE sql IMMUTABLE
  SET search_path FROM CURRENT AS $$
  SELECT CASE WHEN octet_length(raw) <> 4 * dimensions OR bool_or(exponent = 255) THEN array_fill(0, ARRAY[dimensions])
    ELSE array_agg(CASE WHEN exponent = 0 THEN 0 ELSE sign * (1 + fraction / 8388608.0::float8)
      * power(2::float8, exponent - 127) END ORDER BY place) END::real[]::halfvec
  FROM (SELECT place, 1 - 2 * (high >> 7) AS sign, ((high & 127) << 1) + (middle >> 7) AS exponent,
      ((middle & 127) << 16) + (get_byte(raw, 4 * place + 1) << 8) + get_byte(raw, 4 * place) AS fraction
    FROM generate_series(0, least(dimensions, octet_length(raw) / 4) - 1) place,
      LATERAL (SELECT get_byte(raw, 4 * place + 3) AS high, get_byte(raw, 4 * place + 2) AS middle) bytes) numbers
$$;
CREATE OR REPLACE FUNCTION embedding_halves_copy() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT AS $$ BEGIN
  IF NOT EXISTS ({HAS_COPIES}) THEN RETURN NULL; END IF;
  IF TG_OP = 'TRUNCATE' THEN DELETE FROM {TABLE};
  ELSIF TG_OP = 'DELETE' THEN DELETE FROM {TABLE} WHERE embedding_id = OLD.id;
  ELSE INSERT INTO {TABLE} (embedding_id, model_id, memory_id, half)
    SELECT NEW.id, NEW.model_id, NEW.memory_id, embedding_half(NEW.vector, m.dimensions) FROM embedding_models m
    WHERE m.id = NEW.model_id AND m.dimensions <= {MOST_DIMENSIONS}
    ON CONFLICT (embedding_id) DO UPDATE SET half = EXCLUDED.half;
  END IF; RETURN NULL; END $$;
CREATE OR REPLACE TRIGGER {TABLE}_copy AFTER INSERT OR DELETE OR UPDATE OF vector ON embeddings
  FOR EACH ROW EXECUTE FUNCTION embedding_halves_copy();
CREATE OR REPLACE TRIGGER {TABLE}_empty AFTER TRUNCATE ON embeddings
  FOR EACH STATEMENT EXECUTE FUNCTION embedding_halves_copy();
"""  # noqa: S608
"""Decodes float32 from bytes, since PostgreSQL casts no bytea; NaN and infinity become zeros."""


FIND_TYPES = (
    "SELECT set_config('search_path', current_setting('search_path') || ', ' || quote_ident(n.nspname), true) "
    "FROM pg_extension x JOIN pg_namespace n ON n.oid = x.extnamespace WHERE x.extname = 'vector'"
)
"""Hosted databases keep extensions in a schema outside the search path."""


def unusable(model: EmbeddingModel) -> str:
    """Return why numpy searches the model's vectors instead of pgvector; "" when pgvector does."""
    if connection.vendor != "postgresql":
        return "numpy"
    key = (str(connection.settings_dict["NAME"]), model.pk)
    with _lock:
        at, reason = _seen.get(key, (-CHECKED, ""))
    if time.monotonic() - at > CHECKED:
        reason = _look(model)
        with _lock:
            _seen[key] = (time.monotonic(), reason)
    return f"numpy: {reason}" if reason else ""


def served_by(model: EmbeddingModel) -> str:
    """Name what searches this model's vectors, and why."""
    return unusable(model) or "pgvector (HNSW)"


def forget() -> None:
    """Clear the cached state, after the index was made or dropped."""
    with _lock:
        _seen.clear()


def nearest(query: QueryVector, scope: Where) -> tuple[list[tuple[int, bytes | memoryview]] | None, str]:
    """Return (the nearest (memory id, stored vector) in the scope, what searched); no rows if pgvector failed."""
    size, model = query.model.dimensions, query.model.pk
    vector = f"[{','.join(map('{:.6g}'.format, query.floats.tolist()))}]"
    order = f"(v.half::halfvec({size:d})) <#> %s::halfvec({size:d})"
    of_model = f"{TABLE} v WHERE v.model_id = {model:d}"
    read = "SELECT e.memory_id, e.vector FROM near JOIN embeddings e ON e.id = near.embedding_id"
    # The scope is a condition of each row that the scan meets, so that the index gives the order.
    inside = f"(SELECT {scope.sql} FROM memories WHERE memories.id = v.memory_id)"  # noqa: S608
    walk = f"SELECT v.embedding_id FROM {of_model} AND {inside} ORDER BY {order} LIMIT {NEAREST}"  # noqa: S608
    # The sum prevents the index scan: each row of the scope is compared.
    whole = (
        f"SELECT v.embedding_id FROM memories, {of_model} AND v.memory_id = memories.id AND {scope.sql} "  # noqa: S608
        f"ORDER BY ({order}) + 0 LIMIT {NEAREST}"
    )
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(FIND_TYPES)
            cursor.execute(
                "SELECT set_config('hnsw.ef_search', %s, true), "
                "set_config('hnsw.iterative_scan', 'relaxed_order', true)",
                [str(EF_SEARCH)],
            )
            rows: list[Any] = []
            if not _narrow(cursor, scope):
                cursor.execute(f"WITH near AS MATERIALIZED ({walk}) {read}", [*scope.params, vector])
                rows = cursor.fetchall()
            if len(rows) < NEAREST:
                cursor.execute(f"WITH near AS MATERIALIZED ({whole}) {read}", [*scope.params, vector])
                rows = cursor.fetchall()
            return rows, served_by(query.model)
    except DatabaseError as error:
        forget()
        return None, f"numpy: pgvector failed ({str(error).splitlines()[0][:200]})"


def _narrow(cursor: Any, scope: Where) -> bool:
    """Whether the planner estimates few rows in the scope. A wrong estimate costs time, no hit."""
    if scope == EVERYTHING:
        return False
    cursor.execute(f"EXPLAIN (FORMAT JSON) SELECT 1 FROM memories WHERE {scope.sql}", scope.params)  # noqa: S608
    rows = cursor.fetchone()[0][0]["Plan"]["Plan Rows"]
    cursor.execute("SELECT reltuples FROM pg_class WHERE oid = to_regclass('memories')")
    return bool(rows <= max(NARROW, NARROW_SHARE * cursor.fetchone()[0]))


def try_extension() -> str:
    """Create a missing extension if this user may; return why not.

    Only after a migrate, so that a dropped one stays so.
    """
    if connection.vendor != "postgresql":
        return "the database is SQLite"
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT installed_version FROM pg_available_extensions WHERE name = 'vector'")
            row = cursor.fetchone()
            if row is None:
                return "this PostgreSQL server has no pgvector installed"
            if row[0] is None:
                cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except DatabaseError as error:
        reason = str(error).splitlines()[0][:200]
        logger.info("pgvector is not used: %s", reason)
        return reason
    finally:
        forget()
    return ""


def ensure(seconds: float = 200.0) -> str:
    """Create table, triggers and index, copy vectors for about `seconds`; return why pgvector does not answer yet."""
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        return "inside a transaction" if connection.in_atomic_block else "the database is SQLite"
    model = EmbeddingModel.objects.filter(state=ModelState.ACTIVE).first()
    try:
        if model is None:
            return "no model's vectors answer yet"
        reason = _unfit(model)
        if not reason and not _many(model):
            reason = f"fewer than {AUTO_FROM:,} vectors"
        if reason:
            return reason
        end = time.monotonic() + seconds
        for other in EmbeddingModel.objects.filter(state=ModelState.BUILDING):  # while it has few vectors
            if not _unfit(other):
                _ensure(other, end)
        return _ensure(model, end)
    except DatabaseError as error:
        logger.warning("pgvector's index could not be made: %s", error)
        return str(error).splitlines()[0][:200]
    finally:
        forget()


def drop() -> None:
    """Drop the copies, the index and the triggers."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                f"DROP TABLE IF EXISTS {TABLE}; DROP FUNCTION IF EXISTS embedding_halves_copy() CASCADE; "
                "DROP FUNCTION IF EXISTS embedding_half"
            )
        forget()


def _index_of(model: EmbeddingModel) -> str:
    return f"{TABLE}_hnsw_{model.pk}"


def _unfit(model: EmbeddingModel) -> str:
    """Return why no index can be made for this model; "" when one can."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_to_array(extversion, '.')::int[] FROM pg_extension WHERE extname = 'vector'")
        row = cursor.fetchone()
    if row is None:
        return "this database has no extension pgvector"
    if tuple(row[0]) < (0, 8):
        return "pgvector is older than 0.8, which searches on until enough rows are within the scope"
    if model.dimensions > MOST_DIMENSIONS:
        return f"an HNSW index takes {MOST_DIMENSIONS:,} dimensions at most, and {model.name} has {model.dimensions:,}"
    return ""


def _look(model: EmbeddingModel) -> str:
    if reason := _unfit(model):
        return reason
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT obj_description(to_regclass(%s)), EXISTS (SELECT 1 FROM pg_trigger WHERE tgname = %s "
            "AND tgrelid = to_regclass('embeddings') AND tgenabled IN ('O', 'A'))",
            [_index_of(model), f"{TABLE}_copy"],
        )
        comment, trigger = cursor.fetchone()
    return "" if comment == COMPLETE and trigger else "pgvector's index is not complete yet"


def _many(model: EmbeddingModel) -> bool:
    return Embedding.objects.filter(model=model).order_by("id")[AUTO_FROM - 1 : AUTO_FROM].exists()


def _ensure(model: EmbeddingModel, end: float) -> str:
    if not _look(model):
        return ""
    size, index = model.dimensions, _index_of(model)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [TABLE])
        cursor.execute(FIND_TYPES)
        cursor.execute(HAS_COPIES)
        if cursor.fetchone() is None:
            drop()
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {TABLE} (embedding_id bigint PRIMARY KEY, "
            f"model_id bigint NOT NULL, memory_id bigint NOT NULL, half halfvec NOT NULL); {COPY}"
            f"CREATE INDEX IF NOT EXISTS {TABLE}_by_memory ON {TABLE} (memory_id); "
            f"CREATE INDEX IF NOT EXISTS {index} ON {TABLE} USING hnsw ((half::halfvec({size:d})) halfvec_ip_ops) "
            f"WHERE model_id = {model.pk:d}; COMMENT ON INDEX {index} IS NULL"
        )
    last = 0
    while time.monotonic() < end:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(FIND_TYPES)
            cursor.execute(
                "WITH missing AS (SELECT e.id, e.memory_id, e.vector FROM embeddings e "  # noqa: S608
                "WHERE e.model_id = %s AND e.id > %s "
                f"AND NOT EXISTS (SELECT 1 FROM {TABLE} v WHERE v.embedding_id = e.id) "
                f"ORDER BY e.id LIMIT {BATCH} FOR SHARE OF e), "
                f"copied AS (INSERT INTO {TABLE} (embedding_id, model_id, memory_id, half) SELECT id, %s, memory_id, "
                "embedding_half(vector, %s) FROM missing ON CONFLICT DO NOTHING) SELECT max(id) FROM missing",
                [model.pk, last, model.pk, size],
            )
            (highest,) = cursor.fetchone()
            if highest is None:
                cursor.execute(f"COMMENT ON INDEX {index} IS '{COMPLETE}'")
                return ""
            last = highest
    return "the vectors are being copied"
