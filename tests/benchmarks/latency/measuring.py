"""Figures of recall and remember() by number of memories. Each series runs in a fresh process, as on a surface."""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection

from claudeops.lib.cli import table
from memories import embedding
from memories.embedding import Embedder, SemanticOff, Vectors
from memories.models import Embedding, EmbeddingModel, Project
from memories.recall import vector_search
from memories.recall.filters import EVERYTHING
from memories.recall.query_vector import QueryVector
from tests.benchmarks.evaluation.machine import describe, load
from tests.benchmarks.evaluation.scratch import scratch_database
from tests.benchmarks.latency import worker
from tests.benchmarks.latency.filling import Filler
from tests.benchmarks.latency.sentences import queries, sentence

STARTS = 3
COMPARED = 100
"""Queries whose vector search is compared with the exact scan."""
READ = 5_000
"""Vectors read at once for the exact scan."""
TOLERANCE = 1e-5
"""Cosines this near are equal: the same text twice."""
NEW_FROM = 50_000_000
"""First number of sentences that no size holds: new observations are taken from there."""


def measure(sizes: Sequence[int], runs: int, seconds: float) -> dict[str, Any]:
    """The figures of every size, smallest first; `seconds` is how long vectors are made by the model."""
    cache, machine = Path(settings.CLAUDEOPS_DATA_DIR) / "bench", describe()
    embedder, semantic = _embedder()
    found = []
    with scratch_database() as folder:
        filler = Filler(embedder, cache, seconds)
        filler.begin()
        for place, size in enumerate(sorted(sizes)):
            begun = time.monotonic()
            filler.fill(size)
            filled = time.monotonic()
            figures = _Size(place, size, runs, embedder, folder).figures()
            found.append(
                {
                    "memories": size,
                    "vectors": {"real": filler.real, "mixed": filler.mixed},
                    "filled_seconds": round(filled - begun, 1),
                    "measured_seconds": round(time.monotonic() - filled, 1),
                    **figures,
                }
            )
            print(f"{size:,} memories: filled and measured in {time.monotonic() - begun:,.0f} s", file=sys.stderr)
    return {"semantic": semantic, "runs": runs, "sizes": found, "machine": machine}


def _embedder() -> tuple[Embedder | None, str]:
    try:
        embedder = embedding.wanted()
        embedder.embed(["a probe"])
    except SemanticOff as off:
        return None, f"off: {off.reason}"
    return embedder, f"on ({embedder.name})"


@dataclass(frozen=True, slots=True)
class _Size:
    """One filled size to be measured; `place` is its index, from which the seeds of its queries follow."""

    place: int
    size: int
    runs: int
    embedder: Embedder | None
    folder: Path

    def figures(self) -> dict[str, Any]:
        busy = [load()]
        exact = self._recall_of_vectors()  # first: it writes the index file, which an installation has
        starts = [self._start(number) for number in range(min(STARTS, self.runs) - 1)]
        quiet = self._answers("quiet", self._observations("quiet", self.runs))
        busy.append(load())
        with self._process("load", self._observations("load", 10_000)) as pipe:
            pipe.recv()
            under = self._answers("under load", [])
            busy.append(load())
            pipe.send("stop")
            did = pipe.recv()
        return {
            "recall": times(quiet["recall"].seconds),
            "recall_cpu": times(quiet["recall"].cpu),
            "without_record": times(quiet["unrecorded"]),
            "steps": {name: times(values)["p50"] for name, values in quiet["steps"].items()},
            "answered": round(quiet["answered"], 3),
            "remember": times(quiet["remember"].seconds),
            "remember_cpu": times(quiet["remember"].cpu),
            "outcomes": quiet["outcomes"],
            "under_load": times(under["recall"].seconds),
            "under_load_without_record": times(under["unrecorded"]),
            "load_did": did,
            "memory_mb": round(quiet["memory"] / 1e6),
            "start_seconds": round(median([*starts, quiet["start"]]), 2),
            "vector_recall_at_10": exact,
            "vectors_served_by": quiet["vectors_by"] or None,
            "load": busy,
        }

    @contextmanager
    def _process(self, job: str, *given: Any) -> Iterator[Connection]:
        """A fresh Python that does `job`; it ends with the block."""
        connection.close()
        fresh = multiprocessing.get_context("spawn")
        ours, theirs = fresh.Pipe()
        arguments = (theirs, job, connection.settings_dict["NAME"], str(self.folder), *given)
        process = fresh.Process(target=worker.run, args=arguments, daemon=True)
        process.start()
        theirs.close()
        try:
            with ours:
                yield ours
        except EOFError:
            sys.exit("A measuring process failed; its error is above.")
        finally:
            process.kill()
            process.join()

    def _start(self, number: int) -> float:
        """Seconds from nothing to the first answer of a fresh process."""
        asked, begun = self._queries(f"start {number}", 1), time.perf_counter()
        with self._process("answer", asked, []) as pipe:
            pipe.recv()
            return time.perf_counter() - begun

    def _answers(self, name: str, observations: Sequence[dict[str, Any]]) -> dict[str, Any]:
        asked, begun = self._queries(name, self.runs + worker.WARM_UP + 1), time.perf_counter()
        with self._process("answer", asked, observations) as pipe:
            vectors_by = pipe.recv()
            start = time.perf_counter() - begun
            return {**pipe.recv(), "start": start, "vectors_by": vectors_by}

    def _queries(self, name: str, count: int) -> list[tuple[str, int | None]]:
        projects = dict(Project.objects.values_list("slug", "pk"))
        return [(query, projects.get(slug or "")) for query, slug in queries(count, self.size, self._seed(name))]

    def _observations(self, name: str, count: int) -> list[dict[str, Any]]:
        """Of ten observations seven are new, one is reworded, one is known, and one has other numbers."""
        projects = dict(Project.objects.values_list("slug", "pk"))
        first = NEW_FROM + self._seed(name) % 10**7
        found = []
        for number in range(count):
            known = sentence(number * 7_919 % self.size, variant=number % 10 == 7)
            one = sentence(first + number) if number % 10 < 7 else known
            text = one.observation
            if number % 10 == 9:
                text = "".join(str((int(c) + 3) % 10) if c.isdigit() else c for c in text)
            project = projects.get(one.project or "")
            found.append({"category": one.category, "service": one.service, "project": project, "observation": text})
        return found

    def _seed(self, name: str) -> int:
        """A seed of its own for each size and series, the same on every run."""
        return int.from_bytes(f"{self.place} {name}".encode(), "big") % 1_000_003

    def _recall_of_vectors(self) -> float | None:
        """The share of the ten nearest vectors that the product's search finds, of an exact scan's."""
        model = EmbeddingModel.objects.first()
        if self.embedder is None or model is None:
            return None
        texts = [query for query, _ in queries(COMPARED, self.size, self._seed("exact"))]
        asked = np.concatenate([self.embedder.embed([text]) for text in texts])
        newest = Embedding.objects.filter(model=model).latest("id").pk
        found = []
        for query, tenth in zip(asked, tenth_nearest(asked, model), strict=True):
            nearest = vector_search.nearest(QueryVector(model, query, newest), EVERYTHING, vector_search.FOR_RECALL)
            near = sorted(nearest.cosines.values(), reverse=True)[:10]
            found.append(sum(one >= tenth - TOLERANCE for one in near) / min(10, self.size))
        return round(float(np.mean(found)), 4)


def tenth_nearest(asked: Vectors, model: EmbeddingModel) -> list[float]:
    """For each query the cosine of its tenth nearest stored vector, by a scan of all of them."""
    best = np.full((len(asked), 0), -1.0, dtype=np.float32)
    raws = Embedding.objects.filter(model=model).order_by("id").values_list("vector", flat=True)
    last = 0
    while part := list(raws.filter(id__gt=last).values_list("id", "vector")[:READ]):
        last = part[-1][0]
        stored = np.frombuffer(b"".join(bytes(raw) for _, raw in part), dtype="<f4").reshape(len(part), -1)
        best = -np.sort(-np.concatenate([best, asked @ stored.T], axis=1), axis=1)[:, :10]
    return [float(one[-1]) for one in best]


def times(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds: p50 and p95 by nearest rank, and the slowest; {} of no call."""
    ordered = [round(one * 1000, 2) for one in sorted(seconds)]
    shares = {"p50": 0.5, "p95": 0.95, "max": 1.0}
    return {name: ordered[max(0, math.ceil(share * len(ordered)) - 1)] for name, share in shares.items() if ordered}


def text_of(data: dict[str, Any]) -> str:
    """The figures as a table."""
    series = ("recall", "recall_cpu", "under_load", "remember")
    headers = [
        *("memories", "recall p50", "p95", "own CPU p50", "p95", "under load p50", "p95", "remember p50", "p95"),
        *("memory MB", "start s", "vector recall@10", "load"),
    ]
    rows = [
        [
            f"{one['memories']:,}",
            *(one[name][share] for name in series for share in ("p50", "p95")),
            *(one["memory_mb"], one["start_seconds"], one["vector_recall_at_10"], " ".join(map(str, one["load"]))),
        ]
        for one in data["sizes"]
    ]
    machine, made = data["machine"], data["sizes"][-1]["vectors"]
    return "\n".join(
        [
            f"{machine['database']}, {machine['cores']} cores ({machine['processor']}), Python {machine['python']}",
            f"Semantic search is {data['semantic']}; {made['real']:,} vectors by the model, {made['mixed']:,} mixed.",
            f"Milliseconds of {data['runs']} calls.",
            "",
            table(headers, rows),
        ]
    )


def main(description: str) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.latency",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=[1_000, 10_000])
    parser.add_argument("--runs", type=int, default=200, help="calls of each kind (default 200)")
    parser.add_argument("--seconds", type=float, default=120, help="seconds of embedding by the model (default 120)")
    parser.add_argument("--out", type=Path, help="write the figures here as JSON")
    options = parser.parse_args()
    if min(options.sizes) < 10 or options.runs < 1:
        parser.error("--sizes must be 10 or more, --runs 1 or more.")
    data = measure(options.sizes, options.runs, options.seconds)
    print(text_of(data))
    if options.out:
        options.out.write_text(json.dumps(data, indent=1))
