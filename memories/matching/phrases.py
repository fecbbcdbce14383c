"""Replace phrases by single words: "no longer" → not, "prior to" → before, "turned off" → disable.

Matches stems, so one form of a phrase is enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from .synonyms import stem
from .tokens import A_NUMBER, A_WORD, Token, fold, tokens
from .units import NUMBER_WORDS
from .vocabulary import PHRASES

_Entry = tuple[tuple[str, ...], tuple[Token, ...]]
_Opened = Mapping[str, Sequence[_Entry]]
"""The phrases that a word may begin, by the stem of what comes next; under "" those of that word alone."""


def _by_first_stem() -> dict[str, _Opened]:
    """The table by a phrase's first stem, then by its second, longer phrases first.

    Nine words in ten that may begin a phrase ("a", "the") begin none where they stand: the next word tells at once.
    """
    table: dict[str, list[_Entry]] = {}
    for entry in PHRASES:
        meant, phrases = entry.split(" = ")
        replacement = tuple(Token(A_WORD, word) for word in meant.split())
        for phrase in phrases.split(" | "):
            stems = tuple(stem(word) for word in phrase.split())
            table.setdefault(stems[0], []).append((stems, replacement))
    for found in table.values():
        found.sort(key=lambda one: -len(one[0]))
    return {first: _by_second_stem(found) for first, found in table.items()}


def _by_second_stem(found: Sequence[_Entry]) -> _Opened:
    seconds = {phrase[1] for phrase, _ in found if len(phrase) > 1}
    return {
        second: [one for one in found if len(one[0]) == 1 or (second and one[0][1] in (second, _NUMBER))]
        for second in ("", *seconds)
    }


_NUMBER = "#"
"""Of a phrase: a number must follow, which is left where it is."""
_TABLE = _by_first_stem()


def rewritten(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, each phrase replaced by what it means."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        opened = _opened(token.text) if token.sort is A_WORD else None
        for phrase, meant in _begun(opened, tokens, at + 1) if opened else ():
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


def _begun(opened: _Opened, tokens: Sequence[Token], at: int) -> Sequence[_Entry]:
    """Of the phrases that a word opens those that the token after it, which stands at `at`, may continue."""
    if at == len(tokens):
        return opened[""]
    following = tokens[at]
    if following.sort is A_WORD and (known := opened.get(stem(following.text))):
        return known
    if following.sort is A_NUMBER or following.text in NUMBER_WORDS:
        return opened.get(_NUMBER) or opened[""]
    return opened[""]


@lru_cache(maxsize=50_000)
def _opened(word: str) -> _Opened:
    """The phrases that a word may begin."""
    return _TABLE.get(stem(word), {})


def _follow(tokens: Sequence[Token], at: int, phrase: Sequence[str]) -> bool:
    """Whether the phrase, whose first stem stands at `at`, goes on there."""
    if at + len(phrase) > len(tokens):
        return False
    for ahead in range(1, len(phrase)):
        token = tokens[at + ahead]
        if phrase[ahead] == _NUMBER:
            return token.sort is A_NUMBER or token.text in NUMBER_WORDS
        if token.sort is not A_WORD or stem(token.text) != phrase[ahead]:
            return False
    return True
