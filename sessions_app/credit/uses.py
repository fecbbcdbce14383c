"""Find the memories that an agent says it used: named by their ids, or quoted. Pure; whether it was shown them is
decided where the database is.

Quoted: the agent's own lines repeat RUN consecutive content words of the memory (words without function words, letter
case and punctuation), or all of a memory that has fewer, FEWEST at least. A paraphrase is not found. Of memories that
share such a run each is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from memories.capture.lines import accepted_lines, in_plain_text
from memories.capture.text import fold
from memories.matching.function_words import FUNCTION_WORDS

RUN = 6
FEWEST = 3
LARGEST_ID = 2**63 - 1
NAME = re.compile(r"\[m[0-9]{1,19}(?:, ?m[0-9]{1,19}){0,19}\]")
"""One memory or several: [m42], [m42, m7]."""

_NUMBER = re.compile(r"[0-9]+")
_WORD = re.compile(r"[^\W_]+")


def named(text: str) -> list[int]:
    """Return the ids that the agent's own plain text names, each once."""
    if "[m" not in text:
        return []
    numbers = (int(number) for name in in_plain_text(text, NAME) for number in _NUMBER.findall(name))
    return list(dict.fromkeys(number for number in numbers if 0 < number <= LARGEST_ID))


def answered(items: Iterable[object]) -> tuple[list[int], int]:
    """Return the ids of a structured answer's `memories_used`, and how many items were no id."""
    entries = list(items)
    ids = [one for one in entries if isinstance(one, int) and not isinstance(one, bool) and 0 < one <= LARGEST_ID]
    return list(dict.fromkeys(ids)), len(entries) - len(ids)


def quoted(text: str, known: Mapping[int, str]) -> list[int]:
    """Return which of the `known` memories (text by id) the agent's own lines of `text` quote."""
    own = content_words("\n".join(line for _, line in accepted_lines(text).lines)) if known else []
    if len(own) < FEWEST:
        return []
    runs: dict[int, set[tuple[str, ...]]] = {}
    ids = []
    for pk, memory in known.items():
        words = content_words(memory)
        size = min(len(words), RUN)
        if size < FEWEST:
            continue
        if size not in runs:
            runs[size] = set(_runs(own, size))
        if any(run in runs[size] for run in _runs(words, size)):
            ids.append(pk)
    return ids


def content_words(text: str) -> list[str]:
    return [word for word in _WORD.findall(fold(text).lower()) if word not in FUNCTION_WORDS]


def _runs(words: list[str], size: int) -> Iterable[tuple[str, ...]]:
    return (tuple(words[at : at + size]) for at in range(len(words) - size + 1))
