"""`manage.py bench matching`: how right the judgement on two texts is, on a file of pairs."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from claudeops.lib.cli import Result, Verb, table
from memories.bench.lines import writable, write_lines
from memories.bench.machine import describe
from memories.bench.matching import Figures, Judged, figures_of, judge_pairs, read_pairs
from memories.embedding import Embedder, SemanticOff, wanted
from memories.management.benches import shared
from memories.matching import Kind


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--pairs", required=True, metavar="FILE", help="JSONL: id, known, new, relation, service?")
    parser.add_argument(
        "--out", metavar="FILE", help="write each answer with its evidence here, one JSON object a line"
    )
    parser.add_argument("--words", action="store_true", help="judge by words and values alone, without the model")


def run(pairs: str, out: str | None, words: bool) -> Result:
    writable(out)
    wanted_pairs = read_pairs(pairs)
    machine = describe(of_database=False)  # none is asked
    embedder, semantic = _embedder(words)
    progress, embedding = shared.progress("judged"), shared.progress("embedded")
    judged = judge_pairs(wanted_pairs, embedder, shared.cache(), progress, embedding)
    if out:
        write_lines(out, (one.data() for one in judged))
    figures = figures_of(judged)
    data = {
        "set": Path(pairs).name,
        **figures.data(),
        "judged": len(judged),
        "out": out,
        "semantic": semantic,
        "machine": machine,
    }
    return Result(data, f"{_text(figures, judged, out)}\nMeaning: {semantic}.")


def _embedder(words: bool) -> tuple[Embedder | None, str]:
    """The embedder of the settings, whether the operator's vectors are made or not; and what there is to say of it."""
    if words:
        return None, "not asked (--words)"
    try:
        embedder = wanted()
        embedder.embed(["a probe"])
    except SemanticOff as off:
        return None, str(off)
    return embedder, f"on ({embedder.name})"


def _text(figures: Figures, judged: Sequence[Judged], out: str | None) -> str:
    lines = []
    if figures.total:
        headers = ["said \\ taken for", *(str(kind) for kind in Kind)]
        rows = [[truth, *(figures.confusion[truth, taken] for taken in Kind)] for truth in Kind]
        lines += [table(headers, rows), ""]
        lines += [
            f"{figures.total} pairs, macro-F1 {figures.macro_f1:.3f}",
            f"distinct facts lost       {figures.share(Kind.DISTINCT, Kind.REINFORCES):.1%}",
            f"contradictions swallowed  {figures.share(Kind.CONTRADICTS, Kind.REINFORCES):.1%}",
            f"restatements merged       {figures.share(Kind.REINFORCES, Kind.REINFORCES):.1%}",
            f"destructive errors        {figures.destructive / figures.total:.1%}",
        ]
    else:
        lines.append(f"{len(judged)} pairs judged; none says what its relation is, so there is nothing to count.")
    if out:
        lines.append(f"The answers are in {out}.")
    return "\n".join(lines)


VERBS = {"matching": Verb("How right the judgement on two texts is, on a file of pairs.", run, arguments)}
