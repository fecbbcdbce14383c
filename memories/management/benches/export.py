"""`manage.py bench export`: what the operator settled and marked, as sets that the benches read."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from claudeops.lib.cli import NextAction, Refusal, Result, Verb
from memories.bench.lines import writable, write_lines
from memories.bench.marked import marked, recallable
from memories.bench.settled import settled_pairs

PAIRS, RECALL = "pairs", "recall"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--kind", required=True, choices=[PAIRS, RECALL], help="pairs: the answers of the inbox; recall: marked hits"
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="where the pairs or the queries go (JSONL)")
    parser.add_argument(
        "--memories", metavar="FILE", help="where the memories go that the queries are asked of (for recall, JSONL)"
    )


def run(kind: str, out: str, memories: str | None) -> Result:
    if kind == RECALL:
        return _recall(out, memories)
    if memories:
        raise Refusal("not_for_pairs", "--memories is for --kind recall; pairs hold their texts.", "Leave it out.")
    count = write_lines(out, settled_pairs())
    then = [NextAction(f"manage.py bench matching --pairs {out}", "how the judgement does on them")]
    text = f"{count} pairs are in {out}." if count else f"Nothing is settled yet; {out} is empty."
    return Result({"kind": kind, "count": count, "out": out}, text, then if count else ())


def _recall(out: str, memories: str | None) -> Result:
    if not memories:
        raise Refusal("no_memories_file", "--kind recall writes two files.", "Give the other one with --memories FILE.")
    if Path(out).resolve() == Path(memories).resolve():
        raise Refusal("same_file", f"--out and --memories are both {out}.", "Give two files.")
    writable(out)
    writable(memories)
    found = marked()
    there = write_lines(memories, recallable())
    count = write_lines(out, found.queries)
    data = {
        "kind": RECALL,
        "count": count,
        "left_out": found.left_out,
        "memories": there,
        "out": out,
        "memories_out": memories,
    }
    if count:
        text = f"{count} queries are in {out}, the {there} memories that may be recalled in {memories}."
    else:
        text = f"No hit that may be recalled is marked right yet; {out} is empty."
    if found.left_out:
        text += (
            f"\n{found.left_out} marked queries are left out: no memory that was marked right for them may be recalled."
        )
    command = f"manage.py bench recall --memories {memories} --queries {out}"
    return Result(data, text, [NextAction(command, "how recall does on them")] if count else ())


VERBS = {"export": Verb("Write what you settled or marked as a set that the benches read.", run, arguments)}
