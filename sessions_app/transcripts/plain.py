"""Read a plain text as turns: paragraphs, and who speaks where the text says so. Pure.

Nobody knows what its writers had read: all of it counts as outside text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memories.observe.turns import Turn, TurnKind
from sessions_app.runner.reader import RawLine

SOURCE = "plain text"
LONGEST_PARAGRAPH = 8_000
"""Bytes; a longer one is cut at the end of a line."""

_SPEAKERS = (
    (TurnKind.USER, re.compile(r"(?:user|human|operator|you|me)[ \t]*:[ \t]*|[>❯][ \t]+", re.IGNORECASE)),
    (TurnKind.AGENT, re.compile(r"(?:assistant|claude|agent|ai)[ \t]*:[ \t]*|[⏺●][ \t]*", re.IGNORECASE)),
    (TurnKind.RESULT, re.compile(r"⎿[ \t]*")),
)


def turns_in(lines: Iterable[RawLine]) -> Iterator[Turn]:
    """Yield a turn for each paragraph. A speaker's turn goes on until the next speaker; before the first, a person's.

    A line that is too long to read is left out. Nothing is masked.
    """
    speaker = TurnKind.USER
    for number, (start, end, text) in enumerate(_paragraphs(lines), 1):
        kind, said = _spoken(text)
        speaker = kind or speaker
        yield Turn(number, speaker, said, start, end)


def _paragraphs(lines: Iterable[RawLine]) -> Iterator[tuple[int, int, str]]:
    held: list[bytes] = []
    start = end = size = 0
    for line in lines:
        data = line.data or b""
        blank = not data.strip()
        if held and (blank or size >= LONGEST_PARAGRAPH or _spoken(_text(data))[0]):
            yield start, end, _text(b"".join(held))
            held, size = [], 0
        if not blank:
            start = start if held else line.start
            held.append(data)
            size += len(data)
            end = line.end
    if held:
        yield start, end, _text(b"".join(held))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\x00", "\ufffd").strip()


def _spoken(text: str) -> tuple[TurnKind | None, str]:
    """Return who speaks at the beginning of a text, None when it does not say, and the text without that."""
    for kind, pattern in _SPEAKERS:
        if found := pattern.match(text):
            return kind, text[found.end() :]
    return None, text
