"""`manage.py bench recall`: how often recall finds what answers, on a file of memories and one of queries."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from claudeops.lib.cli import Result, Verb, table
from memories.bench import recalling, sets
from memories.bench.lines import writable, write_lines
from memories.bench.machine import describe
from memories.bench.scratch import scratch
from memories.management.benches import shared

SHOWN = ("recall@1", "recall@5", "recall@10", "recall@20", "hit@5", "mrr", "ndcg@10")


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--memories", required=True, metavar="FILE", help="JSONL: id, text, service?, project?, …")
    parser.add_argument("--queries", required=True, metavar="FILE", help="JSONL: id, query, relevant, as_of?, …")
    parser.add_argument(
        "--limit", type=shared.whole, default=20, help="how many ids of each query are kept (default 20)"
    )
    parser.add_argument("--context", action="store_true", help="count the neighbours within a sequence")
    parser.add_argument("--out", metavar="FILE", help="write each query's ids here, best first, one JSON object a line")


def run(memories: str, queries: str, limit: int, context: bool, out: str | None) -> Result:
    writable(out)
    asked, read, cache = sets.read_queries(queries), sets.read_memories(memories), shared.cache()
    unknown = sorted({name for one in asked for name in one.relevant if name not in read})
    machine = describe()
    with scratch():
        stored = sets.store(read, cache, shared.progress("embedded"))
        progress = shared.progress("asked")
        answers = recalling.answer(asked, stored.keys, context=context, limit=max(20, limit), progress=progress)
    if out:
        rows = zip(asked, answers.ranked["recall"], strict=True)
        write_lines(out, ({"id": one.id, "ranked": ranked[:limit]} for one, ranked in rows))
    figures = recalling.figures(answers)
    if figures["semantic"] == "on":
        figures["semantic"] = stored.semantic
    data = {
        "set": Path(queries).name,
        "context": context,
        **figures,
        "memories": len(read),
        "queries": len(asked),
        "unknown": unknown,
        "out": out,
        "machine": machine,
    }
    return Result(data, _text(data))


def _text(data: dict[str, Any]) -> str:
    lines = [
        f"{data['queries']:,} queries over {data['memories']:,} memories; semantic search is {data['semantic']}",
        "",
    ]
    if data["queries"] > data["counted"]:
        lines[1:1] = [f"{data['queries'] - data['counted']:,} queries have no relevant memory and are not counted."]
    if data["unknown"]:
        some = ", ".join(data["unknown"][:5]) + (", …" if len(data["unknown"]) > 5 else "")
        lines[1:1] = [f"{len(data['unknown']):,} relevant ids are of no memory and cannot be found: {some}"]
    rows: list[list[str]] = []
    for name, found in data["variants"].items():
        rows.append([name, *(_shown(found.get(one), "mean") for one in SHOWN)])
        if name == "recall" and found:
            rows.append(["  95 % from", *(_shown(found[one], "low") for one in SHOWN)])
            rows.append(["  95 % to", *(_shown(found[one], "high") for one in SHOWN)])
    lines.append(table(["ranking", *SHOWN], rows))
    if data["categories"]:
        rows = [
            [name, str(found["queries"]), *(_shown(found[one], "mean") for one in SHOWN), _interval(found["recall@5"])]
            for name, found in data["categories"].items()
        ]
        lines += ["", table(["category", "queries", *SHOWN, "95 % of recall@5"], rows)]
    if data["out"]:
        lines += ["", f"The answers are in {data['out']}."]
    return "\n".join(lines)


def _shown(figure: dict[str, float] | None, which: str) -> str:
    return "" if figure is None else f"{figure[which]:.3f}"


def _interval(figure: dict[str, float]) -> str:
    return f"{figure['low']:.3f} to {figure['high']:.3f}"


VERBS = {"recall": Verb("How often recall finds what answers, on files of memories and queries.", run, arguments)}
