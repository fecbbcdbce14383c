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
from memories.recall import keyword_index
from memories.store import Provenance, Statement, remember
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, growth, ms
from tests.support.factories import SessionFactory

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


BIG = {"taxonomy": "agent", "category": "pattern", "agent": "benchmark", "service": None}
"""One scope that holds half of all there is; the other half is spread over all services and categories."""


def test_remembering_with_vectors(report: Report, sizes: list[int], smoke: bool, model: EmbeddingModel) -> None:
    """The whole way: embedded, compared with what is near by words and vectors in the scope, stored with its vector."""
    rows = []
    for size in sizes:
        facts.forget()
        facts.store(size, lambda number: {"updated_at": NOW} | (BIG if number % 2 else {}))
        keyword_index.catch_up(batch=facts.BATCH)
        fill_vectors(model)
        EmbeddingModel.objects.update(state="active")
        facts.settle()
        runs = min(size // 4, 10 if smoke else 100)
        chance = random.Random(size)
        for scope, odd, holds in (("spread", 0, max(1, size // facts.SCOPES)), ("one", 1, size // 2)):
            known = [2 * place + odd for place in chance.sample(range(size // 2), runs)]
            new = [size + 2 * place + odd for place in chance.sample(range(facts.SCOPES), runs)]
            remember(_asked(size + 2 * facts.SCOPES + odd, "first"), _said(), at=NOW)
            for kind, wording, numbers in (("new", "first", new), ("restated", "again", known)):
                said, series, outcomes = _said(), Series(), []
                for number in numbers:
                    outcomes.append(series.time(remember, _asked(number, wording), said, at=NOW).outcome)
                assert outcomes.count({"new": "created", "restated": "reinforced"}[kind]) == runs, Counter(outcomes)
                rows.append((kind, scope, f"{size:,}", f"{holds:,}", ms(series.median), ms(series.p95)))
        EmbeddingModel.objects.update(state="building")
    rows.sort(key=lambda row: row[:2])
    columns = ("remember()", "scopes", "known", "in the scope", "median ms", "p95 ms")
    report(
        "REMEMBER, with embedding and vectors", columns, rows, f"{model.name}; the known memories' vectors are random."
    )


def _said() -> Provenance:
    return Provenance(Source.RUN, "agent:benchmark", SessionFactory(agent=None).pk, tier=1, agent="benchmark")


def _asked(number: int, wording: str) -> Statement:
    if number % 2:
        return Statement("pattern", facts.observation(number, wording), None, "agent")
    return facts.candidate(number, wording)


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
