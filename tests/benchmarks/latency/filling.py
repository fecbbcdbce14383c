"""Fill a scratch database with generated memories, their index terms and their vectors."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from django.db import connection, transaction
from django.utils import timezone

from memories.embedding import Embedder, Vectors, embedded_text, to_bytes
from memories.models import (
    Embedding,
    EmbeddingModel,
    Inactive,
    Memory,
    MemoryTerms,
    MemoryTermsDue,
    ModelState,
    PendingEmbedding,
    Project,
    Source,
    Verdict,
)
from memories.recall import keyword_index, pgvector
from tests.benchmarks.evaluation.vectors import embed_cached
from tests.benchmarks.latency.sentences import PROJECTS, Sentence, sentence

CHUNK = 2_000
"""Rows written at once."""
SLICE = 256
"""Texts embedded between two looks at the clock."""
NOISE = (0.4, 1.0)
"""Share of a random direction in a mixed vector: its cosine with the real one is .93 to .71."""
MOST_REAL = 20_000
INDEX_TIMEOUT = 3_600.0
"""Seconds that pgvector's index may take."""


@dataclass(slots=True)
class Filler:
    """Fills the database from one size to the next.

    `seconds` of embedding make the `real` vectors; the other ones are `mixed`: a real vector of a sentence of the
    same template, and noise.
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
        """Create the projects and the embedding model that answers."""
        self._projects = {one.slug: one.pk for one in Project.objects.bulk_create(Project(slug=s) for s in PROJECTS)}
        if self.embedder is not None:
            self._model = EmbeddingModel.objects.create(
                name=self.embedder.name,
                dimensions=self.embedder.dimensions,
                state=ModelState.ACTIVE,
                activated_at=self.now,
                filled_to=None,
            )

    def fill(self, size: int) -> None:
        """Add memories up to `size` of the generator's; what was remembered in between stays."""
        self._embed(size)
        for start in range(self.count, size, CHUNK):
            self._store([sentence(number) for number in range(start, min(start + CHUNK, size))])
        self.count = size
        # What the load of the size before made due again is indexed as it is.
        MemoryTermsDue.objects.filter(memory_id__in=MemoryTerms.objects.values("memory_id")).delete()
        keyword_index.catch_up(batch=CHUNK)
        PendingEmbedding.objects.all().delete()
        with connection.cursor() as cursor:  # as autovacuum does soon after
            cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "PRAGMA wal_checkpoint(TRUNCATE)")
        pgvector.ensure(INDEX_TIMEOUT)

    def _embed(self, size: int) -> None:
        end = time.monotonic() + self.seconds
        most = min(size, MOST_REAL) if self.embedder is not None else 0
        while self.embedder is not None and len(self._vectors) < most:
            if self._vectors and time.monotonic() > end:
                break
            first = len(self._vectors)
            part = [sentence(number) for number in range(first, min(first + SLICE, most))]
            for one, vector in zip(
                part, embed_cached(self.embedder, [embedded_text(s) for s in part], self.cache), strict=True
            ):
                self._by_template[one.template].append(one.number)
                self._vectors.append(vector)
        self.seconds = max(0.0, end - time.monotonic())

    @transaction.atomic
    def _store(self, sentences: Sequence[Sentence]) -> None:
        rows = Memory.objects.bulk_create([self._memory(one) for one in sentences])
        if self._model is None:
            return
        Embedding.objects.bulk_create(
            [
                Embedding(model=self._model, memory=row, vector=to_bytes(vector), content_hash="-")
                for row, vector in zip(rows, self._vectors_of(sentences), strict=True)
            ]
        )

    def _memory(self, one: Sentence) -> Memory:
        """A memory of a store of some age: a tenth inactive, one in two hundred held, decayed up to this week."""
        chance = random.Random(one.number)
        at = self.now - timedelta(hours=chance.uniform(1, 400 * 24))
        inactive = one.number % 10 == 1
        held = not inactive and one.number % 200 == 7
        return Memory(
            project_id=self._projects.get(one.project or ""),
            service=one.service,
            category=one.category,
            observation=one.observation,
            confidence=0.2 if inactive else round(chance.uniform(0.5, 1.0), 2),
            active=not inactive,
            inactive_reason=Inactive.DECAYED if inactive else "",
            verdict=Verdict.HOLD if held else Verdict.ALLOW,
            verdict_reason="too short to say anything" if held else "",
            source=Source.RUN,
            tier=1,
            created_at=at,
            updated_at=at,
            decayed_until=self.now - timedelta(hours=chance.uniform(0, 24 * 7)),
        )

    def _vectors_of(self, sentences: Sequence[Sentence]) -> Vectors:
        """Real vectors where there are any, and mixed ones."""
        real = [self._vectors[one.number] for one in sentences if one.number < len(self._vectors)]
        others = sentences[len(real) :]
        self.real += len(real)
        self.mixed += len(others)
        if not others:
            return np.stack(real)
        like = [self._by_template.get(one.template) or [0] for one in others]
        near = np.stack(
            [self._vectors[these[one.number % len(these)]] for one, these in zip(others, like, strict=True)]
        )
        chance = np.random.default_rng(others[0].number)
        noise = _normalised(chance.standard_normal(near.shape, dtype=np.float32))
        shares = chance.uniform(*NOISE, (len(others), 1)).astype(np.float32)
        mixed = _normalised(near + shares * noise)
        return np.concatenate([np.stack(real), mixed]) if real else mixed


def _normalised(vectors: Vectors) -> Vectors:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
