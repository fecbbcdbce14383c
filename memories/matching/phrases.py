"""Replace phrases by single words: "no longer" → not, "prior to" → before, "turned off" → disable. By stems."""

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
    """Index phrases by their first two stems, longer ones first: most words that may begin a phrase begin none."""
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
"""In a phrase: a number must follow, which is kept."""
_TABLE = _by_first_stem()


def rewritten(tokens: Sequence[Token]) -> list[Token]:
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
    """Return the tokens of a text, phrases replaced. Cached, because each reading of a text begins with these."""
    return tuple(rewritten(tokens(fold(text))))


def _begun(opened: _Opened, tokens: Sequence[Token], at: int) -> Sequence[_Entry]:
    """Return the opened phrases that the token at `at` may continue."""
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
    return _TABLE.get(stem(word), {})


def _follow(tokens: Sequence[Token], at: int, phrase: Sequence[str]) -> bool:
    """Whether the phrase, whose first stem is at `at`, continues there."""
    if at + len(phrase) > len(tokens):
        return False
    for ahead in range(1, len(phrase)):
        token = tokens[at + ahead]
        if phrase[ahead] == _NUMBER:
            return token.sort is A_NUMBER or token.text in NUMBER_WORDS
        if token.sort is not A_WORD or stem(token.text) != phrase[ahead]:
            return False
    return True
