"""Parse a query: its terms, and the phrases and identifiers that must occur whole for a boost. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memories.recall.terms import LONGEST_QUERY, STOP_WORDS, normalise, term_of, words

MOST_TERMS = 64

QUOTED = re.compile(r"\"([^\"]{3,})\"|“([^”]{3,})”|`([^`]{3,})`")
SPEAKER = re.compile(r"\s*([^\W\d_]{2,40}):\s")


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query. `wholes` are normalised phrases; `literal` when it should be found as written."""

    text: str
    terms: tuple[str, ...]
    wholes: tuple[str, ...]
    literal: bool


def read_query(text: str) -> Query:
    """Parse a query. Its terms are distinct, in order; stop words count only when there is nothing else."""
    cut = normalise(text[:LONGEST_QUERY])
    found = words(text[:LONGEST_QUERY])  # with its capitals: the A of "team A owns" is no article
    kept = [word for word in found if word not in STOP_WORDS] or found
    terms = tuple(dict.fromkeys(term_of(word) for word in kept))[:MOST_TERMS]
    wholes = [next(filter(None, groups)) for groups in QUOTED.findall(cut)]
    wholes += [word for word in found if is_identifier(word)]
    bare = cut.strip(" \"'`“”.?!,;:")
    if " " in bare and bare.count(" ") < 8:
        wholes.append(bare)
    literal = bool(QUOTED.search(cut)) or len(kept) <= 2 or all(is_identifier(word) for word in kept)
    return Query(cut, terms, tuple(dict.fromkeys(whole.strip() for whole in wholes if whole.strip())), literal)


def is_identifier(word: str) -> bool:
    """Whether a normalised word names one thing: it has a digit beside other characters, or joined parts."""
    if any(mark in word for mark in "._:/@+#\\-"):
        return True
    return len(word) > 1 and any(c.isdigit() for c in word) and not word.isdigit()


def said_by(turn: str, terms: Container[str]) -> bool:
    """Whether one of the query's terms is the name that the turn begins with, as in "Ada: I was there"."""
    named = SPEAKER.match(turn)
    return named is not None and _name(named[1]) in terms


@lru_cache(maxsize=1_024)
def _name(said: str) -> str:
    return term_of(normalise(said))


def stands_whole(wholes: Sequence[str], text: str) -> bool:
    """Whether one of the phrases or identifiers occurs in the text, at word boundaries."""
    if not wholes:
        return False
    if not text.isascii():
        searched = normalise(text)
        return any(_stands(whole, searched) for whole in wholes)
    # Runs for hundreds of candidates. Folding ASCII changes only what is between words, so a search for the words
    # decides most, and a phrase without a space needs no folding.
    searched = text.lower()
    for whole, parts in _parts(tuple(wholes)):
        for part in parts:
            if part not in searched:
                break
        else:
            if _stands(whole, normalise(text) if len(parts) > 1 else searched):
                return True
    return False


@lru_cache(maxsize=256)
def _parts(wholes: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((whole, tuple(sorted(whole.split(" "), key=len, reverse=True))) for whole in wholes)


def _stands(whole: str, searched: str) -> bool:
    start = searched.find(whole)
    while start >= 0:
        end = start + len(whole)
        if not (start and _joins(searched, start - 1, -1)) and not (end < len(searched) and _joins(searched, end, 1)):
            return True
        start = searched.find(whole, start + 1)
    return False


def _joins(text: str, at: int, step: int) -> bool:
    """Whether the character at `at` continues the word beside it: 2.1.33 is neither in 2.1.330 nor in 2.1.33.4."""
    if text[at].isalnum() or text[at] == "_":
        return True
    beyond = at + step
    return text[at] in ".:-" and 0 <= beyond < len(text) and text[beyond].isalnum()
