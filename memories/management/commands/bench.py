"""`manage.py bench`: export the operator's judgements as evaluation sets. `tests.benchmarks.evaluation` reads them."""

from __future__ import annotations

import contextlib
import json
import os
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand
from memories.exchange import judgements

EVALUATE = "python -m tests.benchmarks.evaluation"


def export_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--kind",
        required=True,
        choices=["pairs", "recall"],
        help="pairs: answered disagreements; recall: hits marked right or wrong",
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="file of the pairs or queries (JSONL)")
    parser.add_argument("--memories", metavar="FILE", help="file of the memories that are searched (JSONL, for recall)")


def export(kind: str, out: str, memories: str | None) -> Result:
    if kind == "recall":
        return _export_recall(out, memories)
    if memories:
        raise Refusal("not_for_pairs", "--memories is for --kind recall; pairs hold their texts.", "Leave it out.")
    count = write(out, judgements.answered_pairs())
    if not count:
        return Result({"kind": kind, "count": 0, "out": out}, f"No disagreement is answered yet; {out} is empty.")
    action = NextAction(f"{EVALUATE} matching --pairs {out}", "evaluate matching on them")
    return Result({"kind": kind, "count": count, "out": out}, f"{count} pairs are in {out}.", [action])


def _export_recall(out: str, memories: str | None) -> Result:
    if not memories:
        raise Refusal("no_memories_file", "--kind recall writes two files.", "Name the other one with --memories FILE.")
    if Path(out).resolve() == Path(memories).resolve():
        raise Refusal("same_file", f"--out and --memories are both {out}.", "Give two files.")
    check_writable(out)
    queries, left_out = judgements.marked_queries()
    known = write(memories, judgements.memory_lines())
    count = write(out, queries)
    data = {"kind": "recall", "count": count, "left_out": left_out, "memories": known, "out": out}
    data["memories_out"] = memories
    text = f"{count} queries are in {out}, the {known} memories that may be recalled in {memories}."
    if not count:
        text = f"No hit that may be recalled is marked right yet; {out} is empty."
    if left_out:
        text += f"\n{left_out} marked queries are left out: no memory marked right for them may be recalled."
    action = NextAction(f"{EVALUATE} recall --memories {memories} --queries {out}", "evaluate recall on them")
    return Result(data, text, [action] if count else ())


def check_writable(path: str) -> None:
    """Raise Refusal when no file can be written there: before the work, not after it."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise Refusal("invalid_set", f"{path} cannot be written.", "Give the path of a file in a folder that exists.")


def write(path: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write the rows as JSON Lines, whole or not at all. Returns their number. Raises Refusal."""
    target, count = Path(path), 0
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as out:
            for row in rows:
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
        part.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise Refusal("invalid_set", f"{path} cannot be written: {error.strerror or error}.") from None
    return count


class Command(VerbCommand):
    help = "Export what you answered or marked as an evaluation set. Your memories are only read."
    noun = "bench"
    verbs = {"export": Verb("Write what you answered or marked as an evaluation set.", export, export_arguments)}
