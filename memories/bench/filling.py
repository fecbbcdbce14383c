"""Memories by the million for the latency bench, by bulk SQL, with terms and vectors. For scratch databases only."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
from django.db import connection, models, transaction
from django.utils import timezone

from memories.bench.bulk import at_rest, insert, settle
from memories.bench.embedded import Progress, embedded
from memories.bench.making import CHUNK, Chunk, Made, Table, maker
from memories.bench.sentences import PROJECTS, sentence
from memories.embedding import Embedder, Vectors, embedded_text, to_bytes
from memories.embedding.base import normalised
from memories.models import Embedding, EmbeddingModel, Memory, MemoryTerms, ModelState, Project
from memories.recall import keyword_index, pgvector

EMBEDDING = ("id", "model_id", "memory_id", "vector", "content_hash")
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
        self._embed(size, embedding)
        # What was remembered between two sizes has ids too.
        memory_offset, embedding_offset = (_highest(model) + 1 - self.count for model in (Memory, Embedding))
        chunks = [
            Chunk(start, min(start + CHUNK, size), memory_offset, self.now, self._projects)
            for start in range(self.count, size, CHUNK)
        ]
        with maker(size - self.count) as made, at_rest(many=size - self.count >= self.count):
            for one in made(chunks):
                with transaction.atomic():
                    self._store(one, embedding_offset)
                self.count = one.chunk.last
                storing(self.count, size)
        _catch_up()
        settle()
        pgvector.ensure(INDEXED_WITHIN)  # as a worker does after a sweep; where there is no pgvector, nothing

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

    def _store(self, made: Made, offset: int) -> None:
        insert(Memory, made.memories)
        insert(MemoryTerms, made.terms)
        if self._model is None:
            return
        vectors = self._vectors_of(made)
        numbers = range(made.chunk.first, made.chunk.last)
        insert(
            Embedding,
            Table(Embedding, EMBEDDING).block(
                (number + offset, self._model.pk, number + made.chunk.offset, to_bytes(vector), "-")
                for number, vector in zip(numbers, vectors, strict=True)
            ),
        )

    def _vectors_of(self, made: Made) -> Vectors:
        """The real ones that there are, and for the others a real one of the same template, with noise."""
        first, count = made.chunk.first, made.chunk.last - made.chunk.first
        chance = np.random.default_rng(first)
        real = min(max(0, len(self._vectors) - first), count)
        found = np.empty((count, len(self._vectors[0])), dtype=np.float32)
        if real:
            found[:real] = self._vectors[first : first + real]
        if real < count:
            alike = [self._by_template.get(template) or [0] for template in made.templates[real:]]
            near = [these[(first + real + at) % len(these)] for at, these in enumerate(alike)]
            noise = normalised(chance.standard_normal((count - real, found.shape[1]), dtype=np.float32))
            shares = chance.uniform(*NOISE, (count - real, 1)).astype(np.float32)
            found[real:] = normalised(np.stack([self._vectors[number] for number in near]) + shares * noise)
        self.real += real
        self.mixed += count - real
        return found


def _highest(model: type[models.Model]) -> int:
    return int(model._default_manager.aggregate(highest=models.Max("pk"))["highest"] or 0)


def _catch_up() -> None:
    """What a worker does each minute. What the load at the size before had indexed anew, is indexed as it is."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM memory_terms_due WHERE memory_id IN (SELECT memory_id FROM memory_terms)")
    keyword_index.catch_up()
