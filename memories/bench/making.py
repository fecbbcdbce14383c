"""Rows of the latency bench made from its sentences, ready for the database, by as many processes as there are cores.

What is made is told by its numbers alone, so that it is the same however many make it. Reads and writes no database.
"""

from __future__ import annotations

import json
import multiprocessing
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, models

from memories.bench.child import prepare_worker
from memories.bench.machine import cores
from memories.bench.sentences import CATEGORIES, Sentence, sentence
from memories.models import Inactive, Memory, MemoryTerms, Source, Verdict
from memories.recall.keyword_index import text_of
from memories.recall.terms import index_terms

CHUNK = 5_000
"""Rows that are made and written at once."""
POOL_FROM = 20_000
"""Fewer rows than these are made here: processes take two seconds to start."""
AHEAD = 2
"""Chunks that wait for each process, so that it does not wait for the database."""

MEMORY = (
    *("id", "uuid", "project_id", "service", "category", "observation", "confidence", "active", "inactive_reason"),
    *("verdict", "verdict_reason", "source", "tier", "created_at", "updated_at", "decayed_until"),
)
TERMS = ("memory_id", "terms", "length")

ESCAPED = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})

Row = Sequence[Any]
Block = list[Row] | bytes
"""Rows as the database takes them soonest: values for SQLite, the text of a COPY for PostgreSQL."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Sentences `first` to `last` (not included) as rows; `offset` is added to a number to have its id.

    `projects` are ids by slug. `now` is what ages are counted from.
    """

    first: int
    last: int
    offset: int
    now: datetime
    projects: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Made:
    """The rows of `memories` and of `memory_terms`, and each sentence's template."""

    chunk: Chunk
    memories: Block
    terms: Block
    templates: Sequence[int]


class Table:
    """How rows of a model are written by hand: all its columns, and its defaults in those that are not `named`."""

    def __init__(self, model: type[models.Model], named: Sequence[str]) -> None:
        usual = model() if model is not Memory else Memory(category=CATEGORIES[0])
        fields = [one for one in model._meta.concrete_fields if not isinstance(one, models.GeneratedField)]
        self.columns = [str(one.column) for one in fields]
        prepared = [one.get_db_prep_save(getattr(usual, one.attname), connection) for one in fields]
        self._usual = [
            json.dumps(getattr(usual, one.attname)) if isinstance(one, models.JSONField) else value
            for one, value in zip(fields, prepared, strict=True)
        ]
        places = {one.attname: place for place, one in enumerate(fields)}
        self._set = [(places[name], _prepare(fields[places[name]])) for name in named]

    def block(self, rows: Iterable[Row]) -> Block:
        """The rows, each given by its named values in their order."""
        whole = (self._row(values) for values in rows)
        if connection.vendor == "postgresql":
            return "".join("\t".join(map(_copied, row)) + "\n" for row in whole).encode()
        return list(whole)

    def _row(self, values: Row) -> Row:
        found = self._usual.copy()
        for (place, prepare), value in zip(self._set, values, strict=True):
            found[place] = value if prepare is None or value is None else prepare(value)
        return found


def make(chunk: Chunk) -> Made:
    """The rows of a chunk. The same for the same chunk, wherever it is made."""
    said = [sentence(number) for number in range(chunk.first, chunk.last)]
    chance = random.Random(chunk.first)  # noqa: S311  (ages, not secrets)
    times = [chunk.now - timedelta(hours=chance.uniform(1, 400 * 24)) for _ in said]
    terms = [index_terms(text_of(one.observation, one.service, (), at)) for one, at in zip(said, times, strict=True)]
    return Made(
        chunk,
        Table(Memory, MEMORY).block(_memories(chunk, said, times)),
        Table(MemoryTerms, TERMS).block(
            (one.number + chunk.offset, " ".join(found), len(found)) for one, found in zip(said, terms, strict=True)
        ),
        [one.template for one in said],
    )


@contextmanager
def maker(count: int) -> Iterator[Callable[[Sequence[Chunk]], Iterator[Made]]]:
    """What makes chunks one after the other, in their order: in processes of their own when it is worth it."""
    workers = cores() if count >= POOL_FROM else 0
    if workers < 2:
        yield lambda chunks: map(make, chunks)
        return
    # Not by a fork: this process has the threads of the model.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, fresh, initializer=prepare_worker) as pool:
        try:
            yield lambda chunks: _ahead(pool, chunks, workers * AHEAD)
        finally:
            pool.shutdown(cancel_futures=True)


def _ahead(pool: ProcessPoolExecutor, chunks: Sequence[Chunk], many: int) -> Iterator[Made]:
    """Not all at once, as `map` of a pool would: they are made sooner than the database takes them."""
    waiting: list[Future[Made]] = []
    for chunk in chunks:
        waiting.append(pool.submit(make, chunk))
        if len(waiting) > many:
            yield waiting.pop(0).result()
    for one in waiting:
        yield one.result()


def _memories(chunk: Chunk, said: Sequence[Sentence], times: Sequence[datetime]) -> Iterator[Row]:
    """A store of some age: a tenth inactive, one in two hundred held, decayed up to this week. In MEMORY's order."""
    chance = random.Random(chunk.first)  # noqa: S311
    for one, at in zip(said, times, strict=True):
        confidence = round(chance.uniform(0.5, 1.0), 2)
        decayed = chunk.now - timedelta(hours=chance.uniform(0, 24 * 7))
        inactive = one.number % 10 == 1
        held = not inactive and one.number % 200 == 7
        yield (
            one.number + chunk.offset,
            f"00000000-0000-4000-8000-{one.number:012x}",
            chunk.projects.get(one.project or ""),
            one.service,
            one.category,
            one.observation,
            0.2 if inactive else confidence,
            not inactive,
            Inactive.DECAYED.value if inactive else "",
            Verdict.HOLD.value if held else Verdict.ALLOW.value,
            "too short to say anything" if held else "",
            Source.RUN.value,
            1,
            at,
            at,
            decayed,
        )


def _prepare(field: models.Field[Any, Any]) -> Callable[[Any], Any] | None:
    """How a value of the field is given to the database; None when it is given as it is."""
    if isinstance(field, models.DateTimeField):
        return connection.ops.adapt_datetimefield_value
    if isinstance(field, models.UUIDField):
        return lambda value: field.get_db_prep_save(value, connection)
    return None


def _copied(value: Any) -> str:
    """A value as the text form of PostgreSQL's COPY has it."""
    if value is None:
        return r"\N"
    if isinstance(value, bytes):
        return r"\\x" + value.hex()
    return str(value).translate(ESCAPED)
