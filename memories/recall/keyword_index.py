"""Maintain the full-text index.

Triggers queue changed memories, whoever writes them; `catch_up` indexes them, and until then searches read them as
texts. `ensure` recreates triggers: a migration that rebuilds `memories` on SQLite drops them silently.
"""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction

from memories.models import Memory, MemoryTerms, MemoryTermsDue
from memories.recall.query import index_terms

BATCH = 500
PAUSE = 0.2
"""Longest pause in seconds between two batches on SQLite; otherwise as long as a batch took."""

# Only changes of searched columns make a memory due; confidence, verdict and times do not.
SQLITE_TRIGGERS = {
    "memory_terms_on_insert": (
        "AFTER INSERT ON memories BEGIN INSERT OR IGNORE INTO memory_terms_due (memory_id) VALUES (new.id); END"
    ),
    "memory_terms_on_update": (
        "AFTER UPDATE OF observation, service, tags, created_at ON memories BEGIN "
        "INSERT OR IGNORE INTO memory_terms_due (memory_id) VALUES (new.id); END"
    ),
    "memory_terms_on_delete": (
        "AFTER DELETE ON memories BEGIN DELETE FROM memory_terms WHERE memory_id = old.id; "
        "DELETE FROM memory_terms_due WHERE memory_id = old.id; END"
    ),
    "memory_terms_fts_insert": (
        "AFTER INSERT ON memory_terms BEGIN "
        "INSERT INTO memory_terms_fts (rowid, terms) VALUES (new.memory_id, new.terms); END"
    ),
    "memory_terms_fts_delete": (
        "AFTER DELETE ON memory_terms BEGIN INSERT INTO memory_terms_fts (memory_terms_fts, rowid, terms) "
        "VALUES ('delete', old.memory_id, old.terms); END"
    ),
    "memory_terms_fts_update": (
        "AFTER UPDATE ON memory_terms BEGIN INSERT INTO memory_terms_fts (memory_terms_fts, rowid, terms) "
        "VALUES ('delete', old.memory_id, old.terms); "
        "INSERT INTO memory_terms_fts (rowid, terms) VALUES (new.memory_id, new.terms); END"
    ),
}
SQLITE_TABLES = (
    # No positions and no sizes: terms are only looked up, the ranking is ours. Every character of a term is a token's.
    "CREATE VIRTUAL TABLE IF NOT EXISTS memory_terms_fts USING fts5(terms, content='memory_terms', "
    "content_rowid='memory_id', tokenize=\"ascii tokenchars '_'\", detail=none, columnsize=0)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS memory_terms_vocabulary USING fts5vocab('memory_terms_fts', 'row')",
)

POSTGRESQL_TRIGGERS = {
    "memory_terms_on_insert": "AFTER INSERT ON memories FOR EACH ROW EXECUTE FUNCTION memory_terms_mark()",
    "memory_terms_on_update": (
        "AFTER UPDATE OF observation, service, tags, created_at ON memories "
        "FOR EACH ROW EXECUTE FUNCTION memory_terms_mark()"
    ),
    "memory_terms_on_delete": "AFTER DELETE ON memories FOR EACH ROW EXECUTE FUNCTION memory_terms_forget()",
    "memory_terms_on_truncate": "AFTER TRUNCATE ON memories FOR EACH STATEMENT EXECUTE FUNCTION memory_terms_empty()",
}
POSTGRESQL_TABLES = (
    "ALTER TABLE memory_terms ADD COLUMN IF NOT EXISTS vector tsvector "
    "GENERATED ALWAYS AS (array_to_tsvector(string_to_array(terms, ' '))) STORED",
    "CREATE INDEX IF NOT EXISTS memory_terms_vector ON memory_terms USING gin (vector)",
    "CREATE OR REPLACE FUNCTION memory_terms_mark() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "INSERT INTO memory_terms_due (memory_id) VALUES (NEW.id) "
    # Not DO NOTHING: the lock on the row keeps `catch_up` from reading the text that is about to change.
    "ON CONFLICT (memory_id) DO UPDATE SET memory_id = EXCLUDED.memory_id; RETURN NULL; END $$",
    "CREATE OR REPLACE FUNCTION memory_terms_forget() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    # In the order of `catch_up`, to avoid deadlocks.
    "DELETE FROM memory_terms_due WHERE memory_id = OLD.id; DELETE FROM memory_terms WHERE memory_id = OLD.id; "
    "RETURN NULL; END $$",
    "CREATE OR REPLACE FUNCTION memory_terms_empty() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "DELETE FROM memory_terms; DELETE FROM memory_terms_due; RETURN NULL; END $$",
)
MISSING_ROWS = (
    "INSERT INTO memory_terms_due (memory_id) SELECT m.id FROM memories m "
    "WHERE NOT EXISTS (SELECT 1 FROM memory_terms t WHERE t.memory_id = m.id) "
    "AND NOT EXISTS (SELECT 1 FROM memory_terms_due d WHERE d.memory_id = m.id)"
)
ALL_ROWS = (
    "INSERT INTO memory_terms_due (memory_id) SELECT m.id FROM memories m "
    "WHERE NOT EXISTS (SELECT 1 FROM memory_terms_due d WHERE d.memory_id = m.id)"
)
ORPHANS = "DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = {table}.memory_id)"


TEXTS = ("observation", "service", "tags", "created_at")
"""The columns that `text_of` takes."""


def text_of(observation: str, service: str | None, tags: Iterable[str] | None, created_at: datetime) -> str:
    """Return the indexed text of a memory, with its month and year as words: "in May" finds what was said in May."""
    moment = created_at.astimezone(UTC)
    month = calendar.month_name[moment.month]
    return " ".join([service or "", observation, *(str(tag) for tag in tags or ()), month, str(moment.year)])


def missing() -> list[str]:
    """Return the names of missing triggers and tables of the index."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D' "
                "AND tgrelid = to_regclass('memories')"
            )
            there = {name for (name,) in cursor.fetchall()}
            cursor.execute("SELECT to_regclass('memory_terms_vector') IS NOT NULL")
            if cursor.fetchone()[0]:
                there.add("memory_terms_vector")
            return [name for name in (*POSTGRESQL_TRIGGERS, "memory_terms_vector") if name not in there]
        cursor.execute("SELECT name FROM sqlite_master WHERE type IN ('trigger', 'table')")
        there = {name for (name,) in cursor.fetchall()}
        return [name for name in (*SQLITE_TRIGGERS, "memory_terms_fts", "memory_terms_vocabulary") if name not in there]


def ensure() -> list[str]:
    """Create what is missing of the index, and queue what may have changed. Returns what was missing. Idempotent."""
    lost = missing()
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            for statement in POSTGRESQL_TABLES:
                cursor.execute(statement)
            for name, body in POSTGRESQL_TRIGGERS.items():
                if name in lost:
                    cursor.execute(f"DROP TRIGGER IF EXISTS {name} ON memories")
                    cursor.execute(f"CREATE TRIGGER {name} {body}")
        else:
            for statement in SQLITE_TABLES:
                cursor.execute(statement)
            for name, body in SQLITE_TRIGGERS.items():
                cursor.execute(f"CREATE TRIGGER IF NOT EXISTS {name} {body}")
            if any(name.startswith("memory_terms_fts") for name in lost):
                cursor.execute("INSERT INTO memory_terms_fts (memory_terms_fts) VALUES ('rebuild')")
        # While a trigger was missing, any text may have changed.
        cursor.execute(ALL_ROWS if "memory_terms_on_update" in lost else MISSING_ROWS)
        for table in ("memory_terms", "memory_terms_due"):
            cursor.execute(ORPHANS.format(table=table))
    return lost


DUE = "SELECT memory_id FROM memory_terms_due ORDER BY memory_id DESC LIMIT %s"


def due(limit: int) -> list[int]:
    """Return the ids of the memories whose terms are outdated, the newest first."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, [limit])
        return [pk for (pk,) in cursor.fetchall()]


def catch_up(limit: int | None = None, batch: int = BATCH) -> int:
    """Index what is due, in short transactions of `batch` rows; return how many rows were done."""
    count = 0
    while limit is None or count < limit:
        ids = due(batch if limit is None else min(batch, limit - count))
        if not ids:
            break
        begun = time.monotonic()
        _index(ids)
        count += len(ids)
        if connection.vendor == "sqlite" and len(ids) == batch:
            # SQLite does not queue its writers: without a pause the others might never get the lock.
            time.sleep(min(PAUSE, time.monotonic() - begun))
    return count


def index(ids: Sequence[int], batch: int = BATCH) -> None:
    """Index those of these memories that are due, in short transactions of `batch` rows."""
    for start in range(0, len(ids), batch):
        _index(ids[start : start + batch])


def put(memory: Memory) -> None:
    """Index a memory that was created in the same transaction, so that it is not due."""
    terms = index_terms(text_of(*(getattr(memory, name) for name in TEXTS)))
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO memory_terms (memory_id, terms, length) VALUES (%s, %s, %s)",
            [memory.pk, " ".join(terms), len(terms)],
        )
        cursor.execute("DELETE FROM memory_terms_due WHERE memory_id = %s", [memory.pk])


def _index(ids: Sequence[int]) -> None:
    # Read the texts inside the transaction: the terms must match the text, and a row that is edited meanwhile becomes
    # due again.
    with transaction.atomic():
        due_ids = set(
            MemoryTermsDue.objects.select_for_update(skip_locked=connection.features.has_select_for_update_skip_locked)
            .filter(memory_id__in=ids)
            .values_list("memory_id", flat=True)
        )
        MemoryTermsDue.objects.filter(memory_id__in=due_ids).delete()
        rows = Memory.objects.filter(pk__in=due_ids).values_list("pk", *TEXTS)
        terms_by_id = {pk: index_terms(text_of(*texts)) for pk, *texts in rows}
        MemoryTerms.objects.bulk_create(
            [MemoryTerms(memory_id=pk, terms=" ".join(terms), length=len(terms)) for pk, terms in terms_by_id.items()],
            update_conflicts=True,
            unique_fields=["memory_id"],
            update_fields=["terms", "length"],
        )


FEW = 1_000
"""Larger counts are cached: one more memory hardly changes them."""
RECOUNT = 300.0
"""Seconds for which a large count is cached: counting a common term reads all its memories."""
MOST_KEPT = 10_000
SAMPLED_FROM = 20_000
"""Memories from which PostgreSQL's statistics count common terms, since counting reads each row.

On 100,000 rows, of thirty terms in 1,000 to 30,000 of them none was off by more than 7 %.
"""


@dataclass(frozen=True, slots=True)
class Collection:
    """The number of indexed memories, and the mean number of their terms."""

    size: int
    mean_length: float


_collections: dict[str, tuple[float, Collection]] = {}
_counts: dict[tuple[str, str], tuple[float, int]] = {}
_shares: dict[str, tuple[float, dict[str, float]]] = {}


def collection() -> Collection:
    name, now = _database(), time.monotonic()
    at, previous = _collections.get(name, (0.0, None))
    if previous is not None and now - at < RECOUNT:
        return previous
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), AVG(length) FROM memory_terms")
        size, mean = cursor.fetchone()
    current = Collection(size, float(mean or 1.0))
    if size > FEW and not connection.in_atomic_block:
        _collections[name] = (now, current)
    return current


def frequencies(terms: Sequence[str], size: int, unindexed: int = 0) -> tuple[dict[str, int], list[int]]:
    """Count the memories of each term, without terms that occur in none, and list what is not indexed, by one query.

    `size` is the collection's; the newest `unindexed` ids are listed. They are read no later than the counts, so that
    what is indexed in between is in the index.
    """
    name, now = _database(), time.monotonic()
    entries = ((term, *_counts.get((name, term), (-RECOUNT, 0))) for term in terms)
    counts = {term: count for term, at, count in entries if now - at < RECOUNT}
    missing = [term for term in terms if term not in counts]
    if missing and connection.vendor == "postgresql" and size >= SAMPLED_FROM:
        shares = _sampled(size)
        counts |= {term: count for term in missing if (count := round(shares.get(term, 0.0) * size)) > FEW}
        missing = [term for term in missing if term not in counts]
    counted, due = _counted(missing, unindexed)
    if not connection.in_atomic_block:
        if len(_counts) > MOST_KEPT:
            _counts.clear()
        _counts.update({(name, term): (now, count) for term, count in counted.items() if count > FEW})
    return counts | counted, due


def _counted(terms: Sequence[str], unindexed: int) -> tuple[dict[str, int], list[int]]:
    if connection.vendor == "postgresql":
        counts = (
            "SELECT term, (SELECT count(*) FROM memory_terms WHERE vector @@ asked) "
            "FROM unnest(%s::text[], %s::text[]::tsquery[]) missing (term, asked)"
        )
        values: list[Any] = [list(terms), [f"'{term}'" for term in terms]]
    else:
        marks, values = ", ".join(["%s"] * len(terms)), list(terms)
        counts = f"SELECT term, doc FROM memory_terms_vocabulary WHERE term IN ({marks})"  # noqa: S608
    with connection.cursor() as cursor:
        due = f"SELECT CAST(NULL AS text), memory_id FROM ({DUE}) due"  # noqa: S608
        cursor.execute(f"{due} UNION ALL {counts}", [unindexed, *values])
        rows = cursor.fetchall()
    return {term: count for term, count in rows if term and count}, [pk for term, pk in rows if term is None]


def _sampled(size: int) -> dict[str, float]:
    """Return the share of memories by common term, by the last ANALYZE; {} if it saw less than half of the rows."""
    name = _database()
    at, shares = _shares.get(name, (-RECOUNT, {}))
    if time.monotonic() - at < RECOUNT:
        return shares
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT held.term, held.share FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = 'vector' "
            "CROSS JOIN LATERAL unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) held (term, share) "
            "WHERE c.oid = to_regclass('memory_terms') AND c.reltuples * 2 >= %s AND held.term IS NOT NULL",
            [size],
        )
        shares = dict(cursor.fetchall())
    if not connection.in_atomic_block:
        _shares[name] = (time.monotonic(), shares)
    return shares


def forget() -> None:
    for cache in (_collections, _counts, _shares):
        cache.clear()


def _database() -> str:
    of = connection.settings_dict
    return f"{of['HOST']}|{of['PORT']}|{of['NAME']}"
