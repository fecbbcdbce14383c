"""How long it takes to choose what is known about a task, and to search narratives, among so many.

With TEST_MODEL (a folder or a wheel that holds the model) memories have vectors, most of them real ones with noise.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from memories import embedding
from memories.embedding import install
from memories.injection.knowledge import select_knowledge
from memories.models import Memory, Project, Segment, TranscriptPart
from memories.recall import Filters, narratives
from memories.recall.filters import ANY_AGENT, ANY_PROJECT
from memories.taxonomy import KNOWLEDGE
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.latency.filling import Filler
from tests.benchmarks.latency.sentences import queries, sentence
from tests.benchmarks.measure import Series, growth, ms
from tests.support.factories import PartFactory, TranscriptFactory

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
BATCH = 2_000
PROJECTS = 20


@pytest.fixture
def filler(tmp_path: Path, smoke: bool, settings: Any) -> Filler:
    """Fills with vectors where the model is given, else without."""
    embedder = None
    if (given := os.environ.get("TEST_MODEL")) and not smoke:
        settings.CLAUDEOPS_EMBEDDINGS, settings.CLAUDEOPS_MODELS_DIR = "local", tmp_path
        install.install(given)
        embedding.reset()
        embedder = embedding.wanted()
    filler = Filler(embedder, tmp_path / "cache", 30)
    filler.begin()
    return filler


def test_choosing_what_is_known(report: Report, sizes: list[int], smoke: bool, filler: Filler) -> None:
    rows = []
    before: dict[str, float] = {}
    for size in sizes:
        filler.fill(size)
        Memory.objects.exclude(taxonomy=KNOWLEDGE.slug).update(taxonomy=KNOWLEDGE.slug, category="operations")
        facts.settle()
        project = Project.objects.order_by("pk").first()
        for profile in ("lean", "balanced", "deep"):
            series, told = Series(), 0
            asked = queries(5 if smoke else 100, size, seed=len(rows))
            for query, _ in asked:
                found = series.time(select_knowledge, query, project, "mender", profile=profile, at=NOW)
                assert not found.why.startswith("the recall failed")
                assert found.tokens <= found.budget
                told += len(found.included)
            each = f"{told / len(series.seconds):.1f}"
            rows.append(
                (
                    profile,
                    f"{size:,}",
                    each,
                    ms(series.median),
                    ms(series.p95),
                    growth(series.median, before.get(profile)),
                )
            )
            before[profile] = series.median
    columns = ("profile", "memories", "told", "median ms", "p95 ms", "growth")
    how = "words and vectors" if filler.embedder else "words alone"
    report(f"CHOOSING WHAT IS KNOWN about a task, with its record and the log of the recall ({how})", columns, rows)


def test_searching_narratives(report: Report, sizes: list[int], smoke: bool) -> None:
    rows = []
    before: dict[str, float] = {}
    projects = [Project.objects.create(slug=f"project-{number}") for number in range(PROJECTS)]
    parts = [PartFactory(transcript=TranscriptFactory(project=project, last_at=NOW)) for project in projects]
    for size in sizes:
        Segment.objects.all().delete()
        _tell(size, parts)
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("VACUUM ANALYZE segments")
        for name, filters in (
            ("in one project", Filters(projects[0].pk, ANY_AGENT)),
            ("everywhere", Filters(ANY_PROJECT, ANY_AGENT)),
        ):
            series, found = Series(), 0
            for query, _ in queries(5 if smoke else 50, size, seed=len(rows)):
                found += len(series.time(narratives.search, query, filters))
            assert found
            rows.append((name, f"{size:,}", ms(series.median), ms(series.p95), growth(series.median, before.get(name))))
            before[name] = series.median
    columns = ("where", "narratives", "median ms", "p95 ms", "growth")
    report("SEARCHING NARRATIVES of observed sessions by their words", columns, rows)


def _tell(size: int, parts: list[TranscriptPart]) -> None:
    """Store narratives of two sentences, in turn in each project."""
    for begin in range(0, size, BATCH):
        Segment.objects.bulk_create(
            Segment(
                transcript=parts[number % PROJECTS].transcript,
                part=parts[number % PROJECTS],
                number=number,
                narrative=f"{sentence(number).observation}. {sentence(number + size).observation}.",
                created_at=NOW - timedelta(minutes=number),
            )
            for number in range(begin, min(begin + BATCH, size))
        )
