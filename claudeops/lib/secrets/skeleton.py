"""The plain form of a text: without invisible characters, with plain letters for look-alike ones. Pure."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache

INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\u0300-\u036f]"
)
LOOK_ALIKES = dict(
    zip(
        "авеѕіјкмнорԛстухԝһԁɡьАВЕЅІЈКМНОРСТУХѴԜҮαορνικτυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧ‐‑‒–—−∕⁄∶꞉",
        "abesijkmhopqctyxwhdgbABESIJKMHOPCTYXVWYaopvikruxyABEZHIKMNOPTYX------//::",
        strict=True,
    )
)
"""Cyrillic and Greek letters that look like Latin ones, and dashes, slashes and colons of other kinds."""


OTHER = re.compile("[^\\x00-\\x7f]")


ASCII = bytes(range(128))


@lru_cache(maxsize=4096)
def _read(character: str) -> str:
    if INVISIBLE.match(character):
        return ""
    read = unicodedata.normalize("NFKC", character)
    return LOOK_ALIKES.get(read, read)


def disguised(data: bytes) -> dict[str, str]:
    """Return what the skeleton changes: each character of a text in UTF-8 that is read as another, and as what."""
    others = data.translate(None, ASCII).decode("utf-8", "replace")
    return {character: read for character in set(others) if (read := _read(character)) != character}


@lru_cache(maxsize=4096)
def is_sign(character: str) -> bool:
    """Whether a character, such as a dash, is read as plain signs: it parts words in the skeleton as in the text."""
    read = _read(character)
    return read.isascii() and read != "" and not any(map(str.isalnum, character + read))


def skeleton(text: str) -> str:
    """The plain form of a text. The same text when nothing in it is disguised."""
    return read_as(text, disguised(text.encode("utf-8", "replace")))


def read_as(text: str, changed: dict[str, str]) -> str:
    """Return the text with what is disguised in it read as `disguised` says."""
    for character, read in changed.items():
        text = text.replace(character, read)
    return text


def places(text: str) -> Callable[[int], int]:
    """Return what tells the place in the text of a place in its skeleton."""
    starts, shifts, shift = [0], [0], 0
    """From a start in the skeleton on, the text is so many characters ahead."""
    for match in OTHER.finditer(text):
        length = len(_read(match[0]))
        if length != 1:
            for more in range(1, length):  # one character is read as several
                starts.append(match.start() - shift + more)
                shifts.append(shift - more)
            starts.append(match.start() - shift + length)
            shift += 1 - length
            shifts.append(shift)
    return lambda place: place + shifts[bisect_right(starts, place) - 1]
