"""Memories by the million for the latency bench, by bulk SQL, terms and vectors with them. For a scratch database only.

The triggers of `memories` rest meanwhile: what they would put in line is written here at once.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.color import no_style
from django.db import connection, models, transaction
from django.utils import timezone

from memories.bench.embedded import Progress, embedded
from memories.bench.sentences import CATEGORIES, PROJECTS, Sentence, sentence
from memories.embedding import Embedder, Vectors, embedded_text, to_bytes
from memories.embedding.base import normalised
from memories.models import Embedding, EmbeddingModel, Inactive, Memory, MemoryTerms, ModelState, Project, Source
from memories.recall import pgvector_index
from memories.recall.index import text_of
from memories.recall.terms import index_terms

CHUNK = 5_000
SLICE = 256
"""Texts embedded between two looks at the clock."""
NOISE = (0.4, 1.0)
"""How much of another direction a mixed vector has: its cosine with the real one is .93 to .71."""
MOST_REAL = 20_000
INDEXED_WITHIN = 3_600.0
"""Seconds that an index of vectors may take."""


@dataclass(slots=True)
class Filler:
    """What fills the database from one size to the next, and how many of each kind of vector there are.

    `real` are vectors that the model made, `mixed` real ones of a sentence of the same template with noise.
    """

    embedder: Embedder | None
    cache: Path
    seconds: float
    now: datetime = field(default_factory=timezone.now)
    count: int = 0
    real: int = 0
    mixed: int = 0
    _memory_offset: int = 0
    _embedding_offset: int = 0
    _projects: dict[str, int] = field(default_factory=dict)
    _model: EmbeddingModel | None = None
    _vectors: list[Vectors] = field(default_factory=list)
    _by_template: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def begin(self) -> None:
        """The projects, and the model whose vectors answer."""
        rows = Project.objects.bulk_create(Project(slug=slug) for slug in PROJECTS)
        self._projects = {row.slug: row.pk for row in rows}
        if self.embedder is not None:
            self._model = EmbeddingModel.objects.create(
                name=self.embedder.name,
                dimensions=self.embedder.dimensions,
                state=ModelState.ACTIVE,
                activated_at=self.now,
                filled_to=None,
            )

    def fill(self, size: int, embedding: Progress, storing: Progress) -> None:
        """As many memories as `size`; those that are there stay. Embeds for real while there is time."""
        first = self.count
        self._embed(size, embedding)
        # What was remembered between two sizes has ids too.
        self._memory_offset = _highest(Memory) + 1 - first
        self._embedding_offset = _highest(Embedding) + 1 - first
        with _triggers_at_rest():
            for start in range(first, size, CHUNK):
                with transaction.atomic():
                    self._store([sentence(number) for number in range(start, min(start + CHUNK, size))])
                self.count = min(start + CHUNK, size)
                storing(self.count, size)
        _settle()
        pgvector_index.keep(INDEXED_WITHIN)  # as a worker does after a sweep; where there is no pgvector, nothing

    def _embed(self, size: int, progress: Progress) -> None:
        end = time.monotonic() + self.seconds
        most = min(size, MOST_REAL)
        while self.embedder is not None and len(self._vectors) < most:
            if self._vectors and time.monotonic() > end:
                break
            first = len(self._vectors)
            said = [sentence(number) for number in range(first, min(first + SLICE, most))]
            for one, vector in zip(
                said, embedded(self.embedder, [embedded_text(s) for s in said], self.cache), strict=True
            ):
                self._by_template[one.template].append(one.number)
                self._vectors.append(vector)
            progress(len(self._vectors), most)
        self.seconds = max(0.0, end - time.monotonic())

    def _store(self, said: Sequence[Sentence]) -> None:
        chance = random.Random(said[0].number)  # noqa: S311
        times = [self.now - timedelta(hours=chance.uniform(1, 400 * 24)) for _ in said]
        _insert(Memory, self._memory_rows(said, times))
        terms = [
            index_terms(text_of(one.observation, one.service, (), at)) for one, at in zip(said, times, strict=True)
        ]
        rows = zip(said, terms, strict=True)
        _insert(
            MemoryTerms,
            (
                {"memory_id": one.number + self._memory_offset, "terms": " ".join(t), "length": len(t)}
                for one, t in rows
            ),
        )
        if self._model is not None:
            _insert(Embedding, self._vector_rows(said, self._model, np.random.default_rng(said[0].number)))

    def _memory_rows(self, said: Sequence[Sentence], times: Sequence[datetime]) -> Iterator[dict[str, Any]]:
        """A store of some age: a tenth inactive, one in two hundred held, decayed up to this week."""
        chance = random.Random(said[0].number)  # noqa: S311
        for one, at in zip(said, times, strict=True):
            row: dict[str, Any] = {
                "id": one.number + self._memory_offset,
                "uuid": f"00000000-0000-4000-8000-{one.number:012x}",
                "project_id": self._projects.get(one.project or ""),
                "service": one.service,
                "category": one.category,
                "observation": one.observation,
                "confidence": round(chance.uniform(0.5, 1.0), 2),
                "source": Source.RUN,
                "tier": 1,
                "created_at": at,
                "updated_at": at,
                "decayed_until": self.now - timedelta(hours=chance.uniform(0, 24 * 7)),
            }
            if one.number % 10 == 1:
                row |= {"active": False, "inactive_reason": Inactive.DECAYED, "confidence": 0.2}
            elif one.number % 200 == 7:
                row |= {"verdict": "hold", "verdict_reason": "too short to say anything"}
            yield row

    def _vector_rows(
        self, said: Sequence[Sentence], model: EmbeddingModel, chance: np.random.Generator
    ) -> Iterator[dict[str, Any]]:
        noise = normalised(chance.standard_normal((len(said), model.dimensions), dtype=np.float32))
        for one, other, share in zip(said, noise, chance.uniform(*NOISE, len(said)), strict=True):
            if one.number < len(self._vectors):
                vector = self._vectors[one.number]
                self.real += 1
            else:
                alike = self._by_template.get(one.template) or [0]
                vector = normalised((self._vectors[alike[one.number % len(alike)]] + share * other)[None, :])[0]
                self.mixed += 1
            yield {
                "id": one.number + self._embedding_offset,
                "model_id": model.pk,
                "memory_id": one.number + self._memory_offset,
                "vector": to_bytes(vector),
                "content_hash": "-",
            }


def _highest(model: type[models.Model]) -> int:
    return int(model._default_manager.aggregate(highest=models.Max("pk"))["highest"] or 0)


def _insert(model: type[models.Model], rows: Iterable[dict[str, Any]]) -> None:
    """Rows by attribute name into a model's table; what a row does not name has the model's default."""
    usual = model() if model is not Memory else Memory(category=CATEGORIES[0])
    fields = [one for one in model._meta.concrete_fields if not isinstance(one, models.GeneratedField)]
    named = {one.attname: one for one in fields}
    defaults = {one.attname: one.get_db_prep_save(getattr(usual, one.attname), connection) for one in fields}
    columns = ", ".join(connection.ops.quote_name(str(one.column)) for one in fields)

    def prepared() -> Iterator[list[Any]]:
        for row in rows:
            given = {name: named[name].get_db_prep_save(value, connection) for name, value in row.items()}
            yield list({**defaults, **given}.values())

    table = connection.ops.quote_name(model._meta.db_table)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                for values in prepared():
                    copy.write_row(values)
        else:
            marks = ", ".join(["%s"] * len(fields))
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", list(prepared()))  # noqa: S608


@contextmanager
def _triggers_at_rest() -> Iterator[None]:
    """Without the triggers of `memories`, made again afterwards as they were."""
    made: list[str] = []
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("ALTER TABLE memories DISABLE TRIGGER USER")
        else:
            cursor.execute("PRAGMA synchronous = OFF")  # nobody misses this database after a power cut
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'memories'")
            for name, sql in cursor.fetchall():
                made.append(sql)
                cursor.execute(f"DROP TRIGGER {name}")
        try:
            yield
        finally:
            if connection.vendor == "postgresql":
                cursor.execute("ALTER TABLE memories ENABLE TRIGGER USER")
            for sql in made:
                cursor.execute(sql)


def _settle() -> None:
    """What autovacuum does soon after so many rows came in, and the numbers that follow the highest ids."""
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), [Memory, Embedding]):
            cursor.execute(statement)
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()  # SQLite: a new one is as careful as usual
