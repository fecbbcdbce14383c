"""`manage.py bench`: export the operator's judgements as evaluation sets. `tests.benchmarks.evaluation` reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from claudeops.lib.cli import Refusal, Result, VerbCommand, arg, verb, writing
from memories.exchange import judgements

EVALUATE = "python -m tests.benchmarks.evaluation"


@verb
def export(
    self: VerbCommand,
    *,
    kind: str = arg("pairs: answered disagreements; recall: hits marked right or wrong", choices=["pairs", "recall"]),
    out: str = arg("file of the pairs or queries (JSONL)", metavar="FILE"),
    memories: str | None = arg("file of the memories that are searched (JSONL, for recall)", metavar="FILE"),
) -> Result:
    """Write what you answered or marked as an evaluation set."""
    if kind == "recall":
        return _export_recall(out, memories)
    if memories:
        raise Refusal("not_for_pairs", "--memories is for --kind recall; pairs hold their texts.", "Leave it out.")
    count = write(out, judgements.answered_pairs())
    if not count:
        return Result({"kind": kind, "count": 0, "out": out}, f"No disagreement is answered yet; {out} is empty.")
    action = {f"{EVALUATE} matching --pairs {out}": "evaluate matching on them"}
    return Result({"kind": kind, "count": count, "out": out}, f"{count} pairs are in {out}.", action)


def _export_recall(out: str, memories: str | None) -> Result:
    if not memories:
        raise Refusal("no_memories_file", "--kind recall writes two files.", "Name the other one with --memories FILE.")
    if Path(out).resolve() == Path(memories).resolve():
        raise Refusal("same_file", f"--out and --memories are both {out}.", "Give two files.")
    check_writable(out)
    queries, left_out = judgements.marked_queries()
    memory_count = write(memories, judgements.memory_lines())
    count = write(out, queries)
    data = {"kind": "recall", "count": count, "left_out": left_out, "memories": memory_count, "out": out}
    data["memories_out"] = memories
    text = f"{count} queries are in {out}, the {memory_count} memories that may be recalled in {memories}."
    if not count:
        text = f"No hit that may be recalled is marked right yet; {out} is empty."
    if left_out:
        text += f"\n{left_out} marked queries are left out: no memory marked right for them may be recalled."
    action = {f"{EVALUATE} recall --memories {memories} --queries {out}": "evaluate recall on them"}
    return Result(data, text, action if count else {})


def check_writable(path: str) -> None:
    """Raise Refusal when no file can be written there: before the work, not after it."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise Refusal("invalid_set", f"{path} cannot be written.", "Give the path of a file in a folder that exists.")


def write(path: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write the rows as JSON Lines, whole or not at all. Returns their number. Raises Refusal."""
    count = 0
    with writing(path, code="invalid_set") as out:
        for count, row in enumerate(rows, 1):  # noqa: B007
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


class Command(VerbCommand):
    help = "Export what you answered or marked as an evaluation set. Your memories are only read."
    export = export
