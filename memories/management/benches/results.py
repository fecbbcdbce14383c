"""`manage.py bench results`: the JSON documents of the benches as one page."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from claudeops.lib.cli import Result, Verb
from memories.bench.lines import write_text
from memories.bench.page import KINDS, page
from memories.errors import InvalidSet

COMMAND = "manage.py bench results FILE… --out docs/results.md"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("documents", nargs="+", metavar="FILE", help="what a bench printed with --json")
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="the page (Markdown); one that is there is replaced"
    )


def run(documents: list[str], out: str) -> Result:
    found = [_read(name) for name in documents]
    try:
        text = page(found, COMMAND)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidSet(
            f"A document lacks what the page shows ({type(error).__name__}: {error}).",
            "It is of another version, or was edited: run its bench again with --json.",
        ) from None
    write_text(out, text)
    counts = {kind: sum(one == kind for one, _ in found) for kind in KINDS}
    said = ", ".join(f"{count} of {kind}" for kind, count in counts.items() if count)
    return Result({"out": out, **counts}, f"The page is {out}, made of {len(found)} documents: {said}.")


def _read(name: str) -> tuple[str, dict[str, Any]]:
    """(kind, result) of a document."""
    try:
        document = json.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSet(f"{name} cannot be read: {error.strerror or error}.", "Give what a bench printed.") from None
    except ValueError as error:
        raise InvalidSet(f"{name} is no JSON ({error}).", "Run a bench with --json and keep what it prints.") from None
    command = document.get("command", "") if isinstance(document, dict) else ""
    kind = str(command).removeprefix("bench ")
    if kind not in KINDS or not str(command).startswith("bench "):
        raise InvalidSet(
            f"{name} is no document of a bench.", f"Pages are made of bench {', bench '.join(KINDS)} with --json."
        )
    if document.get("ok") is not True or not isinstance(document.get("result"), dict):
        raise InvalidSet(f"{name} says that {command} failed.", "Run it again; the page is made of what succeeded.")
    return kind, document["result"]


VERBS = {"results": Verb("Make a page of what the benches printed with --json.", run, arguments)}
