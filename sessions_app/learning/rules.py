"""The rules by which lessons are drawn from summarised runs. Pure.

What a lesson repeats of a log is another's text: it is folded to plain characters, cut and quoted.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memories.capture.text import fold

SEVERAL = 3
"""Failed runs that have something in common."""
MOST_LESSONS = 10
MOST_DIFFERENCES = 3
LONGEST = 100
"""Characters of a quotation."""
SHORTEST = 4

VARIES = re.compile(r"\b[0-9a-f]{8}(?:-?[0-9a-f]{4,12}){0,4}\b|0x[0-9a-f]+|\d+(?:[.,:]\d+)*", re.IGNORECASE)
"""What differs between equal texts: numbers, times, identifiers."""
_UNPLAIN = re.compile(r"[^\w .,:;/_=+*%@()'-]+")
_PREFIX = re.compile(r"^(?:Error: )+(?:Exit code \d+\s*)?")
_PATHS = ("file_path", "path", "notebook_path")
_CUT_ARGUMENT = re.compile(r'"(command|file_path|path|notebook_path)": "((?:[^"\\]|\\.)*)')


@dataclass(frozen=True, slots=True)
class Step:
    """A tool call: the tool with its command or file, and the file when it has one."""

    name: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that completed or failed. `errors` are its calls that ended in an error, with what they said, compared as
    they are; `steps` all its calls, read for a retry and the run before it alone; `retries` is the run that it retried.
    """

    pk: int
    failed: bool
    errors: tuple[tuple[str, Step | None], ...] = ()
    steps: tuple[Step, ...] = ()
    retries: int | None = None


@dataclass(frozen=True, slots=True)
class Lesson:
    """A text for the project's memories, its category, and the runs that show it, the oldest first."""

    category: str
    text: str
    runs: tuple[int, ...]


def plain(text: str) -> str:
    """Return the first line of a text in plain characters, without what varies, at most LONGEST characters."""
    line = next((line for line in _PREFIX.sub("", text).splitlines() if line.strip()), "")
    return _cut(VARIES.sub("*", fold(line)))


def step_of(call: str) -> Step:
    """Read a call as the log has it: `Bash: {"command": "…"}`, which may be cut."""
    tool, _, argument = call.partition(": ")
    try:
        given = json.loads(argument)
    except (ValueError, RecursionError):
        given = dict(_CUT_ARGUMENT.findall(argument))
    if not isinstance(given, dict):
        given = {}
    file = next((given[name] for name in _PATHS if isinstance(given.get(name), str)), "")
    command = given.get("command")
    about = command if isinstance(command, str) else file
    return Step(_cut(f"{tool} {plain(about)}" if about else tool), _cut(fold(file)))


def lessons(runs: Sequence[Run]) -> list[Lesson]:
    """Return what the runs teach, with the most runs first: at most MOST_LESSONS. The same runs give the same texts."""
    shown_by: dict[tuple[str, str], set[int]] = defaultdict(set)
    for one in (*_in_common(runs), *_retries(runs)):
        shown_by[one.category, one.text].update(one.runs)
    found = [Lesson(category, text, tuple(sorted(pks))) for (category, text), pks in shown_by.items()]
    return sorted(found, key=lambda one: (-len(one.runs), one.text))[:MOST_LESSONS]


def _in_common(runs: Iterable[Run]) -> Iterable[Lesson]:
    failed: dict[tuple[str, str], set[int]] = defaultdict(set)
    completed: dict[tuple[str, str], set[int]] = defaultdict(set)
    for run in runs:
        for error, step in run.errors:
            features = {
                "failed with the error": error,
                "failed at the step": step.name if step else "",
                "failed while they worked on the file": step.file if step else "",
            }
            for rule, what in features.items():
                if len(what) >= SHORTEST:
                    (failed if run.failed else completed)[rule, what].add(run.pk)
    for (rule, what), pks in failed.items():
        if len(pks) >= SEVERAL and len(pks) > len(completed[rule, what]):
            yield Lesson("warning", f"Several runs of this project {rule} “{what}”.", tuple(sorted(pks)))


def _retries(runs: Sequence[Run]) -> Iterable[Lesson]:
    by_pk = {run.pk: run for run in runs}
    for run in runs:
        before = by_pk.get(run.retries or 0)
        if run.failed or before is None or not before.failed or not before.errors:
            continue
        known = {step.name for step in before.steps}
        new = dict.fromkeys(step.name for step in run.steps if step.name not in known and len(step.name) >= SHORTEST)
        if new:
            did = ", ".join(f"“{name}”" for name in list(new)[:MOST_DIFFERENCES])
            text = (
                f"A run failed with “{before.errors[-1][0]}”; its retry completed and did what the run had not: {did}."
            )
            yield Lesson("learning", text, (before.pk, run.pk))


def _cut(text: str) -> str:
    shown = " ".join(_UNPLAIN.sub(" ", text).split())
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1].rstrip() + "…"
