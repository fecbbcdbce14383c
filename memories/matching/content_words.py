"""Extract a text's content words in order, with what leads each and its side of the verb. For `features`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from .axes import leaning
from .function_words import (
    ARTICLES,
    BE,
    FINITE,
    FUNCTION_WORDS,
    LEADS,
    NEGATIONS,
    OBLIGATION,
    OPTION,
    POSSIBILITY,
    PREPOSITIONS,
    words,
)
from .phrases import phrased
from .synonyms import EMPTY, LIGHT, meaning, stem
from .tokens import A_COMMA, A_NUMBER, A_STOP, A_WORD, Token
from .units import BOUNDS, NUMBER_WORDS, PERIODS, TIMES, UNITS

VERBS = words(
    """run use take make need come go get live sit keep store save write read send receive fetch pull push listen bind
    serve handle manage start stop restart boot load reload open close lock allow deny block reject accept refuse
    require depend rely connect expire renew rotate expose proxy route forward resolve balance log record trigger
    fire page notify alert fail work crash break hang survive lose drop delete remove prune purge clean evict build
    deploy install update upgrade scan check probe scrape collect compress encrypt sign mount replicate sync copy
    import export retry cache fix cure clear help persist continue stay carry hold contain provide supply support
    return answer reply poll turn switch shut wait move migrate change outlive terminate own belong follow cover
    cause force skip ignore include exclude enable disable shutdown automatic limit cap span finish end begin hand
    accept define deliver group schedule use_up restore queue publish subscribe consume produce process apply scan
    point map match sample rebuild update cover live terminate verify warn report show display render"""
)
"""Verbs, which end a subject where there is no form of be and no modal."""

VERB_STEMS = frozenset(map(stem, VERBS))
_FINITE = FINITE | BE | POSSIBILITY | OBLIGATION | OPTION
_NOT_SAID = NUMBER_WORDS.keys() | UNITS.keys() | PERIODS.keys() | TIMES.keys() | BOUNDS.keys() | {"time", "times"}
"""Words of amounts, which are compared as amounts."""

_FAR = 3
"""Words before another within which a denial reverses it."""


class Piece(NamedTuple):
    """A content word. `head`: before the verb; `leads`: what leads it; `at` counts all tokens."""

    text: str
    name: str
    at: int
    light: bool
    head: bool
    leads: str


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text as pieces, with the count of each name and all words (`written`).

    `leanings` are (word, axis, side), reversed by a denial right before; `subject` are the words before the verb.
    """

    content: tuple[Piece, ...]
    has_verb: bool
    leanings: tuple[tuple[str, int, int], ...]
    written: frozenset[str]
    subject: frozenset[str]
    counts: Mapping[str, int]


@lru_cache(maxsize=8_192)
def pieces_of(text: str) -> Pieces:
    found = [token for token in phrased(text) if token.sort not in (A_COMMA, A_STOP)]
    verb = _verb_of([token.text for token in found])
    starts_led = bool(found) and (found[0].text in LEADS or found[0].text in PREPOSITIONS)
    has_verb = verb < len(found) and not starts_led
    pieces, leanings, led = [], [], ""
    for at, token in enumerate(found):
        text_of = token.text
        is_word = token.sort is A_WORD
        if text_of in PREPOSITIONS or text_of in LEADS:
            led = text_of
        if _says(token):
            meant = meaning(text_of)
            light = is_word and meant.weight == LIGHT
            name = meant.name if is_word else text_of
            pieces.append(Piece(text_of, name, at, light, has_verb and at < verb, led))
        if is_word and (sides := leaning(text_of)):
            denied = sum(before.text in NEGATIONS for before in found[max(0, at - _FAR) : at])
            leanings += [(text_of, axis, -side if denied % 2 else side) for axis, side in sides]
    return Pieces(
        tuple(pieces),
        has_verb,
        tuple(leanings),
        frozenset(token.text for token in found),
        frozenset(token.text for token in found[: verb if has_verb else 0]),
        Counter(piece.name for piece in pieces),
    )


def _says(token: Token) -> bool:
    if token.sort is A_NUMBER or token.text in _NOT_SAID:
        return False
    if token.sort is not A_WORD:
        return True
    if token.text in FUNCTION_WORDS:
        return False
    meant = meaning(token.text)
    return meant.weight != EMPTY or meant.sign < 0


def _verb_of(found: Sequence[str]) -> int:
    """Return where the predicate begins: at a form of be, a modal, or else a known verb."""
    end = next((at for at, word in enumerate(found) if at and word in LEADS), len(found))
    for at, word in enumerate(found[:end]):
        if word in _FINITE:
            return at
    for at, word in enumerate(found[:end]):
        if (
            (at or word.endswith("s"))
            and stem(word) in VERB_STEMS
            and word not in PREPOSITIONS
            and (not at or found[at - 1] not in ARTICLES)
        ):
            return at
    return end  # "tests run without a network", where "run without" is one word
