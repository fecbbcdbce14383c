"""The commands of `python -m tests.benchmarks.evaluation`: evaluate recall and matching on labelled sets."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from claudeops.lib.cli import Refusal, Result, VerbCommand, arg, table, verb
from memories import embedding
from memories.embedding import Embedder, SemanticOff
from memories.llm.roles import chosen
from memories.management.commands.bench import check_writable, write
from memories.matching import Kind
from tests.benchmarks.evaluation import judging, matching, recall, sets
from tests.benchmarks.evaluation.judging import Settled
from tests.benchmarks.evaluation.machine import describe
from tests.benchmarks.evaluation.metrics import Confusion
from tests.benchmarks.evaluation.scratch import scratch_database
from tests.benchmarks.evaluation.sets import MemoryLine, PairLine, QueryLine
from tests.benchmarks.evaluation.vectors import Progress

SHOWN = ("recall@1", "recall@5", "recall@10", "recall@20", "hit@5", "mrr", "ndcg@10")
REPORT_EVERY = 15.0
"""Seconds between two lines of progress where stderr is not a terminal."""


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not allowed; a whole number from 1 on is.")
    return int(text)


def cache() -> Path:
    return Path(settings.CLAUDEOPS_DATA_DIR) / "bench"


def progress(verb: str) -> Progress:
    """Report progress on stderr: in one line on a terminal, elsewhere in a line now and then."""
    reported = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal reported
        line = f"{verb} {done:,} of {total:,}"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{line}" + ("\n" if done == total else ""))
        elif time.monotonic() - reported > REPORT_EVERY:
            reported = time.monotonic()
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    return report


@verb
def evaluate_matching(
    self: VerbCommand,
    *,
    pairs: str = arg("JSONL: id, known, new, relation, service?", metavar="FILE"),
    out: str | None = arg("write each judgement with its evidence here, one a line", metavar="FILE"),
    words: bool = arg("judge without the embedding model"),
    judge: bool = arg("ask the model of the role judge about what stays unsure, 20 pairs to a call"),
) -> Result:
    """How often matching judges two texts as a person does, on a file of labelled pairs."""
    if judge and (off := chosen("judge").off or chosen("judge").backend.trouble()):
        raise Refusal("no_judge", f"There is no judge to ask: {off}.", "Set CLAUDEOPS_MODEL_JUDGE.")
    if out:
        check_writable(out)
    lines = sets.read(pairs, PairLine)
    embedder, semantic = (None, "not used (--words)") if words else _embedder()
    judged = matching.judge(lines, embedder, cache(), progress("embedded"))
    confusion = Confusion.of((one.relation, found.kind) for one, found in zip(lines, judged, strict=True))
    settled = judging.settle(lines, judged, progress("judged")) if judge else None
    kinds = settled.kinds if settled else [found.kind for found in judged]
    if out:
        found_of = zip(lines, kinds, judged, strict=True)
        write(out, ({"id": one.id, "relation": kind, "evidence": f.evidence} for one, kind, f in found_of))
    data = {
        "set": Path(pairs).name,
        **confusion.as_dict(),
        "judged": len(judged),
        "out": out,
        "semantic": semantic,
        "machine": describe(of_database=False),
    }
    if settled is not None:
        data["judge"] = _judge_data(settled, Confusion.of(zip((one.relation for one in lines), kinds, strict=True)))
    if confusion.total:
        text = _confusion_text(confusion) + (_judge_text(data) if settled else "")
    else:
        text = f"{len(judged)} pairs are judged; none is labelled with its relation, so nothing is counted."
    return Result(data, "\n".join([text, *_written(out), f"Embeddings: {semantic}."]))


def _judge_data(settled: Settled, confusion: Confusion) -> dict[str, Any]:
    return {
        **confusion.as_dict(),
        "model": chosen("judge").model,
        "asked": settled.asked,
        "unanswered": settled.unanswered,
        "calls": settled.calls,
        "tokens_in": settled.tokens_in,
        "tokens_out": settled.tokens_out,
        "cost_usd": round(settled.cost_usd, 6),
        "why": settled.why,
    }


def _judge_text(data: Mapping[str, Any]) -> str:
    """Compare the figures of matching alone with those with the judge's word."""
    judge = data["judge"]
    names = ("accuracy", "macro_f1", "distinct_lost", "contradictions_swallowed", "restatements_merged", "destructive")
    rows = [[name.replace("_", " "), f"{data[name]:.3f}", f"{judge[name]:.3f}"] for name in names]
    took = (
        f"{judge['model']} was asked about {judge['asked']} pairs in {judge['calls']} calls "
        f"({judge['tokens_in']:,} tokens in, {judge['tokens_out']:,} out, ${judge['cost_usd']:.4f}); "
        f"{judge['unanswered']} without a verdict{': ' + judge['why'] if judge['why'] else ''}."
    )
    return "\n".join(["", "", table(["", "matching", "with the judge"], rows), "", took])


def _embedder() -> tuple[Embedder | None, str]:
    try:
        embedder = embedding.wanted()
        embedder.embed(["a probe"])
    except SemanticOff as off:
        return None, str(off)
    return embedder, f"on ({embedder.name})"


def _confusion_text(confusion: Confusion) -> str:
    rows = [[truth, *(confusion.counts[truth, judged] for judged in Kind)] for truth in Kind]
    rates = {
        "distinct facts lost": confusion.share(Kind.DISTINCT, Kind.REINFORCES),
        "contradictions swallowed": confusion.share(Kind.CONTRADICTS, Kind.REINFORCES),
        "restatements merged": confusion.share(Kind.REINFORCES, Kind.REINFORCES),
        "destructive errors": confusion.destructive,
    }
    return "\n".join(
        [
            table(["labelled \\ judged", *Kind], rows),
            "",
            f"{confusion.total} pairs, macro-F1 {confusion.macro_f1:.3f}",
            *(f"{name:<26}{rate:.1%}" for name, rate in rates.items()),
        ]
    )


@verb
def evaluate_recall(
    self: VerbCommand,
    *,
    memories: str = arg("JSONL: id, text, service?, project?, …", metavar="FILE"),
    queries: str = arg("JSONL: id, query, relevant, as_of?, …", metavar="FILE"),
    limit: int = arg("how many ids of each query are written (default 20)", type=positive, default=20),
    context: bool = arg("count the neighbours within a sequence"),
    out: str | None = arg("write each query's ids here, best first, one JSON object a line", metavar="FILE"),
) -> Result:
    """How often recall finds the relevant memories, on a file of memories and one of queries."""
    if out:
        check_writable(out)
    asked, known, folder = sets.read(queries, QueryLine), sets.read(memories, MemoryLine), cache()
    ids = {one.id for one in known}
    machine = describe()
    with scratch_database():
        stored = recall.store(known, folder, progress("embedded"))
        ranked, semantic = recall.rank(
            asked, stored, context=context, limit=max(20, limit), progress=progress("queried")
        )
    if out:
        rows = zip(asked, ranked["recall"], strict=True)
        write(out, ({"id": one.id, "ranked": found[:limit]} for one, found in rows))
    data = {
        "set": Path(queries).name,
        "context": context,
        "semantic": semantic,
        **recall.figures(asked, ranked),
        "memories": len(known),
        "queries": len(asked),
        "unknown": sorted({name for one in asked for name in one.relevant if name not in ids}),
        "out": out,
        "machine": machine,
    }
    return Result(data, _recall_text(data))


def _recall_text(data: Mapping[str, Any]) -> str:
    unknown, uncounted = data["unknown"], data["queries"] - data["counted"]
    lines = [f"{data['queries']:,} queries over {data['memories']:,} memories; semantic search is {data['semantic']}"]
    if unknown:
        some = ", ".join(unknown[:5]) + (", …" if len(unknown) > 5 else "")
        lines.append(f"{len(unknown):,} relevant ids belong to no memory and cannot be found: {some}")
    if uncounted:
        lines.append(f"{uncounted:,} queries have no relevant memory and are not counted.")
    if data["counted"]:
        rows = []
        for name, found in data["variants"].items():
            rows.append([name, *_cells(found, "mean")])
            if name == "recall":
                rows += [["  95 % from", *_cells(found, "low")], ["  95 % to", *_cells(found, "high")]]
        lines += ["", table(["ranking", *SHOWN], rows)]
    if data["categories"]:
        rows = [
            [name, found["queries"], *_cells(found, "mean"), "{low:.3f} to {high:.3f}".format(**found["recall@5"])]
            for name, found in data["categories"].items()
        ]
        lines += ["", table(["category", "queries", *SHOWN, "95 % of recall@5"], rows)]
    return "\n".join([*lines, *_written(data["out"])])


def _cells(found: Mapping[str, Any], which: str) -> list[str]:
    return [f"{found[name][which]:.3f}" for name in SHOWN]


def _written(out: str | None) -> list[str]:
    return [f"The answers are in {out}."] if out else []


class Command(VerbCommand):
    help = "Evaluate recall and matching on labelled sets. Your own memories are neither read nor written."
    noun = "bench"
    matching = evaluate_matching
    recall = evaluate_recall

    def answer(self, command: str, run: Callable[..., Result], options: Mapping[str, Any]) -> None:
        try:
            super().answer(command, run, options)
        except KeyboardInterrupt:
            self.stderr.write("\nInterrupted. The scratch database is dropped; computed vectors are kept.")
            sys.exit(130)
