"""Write docs/results.md from the figures of `baseline write`. Pure: no path of a machine is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MEASURES = ("recall@1", "recall@5", "recall@10", "hit@1", "hit@5", "ndcg@10")
RATES = ("distinct_lost", "contradictions_swallowed", "restatements_merged", "destructive")
TARGETS_MS = {1_000: 15, 10_000: 20, 100_000: 30, 1_000_000: 80}
"""Target for the p95 of a recall, by number of memories."""

Data = Mapping[str, Any]


def page(files: Sequence[Data]) -> str:
    """The page as Markdown: quality and latency of every file, in their order."""
    found = [(kind.partition(" ")[0], data) for one in files for kind, data in one.get("quality", {}).items()]
    parts = [
        "# Results",
        "Written by `python -m tests.benchmarks.baseline page FILE… --out docs/results.md`; do not edit. What is\n"
        "measured and how: [recall](recall.md#measuring), [matching](matching.md#figures), "
        "[latency](benchmarks.md#latency).",
        "## Recall",
        "Means over the queries with 95 % bootstrap intervals.",
        *(part for kind, data in found if kind == "recall" for part in _recall(data)),
        "## Matching",
        *_matching([data for kind, data in found if kind == "matching"]),
        "## Latency",
        "Milliseconds; each series in a process of its own. A recall includes the query's embedding and its log\n"
        "entry; no query is repeated. CPU is the processor time of that process alone. Under load, another process\n"
        "rebuilds the index, sweeps and ingests a session. The sentences are generated.",
        *(part for one in files if "latency" in one for part in _latency(one["latency"])),
    ]
    return "\n\n".join(parts) + "\n"


def _recall(data: Data) -> Iterator[str]:
    yield f"### {data['set']}"
    yield f"{data['counted']:,} queries over {data['memories']:,} memories; semantic search is {data['semantic']}."
    yield _machine(data["machine"])
    variants = data["variants"].items()
    rows = [[name, *(_interval(found[one], whole=name == "recall") for one in MEASURES)] for name, found in variants]
    yield _table(["ranking", *MEASURES], rows)
    categories = data["categories"].items()
    rows = [[name, f"{found['queries']:,}", *(_interval(found[one]) for one in MEASURES)] for name, found in categories]
    if rows:
        yield _table(["category", "queries", *MEASURES], rows)


def _matching(found: Sequence[Data]) -> Iterator[str]:
    headers = ["set", "pairs", "macro-F1", *(name.replace("_", " ") for name in RATES)]
    rows = [
        [data["set"], data["pairs"], f"{data['macro_f1']:.3f}", *(f"{data[rate]:.1%}" for rate in RATES)]
        for data in found
    ]
    yield _table(headers, rows)


def _latency(data: Data) -> Iterator[str]:
    yield f"### {data['machine']['database']}"
    yield f"{data['runs']} calls of each kind; semantic search is {data['semantic']}. {_machine(data['machine'])}"
    series = ("recall", "recall_cpu", "under_load", "remember", "remember_cpu")
    headers = ["memories", "p95 target", *(f"{s.replace('_', ' ')} {p}" for s in series for p in ("p50", "p95"))]
    rows = [
        [
            f"{one['memories']:,}",
            TARGETS_MS.get(one["memories"], ""),
            *(one[s][p] for s in series for p in ("p50", "p95")),
        ]
        for one in data["sizes"]
    ]
    yield _table(headers, rows)
    headers = ["memories", "memory MB", "start s", "vector recall@10", "vectors", "load", "done under load"]
    rows = []
    for one in data["sizes"]:
        done, made = dict(one["load_did"]), one["vectors"]
        rows.append(
            [
                *(f"{one['memories']:,}", one["memory_mb"], one["start_seconds"], one["vector_recall_at_10"]),
                f"{made['real']:,} by the model, {made['mixed']:,} mixed; searched by {one['vectors_served_by']}",
                f"{min(one['load']):g} to {max(one['load']):g}",
                ", ".join(f"{count:,} {name}" for name, count in done.items()),
            ]
        )
    yield _table(headers, rows)


def _machine(machine: Data) -> str:
    names = f"{machine['cores']} cores, {machine['processor']}, Python {machine['python']}, Django {machine['django']}"
    return (
        f"Measured {machine['at']}: {machine['database']}, {names}, numpy {machine['numpy']}, load {machine['load']}."
    )


def _interval(found: Data, *, whole: bool = True) -> str:
    return f"{found['mean']:.3f}" + (f" [{found['low']:.3f}, {found['high']:.3f}]" if whole else "")


def _table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (headers, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(headers), *lines[1:]])
