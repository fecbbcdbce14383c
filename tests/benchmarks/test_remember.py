"""How many observations a second are remembered, when so many are known."""

from __future__ import annotations

import os
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memories import embedding
from memories.models import Embedding, EmbeddingModel, Memory, PendingEmbedding, Source
from memories.store import Provenance, remember
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, growth, ms
from tests.factories import SessionFactory

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_remembering(report: Report, sizes: list[int], smoke: bool) -> None:
    rows = []
    before: dict[str, float] = {}
    for size in sizes:
        facts.forget()
        facts.store(size, lambda number: {"updated_at": NOW})
        facts.settle()
        runs = min(size // 2, 20 if smoke else 100)
        # Spread over the scopes, so that nothing of one call helps the next.
        chance = random.Random(size)
        known = chance.sample(range(size), 2 * runs)
        kinds = {
            "new": ([size + place for place in chance.sample(range(facts.SCOPES), runs)], "first"),
            "restated": (known[:runs], "again"),
            "contradicting": (known[runs:], "against"),
        }
        for kind, (numbers, wording) in kinds.items():
            session = SessionFactory(agent=None)
            said = Provenance(source=Source.RUN, actor="agent:benchmark", session_id=session.pk, tier=1)
            series, outcomes = Series(), []
            for number in numbers:
                outcomes.append(series.time(remember, facts.candidate(number, wording), said, at=NOW))
            counted = {
                "new": sum(o.outcome == "created" and not o.contradicted for o in outcomes),
                "restated": sum(o.outcome == "reinforced" for o in outcomes),
                "contradicting": sum(o.outcome == "created" and len(o.contradicted) == 1 for o in outcomes),
            }
            assert counted[kind] == runs, f"{kind}: only {counted[kind]} of {runs} were taken as that"
            rows.append(
                (
                    kind,
                    f"{size:,}",
                    f"{max(1, size // facts.SCOPES):,}",
                    f"{runs / sum(series.seconds):,.0f}",
                    ms(series.median),
                    ms(series.p95),
                    growth(series.median, before.get(kind)),
                )
            )
            before[kind] = series.median
        assert Memory.objects.count() == size + 2 * runs
    rows.sort(key=lambda row: tuple(kinds).index(row[0]))
    columns = ("remember()", "known", "in the scope", "a second", "median ms", "p95 ms", "growth")
    note = f"Known memories are spread over {facts.SCOPES} scopes (service and category); each call is one transaction."
    report("REMEMBER, one observation at a time: gate, match within the scope, store, history", columns, rows, note)


@pytest.fixture
def model(settings: Any) -> EmbeddingModel:
    """The local model of BENCH_MODELS_DIR, as the one that answers."""
    folder = os.environ.get("BENCH_MODELS_DIR")
    if not folder:
        pytest.skip("needs the local model: BENCH_MODELS_DIR names the folder that holds it")
    settings.CLAUDEOPS_EMBEDDINGS, settings.CLAUDEOPS_MODELS_DIR = "local", Path(folder)
    embedding.reset()
    embedder = embedding.wanted()
    return EmbeddingModel.objects.create(name=embedder.name, dimensions=embedder.dimensions, filled_to=None)


def test_remembering_with_vectors(report: Report, sizes: list[int], smoke: bool, model: EmbeddingModel) -> None:
    """The whole way: embedded, compared with words and vectors within the scope, stored with its vector."""
    rows = []
    for size in sizes:
        facts.forget()
        facts.store(size, lambda number: {"updated_at": NOW})
        fill_vectors(model)
        EmbeddingModel.objects.update(state="active")
        facts.settle()
        runs = min(size // 2, 10 if smoke else 100)
        chance = random.Random(size)
        known = chance.sample(range(size), runs)
        numbers = {"new": [size + place for place in chance.sample(range(facts.SCOPES), runs)], "restated": known}
        remember(facts.candidate(size + facts.SCOPES), Provenance(Source.RUN, "agent:benchmark"), at=NOW)
        for kind, wording in (("new", "first"), ("restated", "again")):
            said = Provenance(Source.RUN, "agent:benchmark", SessionFactory(agent=None).pk, tier=1)
            series, outcomes = Series(), []
            for number in numbers[kind]:
                outcomes.append(series.time(remember, facts.candidate(number, wording), said, at=NOW).outcome)
            assert outcomes.count({"new": "created", "restated": "reinforced"}[kind]) == runs, Counter(outcomes)
            rows.append((kind, f"{size:,}", f"{max(1, size // facts.SCOPES):,}", ms(series.median), ms(series.p95)))
        EmbeddingModel.objects.update(state="building")
    rows.sort(key=lambda row: row[0])
    columns = ("remember()", "known", "in the scope", "median ms", "p95 ms")
    report(
        "REMEMBER, with embedding and vectors", columns, rows, f"{model.name}; the known memories' vectors are random."
    )


def fill_vectors(model: EmbeddingModel) -> None:
    """A random vector for every memory: what they cost does not depend on what they say."""
    chance = np.random.default_rng(1)
    Embedding.objects.all().delete()
    ids = list(Memory.objects.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(ids), facts.BATCH):
        batch = ids[start : start + facts.BATCH]
        vectors = chance.standard_normal((len(batch), model.dimensions)).astype("<f4")
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        Embedding.objects.bulk_create(
            Embedding(model=model, memory_id=pk, vector=vector.tobytes(), content_hash="0" * 64)
            for pk, vector in zip(batch, vectors, strict=True)
        )
    PendingEmbedding.objects.all().delete()
