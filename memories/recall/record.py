"""What was asked and answered, kept: one row appended after an answer, counted on the memories by a schedule.

Nothing here is on the read's way: an answer never waits for a counter, and never fails for one.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.models import Case, F, IntegerField, Value, When

from memories import prepared
from memories.capture.text import fold
from memories.errors import MemoryNotFound
from memories.models import Memory, Recalled, RecallMark, RecallVote, to_utc
from memories.recall.values import Asker, Filters, Hit, InvalidRecall, scope_as_dict

log = logging.getLogger(__name__)

LONGEST_QUERY = 2_000
IMPATIENT = 0.02
"""Seconds that an answer waits for SQLite's one writer before its record is left to a thread."""
MOST_WAITING = 1_000
NOT_RECORDED = "a recall was answered and could not be recorded: %s"
BATCH = 500


def answered(
    query: str, filters: Filters, hits: tuple[Hit, ...], asker: Asker, at: datetime, rewritten: str = ""
) -> int | None:
    """Append one row; `rewritten` is what was searched beside the query.

    None when it could not be written: the answer is worth more than its record. Where SQLite's one writer is busy
    it is written as soon as that is done, by a thread, and the answer does not wait.
    """
    row = {
        "query": _kept(query),
        "rewritten": _kept(rewritten),
        "filters": scope_as_dict(filters),
        "hits": [[hit.memory_id, round(hit.score, 4)] for hit in hits],
        "surface": asker.surface[:16],
        "actor": asker.actor[:150],
        "session_id": asker.session_id,
        "at": at,
        "counted": False,
    }
    try:
        with _impatient():
            return _appended(row)
    except OperationalError as error:
        if connection.in_atomic_block or "locked" not in str(error):
            log.warning(NOT_RECORDED, error)
        else:
            _later.write(Recalled(**row))
        return None
    except DatabaseError as error:
        log.warning(NOT_RECORDED, error)
        return None


def _appended(row: dict[str, Any]) -> int:
    """The id of a new row of these columns. Past the ORM, which takes four times as long as the database.

    No disk is waited for: as on SQLite, the last records may be gone after a power cut.
    """
    adapt = connection.ops
    values = {
        **row,
        "filters": adapt.adapt_json_value(row["filters"], None),
        "hits": adapt.adapt_json_value(row["hits"], None),
        "at": adapt.adapt_datetimefield_value(row["at"]),
    }
    marks = ", ".join(["%s"] * len(values))
    returning = ""
    if connection.vendor == "postgresql":  # the setting holds until the transaction ends, which is not ours inside one
        returning = " RETURNING id"
        returning += "" if connection.in_atomic_block else ", set_config('synchronous_commit', 'off', true)"
    # One statement needs no transaction, but inside one that goes on, its failure would end that.
    safe = transaction.atomic() if connection.in_atomic_block else nullcontext()
    with safe, prepared.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO recalls ({', '.join(values)}) VALUES ({marks}){returning}",  # noqa: S608
            list(values.values()),
        )
        return int(cursor.fetchone()[0] if returning else cursor.lastrowid)


@contextmanager
def _impatient() -> Iterator[None]:
    """On SQLite, a write within waits for another writer no longer than IMPATIENT. Elsewhere none waits."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    connection.ensure_connection()
    patient = connection.settings_dict["OPTIONS"].get("timeout", 5.0)
    connection.connection.execute(f"PRAGMA busy_timeout = {int(IMPATIENT * 1000)}")
    try:
        yield
    finally:
        if connection.connection is not None:
            connection.connection.execute(f"PRAGMA busy_timeout = {int(patient * 1000)}")


class _Later:
    """Records that wait for the writer, and the thread that writes them; it ends when there are none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: list[Recalled] = []
        self._writing = False

    def write(self, row: Recalled) -> None:
        with self._lock:
            if len(self._rows) >= MOST_WAITING:
                log.warning(NOT_RECORDED, "too many wait for the database already")
                return
            self._rows.append(row)
            if self._writing:
                return
            self._writing = True
        # No daemon: a command that ends writes its record first.
        threading.Thread(target=self._work, name="recall-records").start()

    def _work(self) -> None:
        try:
            while rows := self._taken():
                try:
                    with transaction.atomic():
                        Recalled.objects.bulk_create(rows)
                except DatabaseError as error:
                    log.warning(NOT_RECORDED, error)
        except BaseException:
            with self._lock:
                self._writing = False
            raise
        finally:
            connection.close()

    def _taken(self) -> list[Recalled]:
        with self._lock:
            rows, self._rows = self._rows, []
            self._writing = bool(rows)  # said under the lock: what comes after this starts a thread of its own
            return rows


_later = _Later()


def count() -> int:
    """Bring `recall_count` and `last_recalled_at` of the memories up to the records. Returns how many were counted.

    In batches, each its own transaction and one UPDATE; a record is counted once, whoever counts.
    """
    done = 0
    while True:
        with transaction.atomic():
            rows = Recalled.objects.filter(counted=False).order_by("pk")
            if connection.features.has_select_for_update_skip_locked:
                rows = rows.select_for_update(skip_locked=True)
            batch = list(rows[:BATCH])
            times: Counter[int] = Counter()
            latest: dict[int, datetime] = {}
            for row in batch:
                for pk, _ in row.hits:
                    times[pk] += 1
                    latest[pk] = max(latest.get(pk, row.at), row.at)
            _add(times, latest)
            Recalled.objects.filter(pk__in=[row.pk for row in batch]).update(counted=True)
        done += len(batch)
        if len(batch) < BATCH:
            return done


def _add(times: Counter[int], latest: dict[int, datetime]) -> None:
    ids = sorted(times)
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        more = Case(*(When(pk=pk, then=Value(times[pk])) for pk in part), output_field=IntegerField(), default=Value(0))
        Memory.objects.filter(pk__in=part).update(recall_count=F("recall_count") + more)
        for at in sorted({latest[pk] for pk in part}):
            those = [pk for pk in part if latest[pk] == at]
            newer = Memory.objects.filter(pk__in=those).exclude(last_recalled_at__gt=at)
            newer.update(last_recalled_at=at)


def mark(
    query: str,
    memory: Memory | int,
    vote: str,
    *,
    by: User | None = None,
    filters: Filters | None = None,
    at: datetime | None = None,
) -> RecallMark:
    """Keep a person's word on one hit of a query: right or wrong. The last word counts. Raises InvalidRecall."""
    if vote not in RecallVote.values:
        raise InvalidRecall(f"vote is {vote!r}; allowed are {', '.join(RecallVote.values)}.")
    pk = memory if isinstance(memory, int) else memory.pk
    if not Memory.objects.filter(pk=pk).exists():
        raise MemoryNotFound(f"There is no memory {pk}.", "`manage.py memory list` shows what there is.")
    text = _kept(query)
    row, _ = RecallMark.objects.update_or_create(
        query_key=query_key(text),
        memory_id=pk,
        defaults={
            "query": text,
            "vote": vote,
            "by": by,
            "at": to_utc(at),
            "filters": scope_as_dict(filters) if filters else {},
        },
    )
    return row


def unmark(query: str, memory: Memory | int) -> bool:
    """Take a word back. Whether there was one."""
    pk = memory if isinstance(memory, int) else memory.pk
    return bool(RecallMark.objects.filter(query_key=query_key(query), memory_id=pk).delete()[0])


def marks_of(query: str) -> dict[int, str]:
    """By memory, how the hits of this query were marked."""
    return dict(RecallMark.objects.filter(query_key=query_key(query)).values_list("memory", "vote"))


def query_key(query: str) -> str:
    """What makes two queries the same to a mark: the SHA-256 (hexadecimal) of the words as they are kept."""
    return hashlib.sha256(_kept(query).encode()).hexdigest()


def _kept(query: str) -> str:
    return fold(query)[:LONGEST_QUERY].rstrip()  # so that what is kept is kept as itself
