"""Turn text into terms, for the index and for queries, the same on every database. Pure.

A term is ASCII letters, digits and `_` alone (anything else is spelled by its code point), so that no database's own
tokenizer can take it apart or fold it differently: stemming, folding and stop words happen here and nowhere else.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import snowballstemmer

from memories.capture.text import fold

LONGEST_QUERY = 2_000
"""Characters of a query that are read: more is a document, not a question."""
LONGEST_TERM = 64

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
"""Words that say how something is asked, not what about. `may` is a month, so it is none of them."""

# A word, or several joined by what joins the parts of an identifier: 2.1.330, 10.0.0.5:8080, /var/lib/x, a-b, a_b.
COMPOUND = re.compile(r"[^\W_]+(?:['’._:/@+#\\-]+[^\W_]+)*")
COARSE = re.compile(r"[:/@+#\\]+")
FINE = re.compile(r"['’._-]+")
PLAIN = re.compile(r"[a-z]+\Z")
UNSAFE = re.compile(r"[^a-z0-9]")

_stemmer = snowballstemmer.stemmer("english")


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
