"""Phrases put as single words: "no longer" → not, "prior to" → before, "turned off" → disable.

Works on stems, so that one form of a phrase is enough. Knows tokens and the table of phrases, nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .meaning import stem
from .tokens import Sort, Token, fold, tokens
from .units import NUMBER_WORDS
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
_NUMBER = "#"
"""Of a phrase: a number must follow, which is left where it is."""


def rewritten(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, each phrase replaced by what it means."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        for phrase, meant in _opened(token.text) if token.sort is Sort.WORD else ():
            if _follow(tokens, at, phrase):
                found.extend(meant)
                at += len(phrase) - (phrase[-1] == _NUMBER)
                break
        else:
            found.append(token)
            at += 1
    return found


@lru_cache(maxsize=512)
def phrased(text: str) -> tuple[Token, ...]:
    """The tokens of a text, phrases replaced. Each reading of a text begins with these, so the last are kept."""
    return tuple(rewritten(tokens(fold(text))))


@lru_cache(maxsize=50_000)
def _opened(word: str) -> Sequence[_Entry]:
    """The phrases that a word may begin."""
    return _TABLE.get(stem(word), ())


def _follow(tokens: Sequence[Token], at: int, phrase: Sequence[str]) -> bool:
    """Whether the phrase, whose first stem stands at `at`, goes on there."""
    if at + len(phrase) > len(tokens):
        return False
    for ahead in range(1, len(phrase)):
        token = tokens[at + ahead]
        if phrase[ahead] == _NUMBER:
            return token.sort is Sort.NUMBER or token.text in NUMBER_WORDS
        if token.sort is not Sort.WORD or stem(token.text) != phrase[ahead]:
            return False
    return True
