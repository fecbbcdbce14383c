"""What a rule takes and gives. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

Span = tuple[int, int, str, int]
"""Start, end, kind, and the rank of the rule: of two that overlap the lower names the kind.

A longer prefix has a lower rank.
"""
SURE, NAMED, RANDOM = 0, 1, 2

Rule = Callable[[str, str, int, int], Iterator[Span]]
"""Text, its plain form, and where the trigger begins and ends."""

_SPACED = str.maketrans("_-", "  ")


def plain(text: str) -> str:
    """Lower case, with a space for _ and -; as long as the text."""
    low = text.lower()
    if len(low) != len(text):
        low = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    return low.translate(_SPACED)


HIDDEN = "\x00"
"""Stands for a character of a mask: no rule takes it for part of a value."""
