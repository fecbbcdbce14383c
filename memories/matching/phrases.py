"""Phrases put as single words: "no longer" → not, "prior to" → before, "turned off" → disable.

Works on stems, so that one form of a phrase is enough. Knows tokens and the table of phrases, nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from .meaning import stem
from .tokens import Sort, Token
from .vocabulary import PHRASES, entries

_Entry = tuple[tuple[str, ...], tuple[Token, ...]]


def _by_first_stem() -> dict[str, list[_Entry]]:
    """The table by a phrase's first stem, longer phrases first."""
    table: dict[str, list[_Entry]] = {}
    for entry in entries(PHRASES):
        meant, phrases = entry.split(" = ")
        replacement = tuple(Token(Sort.WORD, word) for word in meant.split())
        for phrase in phrases.split(" | "):
            stems = tuple(stem(word) for word in phrase.split())
            table.setdefault(stems[0], []).append((stems, replacement))
    for found in table.values():
        found.sort(key=lambda one: -len(one[0]))
    return table


_TABLE = _by_first_stem()


def rewritten(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, each phrase replaced by what it means."""
    stems = [stem(token.text) if token.sort is Sort.WORD else "" for token in tokens]
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        for phrase, meant in _TABLE.get(stems[at], ()):
            if tuple(stems[at : at + len(phrase)]) == phrase:
                found.extend(meant)
                at += len(phrase)
                break
        else:
            found.append(tokens[at])
            at += 1
    return found
