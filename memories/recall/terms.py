"""Text to terms: what is indexed and what a query is searched by, the same on every database. Pure.

A term is ASCII letters, digits and `_` alone (anything else is spelled by its code point), so that no database's own
tokenizer can take it apart or fold it differently: stemming, folding and stop words happen here and nowhere else.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import lru_cache

import snowballstemmer

from memories.capture.text import fold

LONGEST_QUERY = 2_000
"""Characters of a query that are read: more is a document, not a question."""
LONGEST_TERM = 64
MOST_QUERY_TERMS = 64

STOP_WORDS = frozenset(
    """
    a about after all also am an and any are as at be because been before being but by can could did do does doing
    during each few for from further get gets got had has have having he her here hers him his how i if in into is it
    its itself just let like me might more most my no nor not now of off on once only or other our out over own
    please said same say says she should show so some such tell than that the their them then there these they this
    those through to too under until up us very was we were what when where which while who whom whose why will with
    would you your
    """.split()  # noqa: SIM905
)
"""Words that say how something is asked, not what about. `before` and `not` matter to matching, not to finding.
`may` is a month."""

# A word, or several joined by what joins the parts of an identifier: 2.1.330, 10.0.0.5:8080, /var/lib/x, a-b, a_b.
COMPOUND = re.compile(r"[^\W_]+(?:['’._:/@+#\\-]+[^\W_]+)*")
COARSE = re.compile(r"[:/@+#\\]+")
FINE = re.compile(r"['’._-]+")
PLAIN = re.compile(r"[a-z]+\Z")
QUOTED = re.compile(r"\"([^\"]{3,})\"|“([^”]{3,})”|`([^`]{3,})`")
SPEAKER = re.compile(r"\s*([^\W\d_]{2,40}):\s")
UNSAFE = re.compile(r"[^a-z0-9]")

_stemmer = snowballstemmer.stemmer("english")


@dataclass(frozen=True, slots=True)
class Query:
    """A query as it is searched: its terms, and what must stand whole for the boost of a phrase.

    `wholes` are normalised; `literal` when it reads as something to be found as it is written.
    """

    text: str
    terms: tuple[str, ...]
    wholes: tuple[str, ...]
    literal: bool


def normalise(text: str) -> str:
    """One line, NFKC, lower case; accents stay. Folding again changes nothing."""
    if text.isascii():  # nothing to normalise: most texts, and each candidate of a recall passes here
        return fold(text).lower()
    return unicodedata.normalize("NFKC", fold(unicodedata.normalize("NFKC", text)).lower())


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """English snowball for words of plain letters; anything else is its own stem."""
    return _stemmer.stemWord(word) if PLAIN.match(word) else word


def safe(word: str) -> str:
    """The word as a term: what is not a-z or 0-9 as `_<code point>_`."""
    term = UNSAFE.sub(lambda found: f"_{ord(found[0]):x}_", word)
    return term[:LONGEST_TERM]


@lru_cache(maxsize=50_000)
def term_of(word: str) -> str:
    """The term of a normalised word."""
    return safe(stem(word))


def words(text: str) -> list[str]:
    """Normalised words in their order: each compound whole, and its parts after it. Stop words are among them."""
    return list(_words(text) if len(text) <= LONGEST_QUERY else _words.__wrapped__(text))


@lru_cache(maxsize=1_024)
def _words(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for whole in COMPOUND.findall(normalise(text)):
        if whole.isalnum():  # most words are of one part
            found.append(whole)
            continue
        coarse = COARSE.split(whole)
        if len(coarse) > 1:
            found.append(whole)
        for piece in coarse:
            fine = FINE.split(piece)
            if len(fine) == 1:
                found.append(piece)
                continue
            if "'" in piece or "’" in piece:
                # it's, Caroline's: the word without its ending; don't, isn't: one word
                found.append(fine[0] if fine[-1] == "s" else "".join(fine))
                continue
            found.append(piece)
            # 2.1.330 is not found by its 2, but web-01 is by web and by 01
            found += [part for part in fine if len(part) > 1 or not part.isdigit()]
    return tuple(word for word in found if word)  # /etc/.hidden has nothing before its dot


def index_terms(text: str) -> list[str]:
    """The terms of a text, stop words out, repeated as often as they stand there."""
    return [term_of(word) for word in words(text) if word not in STOP_WORDS]


def read_query(text: str) -> Query:
    """A query's distinct terms in their order. One of nothing but stop words is searched by these."""
    cut = normalise(text[:LONGEST_QUERY])
    found = words(cut)
    kept = [word for word in found if word not in STOP_WORDS] or found
    terms = tuple(dict.fromkeys(term_of(word) for word in kept))[:MOST_QUERY_TERMS]
    wholes = [next(filter(None, groups)) for groups in QUOTED.findall(cut)]
    wholes += [word for word in found if is_identifier(word)]
    bare = cut.strip(" \"'`“”.?!,;:")
    if " " in bare and bare.count(" ") < 8:
        wholes.append(bare)
    literal = bool(QUOTED.search(cut)) or len(kept) <= 2 or all(is_identifier(word) for word in kept)
    return Query(cut, terms, tuple(dict.fromkeys(whole.strip() for whole in wholes if whole.strip())), literal)


def is_identifier(word: str) -> bool:
    """Whether a normalised word names one thing: it has a digit beside other characters, or is joined of parts."""
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
    """Whether one of the phrases or identifiers stands in the text, at word boundaries."""
    if not wholes:
        return False
    if not text.isascii():
        searched = normalise(text)
        return any(_stands(whole, searched) for whole in wholes)
    # Hundreds of candidates pass here. Folding an ASCII text changes what is between its words, not these, so most
    # are settled by a look for these, and what has no space needs no folding at all.
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
    """Each phrase with its words, the longest first."""
    return tuple((whole, tuple(sorted(whole.split(" "), key=len, reverse=True))) for whole in wholes)


def _stands(whole: str, searched: str) -> bool:
    """Whether it stands in a normalised text, at word boundaries."""
    start = searched.find(whole)
    while start >= 0:
        end = start + len(whole)
        if not (start and _joins(searched, start - 1, -1)) and not (end < len(searched) and _joins(searched, end, 1)):
            return True
        start = searched.find(whole, start + 1)
    return False


def _joins(text: str, at: int, step: int) -> bool:
    """Whether the character at `at` continues what is beside it: 2.1.33 stands neither in 2.1.330 nor in 2.1.33.4."""
    if text[at].isalnum() or text[at] == "_":
        return True
    beyond = at + step
    return text[at] in ".:-" and 0 <= beyond < len(text) and text[beyond].isalnum()
