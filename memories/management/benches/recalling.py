"""`manage.py bench recall`: how often recall finds what answers, on a file of memories and one of queries."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings

from memories.bench import recalling
from memories.bench.lines import write_lines
from memories.bench.scratch import scratch
from memories.cli import Result, Verb, table

SHOWN = ("recall@1", "recall@5", "recall@10", "recall@20", "hit@5", "mrr", "ndcg@10")


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--memories", required=True, metavar="FILE", help="JSONL: id, text, service?, project?, …")
    parser.add_argument("--queries", required=True, metavar="FILE", help="JSONL: id, query, relevant, as_of?, …")
    parser.add_argument("--limit", type=int, default=20, help="how many ids of each query are kept (default 20)")
    parser.add_argument("--context", action="store_true", help="count the neighbours within a sequence")
    parser.add_argument("--out", metavar="FILE", help="write each query's ids here, best first, one JSON object a line")


def run(memories: str, queries: str, limit: int, context: bool, out: str | None) -> Result:
    asked = recalling.read_queries(queries)
    cache = Path(settings.CLAUDEOPS_DATA_DIR) / "bench"
    with scratch():
        keys, _ = recalling.store(memories, cache, _progress("embedded"))
        answers = recalling.answer(asked, keys, context=context, limit=max(20, limit), progress=_progress("asked"))
    if out:
        rows = zip(asked, answers.ranked["recall"], strict=True)
        write_lines(out, ({"id": one.id, "ranked": ranked[:limit]} for one, ranked in rows))
    data = {**recalling.figures(answers), "memories": len(keys), "queries": len(asked), "out": out}
    return Result(data, _text(data))


def _progress(what: str) -> recalling.Progress:
    def say(done: int, total: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{what} {done:,} of {total:,}" + ("\n" if done == total else ""))

    return say


def _text(data: dict[str, Any]) -> str:
    lines = [
        f"{data['queries']:,} queries over {data['memories']:,} memories; semantic search is {data['semantic']}",
        "",
    ]
    rows = [[name, *(_shown(found.get(one)) for one in SHOWN)] for name, found in data["variants"].items()]
    lines.append(table(["ranking", *SHOWN], rows))
    if data["categories"]:
        rows = [[name, *(_shown(found.get(one)) for one in SHOWN)] for name, found in data["categories"].items()]
        lines += ["", table(["category", *SHOWN], rows)]
    best = data["variants"]["recall"].get("recall@10")
    if best:
        lines += ["", f"recall@10 {best['mean']:.3f}, 95 % interval {best['low']:.3f} to {best['high']:.3f}"]
    if data["out"]:
        lines.append(f"The answers are in {data['out']}.")
    return "\n".join(lines)


def _shown(figure: dict[str, float] | None) -> str:
    return "" if figure is None else f"{figure['mean']:.3f}"


VERBS = {"recall": Verb("How often recall finds what answers, on files of memories and queries.", run, arguments)}
