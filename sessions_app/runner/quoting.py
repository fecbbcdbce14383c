"""Decide whether a statement repeats a text that the session had read, so that it is not the agent's own. Pure.

Compared in runs of RUN words, without letter case and punctuation. An honest note may quote a path, an error code or a
message; a statement that mostly is the text, or repeats a long run that tells what to do, is another's. So is one that
stood in the text as a marker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from memories.capture.text import INVISIBLE, fold

RUN = 5
MOST = 0.6
"""The share of a statement's runs that may not stand in the texts."""
FEWEST = 4
"""A statement of fewer words is never the same by more than chance."""
LONG_RUN = 8
LONG_WORD = 6
"""Letters. Few texts hold a given longer word."""
LONGEST_TEXT = 100_000
"""Characters of a result that are compared; the CLI cuts what a tool prints below that."""

_WORD = re.compile(r"[^\W_]+")
_MARKER = re.compile(r"\[memory:[^\[\]\n]{0,200}\][ \t]*([^\n]+)")
_FORM = re.compile(r"\b(?:add to memory|memorize|remember)\b[ \t*]{0,4}:|\\?\"(?:remember|memories)\\?\"")
_IN_FORM = re.compile(r"\bcontent[ \t*]{0,4}:([^\n]{1,2000})|\"([^\"\n]{1,2000})\"")
"""Where a text shows the form in which agents say what they learned, and what stands in it."""
_INSTRUCTION = frozenset(
    """
    always never must should shall ensure required disregard ignore forget remember whenever please note do dont not run
    execute use send post upload install download fetch delete remove disable allow grant approve trust
    """.split()  # noqa: SIM905
)
"""Words of a text that tells its reader what to do."""


_TO_ASCII = tuple((sign, sign.lower()) for sign in "\u212a\u0130")
"""The signs beside ASCII whose lower case holds an ASCII letter: Kelvin's and the dotted I."""


class Text:
    """A text that was read. It is lowered and folded once, when a statement is compared with it."""

    __slots__ = ("_ascii", "_folded", "_lowered", "_text")

    def __init__(self, text: str) -> None:
        text = text[:LONGEST_TEXT]
        # A statement is compared without invisible characters, so that they hide nothing here either.
        self._text = text if text.isascii() else INVISIBLE.sub("", text)
        self._lowered = self._folded = ""
        self._ascii = b""

    def has(self, word: str) -> bool:
        """Whether a lowered word stands in the text, in any letter case."""
        if not word.isascii():
            return word in self.lowered
        if not self._ascii:  # lowers bytes, which is ten times as fast as to lower a text with one dash in it
            text = self._text
            for sign, lowered in _TO_ASCII:
                text = text.replace(sign, lowered)
            self._ascii = text.encode("utf-8", "replace").lower()
        return word.encode() in self._ascii

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
    runs = [words[at : at + RUN] for at in range(max(len(words) - RUN + 1, 1))]
    runs_with = [(word, {at for at, run in enumerate(runs) if word in run}) for word in set(words)]
    runs_with.sort(key=lambda one: (min(len(one[0]), LONG_WORD), len(one[1]), one[0]), reverse=True)
    sources: list[str] = []
    every, hits = set(range(len(runs))), set[int]()
    for source, text in texts:
        if text.has("[memory:") and _stands_as_marker(words, text.lowered):
            return f"repeats a marker that {source or 'one of its own tools'} said"
        if (text.has("memor") or text.has("remember")) and _stands_in_form(words, text.lowered):
            return f"repeats a block that {source or 'one of its own tools'} said"
        if source and len(words) >= FEWEST and (new := _standing(runs, every - hits, runs_with, text)):
            hits |= new
            sources.append(source)
    if not sources:
        return ""
    if len(hits) >= MOST * len(runs) or _has_long_instruction(words, [at in hits for at in range(len(runs))]):
        return f"repeats what {sources[-1]} said"
    return ""


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _standing(runs: list[list[str]], among: set[int], runs_with: list[tuple[str, set[int]]], text: Text) -> set[int]:
    """Return which of the runs `among` stand in a text; `runs_with` are the runs of each word.

    Of long words those in the most runs come first: one that is missing tells of all of these.
    """
    # A run can stand there only when its words do: looking for long ones is far cheaper than folding the text.
    for word, runs_of_word in runs_with:
        if not among:
            return among
        if not among.isdisjoint(runs_of_word) and not text.has(word):
            among -= runs_of_word
    return {at for at in among if f" {' '.join(runs[at])} " in text.folded}


def _has_long_instruction(words: list[str], hits: list[bool]) -> bool:
    """Whether a run of LONG_RUN words or more stands in the texts and tells what to do."""
    start = None
    for at, is_hit in enumerate([*hits, False]):
        if is_hit and start is None:
            start = at
        elif not is_hit and start is not None:
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


def shows_form(text: str) -> bool:
    """Whether a text holds a marker of memories, or the form in which agents say what they learned."""
    lowered = text.lower()
    return "[memory:" in lowered or (
        ("memor" in lowered or "remember" in lowered) and _FORM.search(lowered[:LONGEST_TEXT]) is not None
    )


def _stands_in_form(words: list[str], lowered: str) -> bool:
    if not _FORM.search(lowered):
        return False
    for match in _IN_FORM.finditer(lowered):
        phrase = match[1] or match[2]
        shown = _words(fold(phrase)) if words[0] in phrase else []
        shorter = min(len(words), len(shown))
        if shown == words or (shorter >= FEWEST and words[:shorter] == shown[:shorter]):
            return True
    return False
