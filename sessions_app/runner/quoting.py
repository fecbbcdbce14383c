"""Decide whether a statement repeats a text that the session had read, so that it is not the agent's own. Pure.

Compared in runs of RUN words, without letter case and punctuation. An honest note may quote a path, an error code or a
message; a statement that mostly is the text, or repeats a long run that tells what to do, is another's. So is one that
stood in the text as a marker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from memories.capture.text import fold

RUN = 5
MOST = 0.6
"""The share of a statement's runs that may not stand in the texts."""
FEWEST = 4
"""A statement of fewer words is never the same by more than chance."""
LONG_RUN = 8
LONGEST_TEXT = 100_000
"""Characters of a result that are compared; the CLI cuts what a tool prints below that."""

_WORD = re.compile(r"[^\W_]+")
_MARKER = re.compile(r"\[memory:[^\[\]\n]{0,200}\][ \t]*([^\n]+)")
_INSTRUCTION = frozenset(
    """
    always never must should shall ensure required disregard ignore forget remember whenever please note do dont not run
    execute use send post upload install download fetch delete remove disable allow grant approve trust
    """.split()  # noqa: SIM905
)
"""Words of a text that tells its reader what to do."""


class Text:
    """A text that was read. It is lowered and folded once, when a statement is compared with it."""

    __slots__ = ("_folded", "_lowered", "_text")

    def __init__(self, text: str) -> None:
        self._text = text[:LONGEST_TEXT]
        self._lowered = self._folded = ""

    @property
    def lowered(self) -> str:
        self._lowered = self._lowered or self._text.lower()
        return self._lowered

    @property
    def folded(self) -> str:
        self._folded = self._folded or f" {' '.join(_words(fold(self.lowered)))} "
        return self._folded


def repeated(statement: str, texts: Iterable[tuple[str, Text]]) -> str:
    """Say what `statement` repeats of the `texts` (source, text); empty when it is the agent's own.

    A text without a source is compared by its markers alone.
    """
    words = _words(fold(statement).lower())
    if not words:
        return ""
    runs_with = _runs_with(words)
    sources: list[str] = []
    found = [False] * max(len(words) - RUN + 1, 1)
    for source, text in texts:
        if "[memory:" in text.lowered and _stands_as_marker(words, text.lowered):
            return f"repeats a marker that {source or 'one of its own tools'} said"
        if source and len(words) >= FEWEST and _mark(words, runs_with, text, found):
            sources.append(source)
    if not sources:
        return ""
    if sum(found) >= MOST * len(found) or _has_long_instruction(words, found):
        return f"repeats what {sources[-1]} said"
    return ""


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _runs_with(words: list[str]) -> list[tuple[str, frozenset[int]]]:
    """Return each word, longest first, with the runs that it is in."""
    runs = [frozenset(words[at : at + RUN]) for at in range(max(len(words) - RUN + 1, 1))]
    longest_first = sorted(set(words), key=len, reverse=True)
    return [(word, frozenset(at for at, run in enumerate(runs) if word in run)) for word in longest_first]


def _mark(words: list[str], runs_with: list[tuple[str, frozenset[int]]], text: Text, found: list[bool]) -> bool:
    """Set the runs that stand in a text; return whether there is one."""
    open_runs = {at for at, known in enumerate(found) if not known}
    # A run can stand in the text only when its words do: looking for the longest words is far cheaper than folding it.
    for word, runs in runs_with:
        if not open_runs:
            return False
        if word not in text.lowered:
            open_runs -= runs
    some = [at for at in open_runs if f" {' '.join(words[at : at + RUN])} " in text.folded]
    for at in some:
        found[at] = True
    return bool(some)


def _has_long_instruction(words: list[str], found: list[bool]) -> bool:
    """Whether a run of LONG_RUN words or more stands in the texts and tells what to do."""
    start = None
    for at, known in enumerate([*found, False]):
        if known and start is None:
            start = at
        elif not known and start is not None:
            run = words[start : at + RUN - 1]
            if len(run) >= LONG_RUN and not _INSTRUCTION.isdisjoint(run):
                return True
            start = None
    return False


def _stands_as_marker(words: list[str], lowered: str) -> bool:
    for match in _MARKER.finditer(lowered):
        marked = _words(fold(match[1]))
        shorter = min(len(words), len(marked))
        if shorter and words[:shorter] == marked[:shorter]:
            return True
    return False
