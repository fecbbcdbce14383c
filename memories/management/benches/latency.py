"""`manage.py bench latency`: how fast recall and remember are at several sizes, on the database in use."""

from __future__ import annotations

import shutil
import sys
import tempfile
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.db import connection

from claudeops.lib.cli import Refusal, Result, Verb, table
from memories.bench import latency
from memories.bench.machine import describe
from memories.bench.scratch import scratch
from memories.management.benches import shared

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SMALLEST, LARGEST = 10, 10_000_000
BYTES_EACH = 6_000
"""What a memory with its terms, its vector and all indexes takes on SQLite at most, with room for the journal."""


def sizes(text: str) -> list[int]:
    """Whole numbers with commas between, for argparse."""
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError:
        found = []
    if not found or found[0] < SMALLEST or found[-1] > LARGEST:
        raise ArgumentTypeError(
            f"{text!r} is not allowed; whole numbers from {SMALLEST} to {LARGEST:,} with commas between are "
            "(1000,10000)."
        )
    return found


def arguments(parser: ArgumentParser) -> None:
    usual = ",".join(map(str, SIZES))
    parser.add_argument(
        "--sizes",
        type=sizes,
        default=list(SIZES),
        metavar="N,N,…",
        help=f"how many memories (default {usual}); filling takes 0.3 to 0.4 ms of processor time each, on all cores "
        "(docs/benchmarks.md), and 6 kB of disk while it runs",
    )
    parser.add_argument("--runs", type=shared.whole, default=200, metavar="N", help="calls of each kind (default 200)")
    parser.add_argument(
        "--seconds",
        type=shared.whole,
        default=120,
        metavar="N",
        help="how long vectors are made for real; the others are real ones mixed with noise (default 120); "
        "kept for the next run",
    )


def run(sizes: list[int], runs: int, seconds: int) -> Result:
    _room_for(max(sizes))
    machine = describe()
    plan = latency.Plan(sizes, runs, float(seconds), shared.cache())
    with scratch():
        data = {**latency.measure(plan, shared.progress, _say), "machine": machine}
    return Result(data, text_of(data))


def _room_for(size: int) -> None:
    if connection.vendor != "sqlite":
        return
    free, needed = shutil.disk_usage(tempfile.gettempdir()).free, size * BYTES_EACH
    if needed > free:
        raise Refusal(
            "no_room",
            f"{size:,} memories need {needed / 1e9:.1f} GB in {tempfile.gettempdir()}, which has {free / 1e9:.1f}.",
            "Set TMPDIR to a folder with more room, or ask for fewer with --sizes.",
        )


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def text_of(data: dict[str, Any]) -> str:
    """The figures as a person reads them."""
    machine = data["machine"]
    headers = [
        *("memories", "recall p50", "p95", "own CPU p50", "p95", "under load p50", "p95", "remember p50", "p95"),
        *("memory MB", "start s", "vector recall@10", "load"),
    ]
    rows = []
    for one in data["sizes"]:
        rows.append(
            [
                f"{one['memories']:,}",
                *(
                    one[name][share]
                    for name in ("recall", "recall_cpu", "under_load", "remember")
                    for share in ("p50", "p95")
                ),
                one["memory_mb"],
                one["start_seconds"],
                "" if one["vector_recall_at_10"] is None else f"{one['vector_recall_at_10']:.3f}",
                " ".join(str(value) for value in one["load"]),
            ]
        )
    lines = [
        f"{machine['database']}, {machine['cores']} cores ({machine['processor']}), Python {machine['python']}, "
        f"{machine['at']}",
        "",
        table(headers, rows),
        "",
        f"Milliseconds of {data['runs']} calls each, in a process of its own; recall with the query's embedding and",
        "its record, no query twice. Own CPU: the processor time of the asking process alone. Under load: another",
        "process rebuilds the index, sweeps and takes a session in meanwhile. Start: a fresh process until its first",
        "answer. Load: how many processes wanted a core, before, between and after.",
        f"Meaning: semantic search is {data['semantic']}."
        + (" The figures are of keyword search alone." if data["semantic"].startswith("off") else ""),
    ]
    last = data["sizes"][-1]["vectors"]
    if last["real"]:
        lines.append(
            f"Vectors: {last['real']:,} made by the model, {last['mixed']:,} real ones mixed with noise and normalised."
        )
    return "\n".join(lines)


VERBS = {"latency": Verb("How fast recall and remember are at several sizes, on the database in use.", run, arguments)}
