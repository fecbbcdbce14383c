"""`manage.py bench export`: what the operator settled, as sets that the benches read."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memories.bench.lines import write_lines
from memories.bench.settled import settled_pairs
from memories.cli import NextAction, Result, Verb

KINDS: Mapping[str, Callable[[], Iterator[dict[str, Any]]]] = {"pairs": settled_pairs}
"""What can be exported: a kind, and where its lines come from."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--kind", required=True, choices=sorted(KINDS), help="pairs: the answers of the inbox")
    parser.add_argument("--out", required=True, metavar="FILE", help="where the lines go (JSONL)")


def run(kind: str, out: str) -> Result:
    count = write_lines(out, KINDS[kind]())
    then = [NextAction(f"manage.py bench matching --pairs {out}", "how the judgement does on them")]
    text = f"{count} {kind} are in {out}." if count else f"Nothing is settled yet; {out} is empty."
    return Result({"kind": kind, "count": count, "out": out}, text, then if count and kind == "pairs" else ())


VERBS = {"export": Verb("Write what you settled as a set that the benches read.", run, arguments)}
