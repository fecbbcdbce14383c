"""How fast recall and `remember()` are at several sizes, on the database in use; run inside a scratch database.

Times are taken in fresh processes (`child`), as a surface would have them; vectors are compared with an exact search.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from memories import embedding
from memories.bench.child import WARM
from memories.bench.embedded import Progress
from memories.bench.filling import Filler
from memories.bench.machine import load
from memories.bench.processes import process
from memories.bench.sentences import queries, sentence
from memories.embedding import Embedder, SemanticOff, Vectors
from memories.models import Embedding, EmbeddingModel, Project
from memories.recall import pgvector, vector_search
from memories.recall.filters import EVERYTHING
from memories.recall.query_vector import QueryVector

STARTS = 3
COMPARED = 100
"""Queries whose vector search is held against the exact one."""
READ = 5_000
SLACK = 1e-5
"""Cosines this near are one: the same text twice."""
NEW_FROM = 50_000_000
"""Numbers of sentences that no store holds: what is remembered is taken from there."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: how many memories, how many calls of each, seconds for embedding for real."""

    sizes: Sequence[int]
    runs: int
    seconds: float
    cache: Path


def measure(plan: Plan, progress: Callable[[str], Progress], said: Callable[[str], None]) -> dict[str, Any]:
    """Every size's figures, smallest first. Inside `scratch()` only: it fills the database it finds."""
    embedder, semantic = _embedder()
    filler = Filler(embedder, plan.cache, plan.seconds)
    filler.begin()
    found = []
    for place, size in enumerate(sorted(plan.sizes)):
        begun = time.monotonic()
        filler.fill(size, progress("embedded"), progress("stored"))
        filled = time.monotonic() - begun
        said(f"{size:,} memories are stored after {filled:,.0f} s; measuring")
        row = _Size(size, plan.runs, place, embedder).measured()
        took = time.monotonic() - begun - filled
        kinds = {"real": filler.real, "mixed": filler.mixed}
        times_of = {"filled_seconds": round(filled, 1), "measured_seconds": round(took, 1)}
        found.append({"memories": size, "vectors": kinds, **times_of, **row})
        said(
            f"{size:,}: measured in {took:,.0f} s; recall p95 {row['recall']['p95']} ms, "
            f"remember p50 {row['remember']['p50']} ms"
        )
    return {"semantic": semantic, "runs": plan.runs, "sizes": found}


def _embedder() -> tuple[Embedder | None, str]:
    try:
        embedder = embedding.wanted()
        embedder.embed(["a probe"])
    except SemanticOff as off:
        return None, f"off: {off.reason}"
    return embedder, f"on ({embedder.name})"


@dataclass(frozen=True, slots=True)
class _Size:
    """One size that is there, to be measured. `place` keeps its queries apart from those of other sizes."""

    size: int
    runs: int
    place: int
    embedder: Embedder | None

    def measured(self) -> dict[str, Any]:
        busy = [load()]
        exact = self._against_exact()  # before the starts: it leaves the file of sign bits, as a running house has it
        starts = [self._start(number) for number in range(min(STARTS, self.runs) - 1)]
        quiet = self._answers("quiet", remembering=True)
        busy.append(load())
        with process("load", observations=self._new("load", 10_000)) as loading:
            loading.line("running")
            under = self._answers("under load", remembering=False)
            busy.append(load())
            did = loading.finish()
        return {
            "recall": times(quiet["recall"]),
            "recall_cpu": times(quiet["cpu"]),
            "without_record": times(quiet["without_record"]),
            "steps": {name: times(values)["p50"] for name, values in quiet["steps"].items()},
            "answered": round(quiet["answered"] / len(quiet["recall"]), 3),
            "remember": times(quiet["remember"]),
            "remember_cpu": times(quiet["remember_cpu"]),
            "outcomes": quiet["outcomes"],
            "under_load": times(under["recall"]),
            "under_load_without_record": times(under["without_record"]),
            "load_did": {**did["done"], "seconds": round(did["seconds"], 1)},
            "memory_mb": round(quiet["memory"] / 1e6),
            "start_seconds": round(median([*starts, quiet["start"]]), 2),
            "vector_recall_at_10": exact,
            "vectors_served_by": self._served_by(),
            "load": busy,
        }

    def _start(self, number: int) -> float:
        """Seconds from nothing to the first answer of a fresh process."""
        begun = time.perf_counter()
        with process("answer", queries=self._queries(f"start {number}", 1), observations=[]) as started:
            started.line("first")
            return time.perf_counter() - begun

    def _answers(self, name: str, *, remembering: bool) -> dict[str, Any]:
        new = self._new(name, self.runs) if remembering else []
        begun = time.perf_counter()
        with process("answer", queries=self._queries(name, self.runs + WARM + 1), observations=new) as asked:
            asked.line("first")
            start = time.perf_counter() - begun
            return {**asked.line("recall"), **asked.finish(), "start": start}

    def _queries(self, name: str, count: int) -> list[tuple[str, int | None]]:
        projects = dict(Project.objects.values_list("slug", "pk"))
        seed = hash_of(f"{self.place} {name}")
        return [(query, projects.get(slug or "")) for query, slug in queries(count, self.size, seed)]

    def _new(self, name: str, count: int) -> list[dict[str, Any]]:
        """Observations to take in: seven of ten new, one in other clauses, one as it is known, one of other values."""
        projects = dict(Project.objects.values_list("slug", "pk"))
        first = NEW_FROM + hash_of(f"{self.place} {name}") % 10**7
        found = []
        for number in range(count):
            known = sentence(number * 7_919 % self.size, said=number % 10 == 7)
            one = sentence(first + number) if number % 10 < 7 else known
            said = one.observation
            if number % 10 == 9:
                said = "".join(str((int(c) + 3) % 10) if c.isdigit() else c for c in said)
            found.append(
                {
                    "category": one.category,
                    "service": one.service,
                    "project": projects.get(one.project or ""),
                    "observation": said,
                }
            )
        return found

    def _served_by(self) -> str | None:
        model = EmbeddingModel.objects.first()
        return pgvector.served_by(model) if model else None

    def _against_exact(self) -> float | None:
        """The share of the ten nearest that the shipped vector search finds too, over the stored floats."""
        model = EmbeddingModel.objects.first()
        if self.embedder is None or model is None:
            return None
        texts = [query for query, _ in queries(COMPARED, self.size, hash_of(f"{self.place} exact"))]
        asked = np.stack([self.embedder.embed([text])[0] for text in texts])
        best = nearest(asked, model)
        newest = Embedding.objects.filter(model=model).latest("id").pk
        found = []
        for query, floor in zip(asked, best, strict=True):
            there = vector_search.nearest(QueryVector(model, query, newest), EVERYTHING, vector_search.FOR_RECALL)
            near = sorted(there.cosines.values(), reverse=True)[:10]
            found.append(sum(one >= floor - SLACK for one in near) / min(10, self.size))
        return round(float(np.mean(found)), 4)


def nearest(asked: Vectors, model: EmbeddingModel) -> list[float]:
    """For each query the cosine of its tenth nearest stored vector: what an exact search would reach."""
    best = np.full((len(asked), 0), -1.0, dtype=np.float32)
    rows = Embedding.objects.filter(model=model).order_by("id").values_list("vector", flat=True).iterator(READ)
    raws: list[bytes] = []

    def take() -> None:
        nonlocal best
        stored = np.frombuffer(b"".join(raws), dtype="<f4").reshape(len(raws), model.dimensions)
        best = -np.sort(-np.concatenate([best, asked @ stored.T], axis=1), axis=1)[:, :10]
        raws.clear()

    for raw in rows:
        raws.append(bytes(raw))
        if len(raws) == READ:
            take()
    if raws:
        take()
    return [float(one[-1]) for one in best]


def times(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds: p50 and p95 by nearest rank, and the slowest."""
    ordered = sorted(seconds)

    def at(share: float) -> float:
        return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)] * 1000, 2)

    return {"p50": at(0.5), "p95": at(0.95), "max": at(1.0)} if ordered else {}


def hash_of(text: str) -> int:
    """A number of a text, the same on every run."""
    return int.from_bytes(text.encode(), "big") % 1_000_003
