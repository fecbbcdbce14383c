"""Tell nothing twice: what one part of a prompt says, no later part repeats. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from memories.capture.text import fold

TOLD_ONCE = "told once: another part of the prompt says the same"

Told = frozenset[str]
"""The texts that a prompt has already, by `key_of`."""
NOTHING: Told = frozenset()


def key_of(text: str) -> str:
    """Return what two texts have in common that say the same words, whatever their case, blanks and last full stop."""
    return fold(text).casefold().rstrip(".")


def keys_of(texts: Iterable[str]) -> Told:
    return frozenset(map(key_of, texts))
