"""Parse a query: its terms, and the phrases and identifiers that must occur whole for a boost. Pure.

A term is ASCII letters, digits and `_` (others are spelled by code point), so that no tokenizer splits or folds
it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import snowballstemmer

from memories.capture.text import WITHOUT_BLANKS, fold, join_lettered

LONGEST_QUERY = 2_000
"""Characters of a query that are read: a longer one is a document."""
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
"""Words of the question's form, not its subject. `may` is a month, so it is not among them."""

# A word, or parts joined as in identifiers: 2.1.330, 10.0.0.5:8080, /var/lib/x, a-b, a_b (also written "team B").
COMPOUND = re.compile(r"[^\W_]+(?:['’._:/@+#\\-]+[^\W_]+)*")
COARSE = re.compile(r"[:/@+#\\]+")
FINE = re.compile(r"['’._-]+")
PLAIN = re.compile(r"[a-z]+\Z")
UNSAFE = re.compile(r"[^a-z0-9]")
RUN = re.compile(f"(?P<joined>[{WITHOUT_BLANKS}]+)|[^{WITHOUT_BLANKS} ]+")
JOINTS = re.compile("为什么|什么时候|什么|怎么|如何|哪里|哪个|多少|[的了吗呢はがをのにでと]")
"""Of STOP_WORDS' kind, in scripts without blanks: what stands beside one of these is no neighbour."""

_stemmer = snowballstemmer.stemmer("english")


def normalise(text: str) -> str:
    """Normalise to one line, NFKC, lower case; accents stay. Idempotent."""
    if text.isascii():  # nothing to normalise: most texts, and each candidate of a recall passes here
        return fold(text).lower()
    return unicodedata.normalize("NFKC", fold(unicodedata.normalize("NFKC", text)).lower())


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Stem words of plain letters by English snowball; others stay as they are."""
    return _stemmer.stemWord(word) if PLAIN.match(word) else word


def safe(word: str) -> str:
    """Spell characters other than a-z and 0-9 as `_<code point>_`."""
    term = UNSAFE.sub(lambda found: f"_{ord(found[0]):x}_", word)
    return term[:LONGEST_TERM]


@lru_cache(maxsize=50_000)
def term_of(word: str) -> str:
    return safe(stem(word))


def words(text: str) -> list[str]:
    """Return normalised words in order, stop words included: each compound whole, then its parts.

    Of a script without blanks each two neighbours are a word: 备份失败 is 备份, 份失, 失败.
    """
    return list(_words(text) if len(text) <= LONGEST_QUERY else _words.__wrapped__(text))


@lru_cache(maxsize=1_024)
def _words(text: str) -> tuple[str, ...]:
    tokens: list[str] = []
    for whole in COMPOUND.findall(normalise(join_lettered(text))):
        if whole.isalnum():  # most words are of one part
            tokens.append(whole)
            continue
        coarse = COARSE.split(whole)
        if len(coarse) > 1:
            tokens.append(whole)
        for piece in coarse:
            fine = FINE.split(piece)
            if len(fine) == 1:
                tokens.append(piece)
                continue
            if "'" in piece or "’" in piece:
                # it's, Caroline's: the word without its ending; don't, isn't: one word.
                tokens.append(fine[0] if fine[-1] == "s" else "".join(fine))
                continue
            tokens.append(piece)
            # 2.1.330 is not found by its 2, but web-01 by web and by 01.
            tokens += [part for part in fine if len(part) > 1 or not part.isdigit()]
    # /etc/.hidden has nothing before its dot
    return tuple(part for word in tokens if word for part in ((word,) if word.isascii() else _term_parts(word)))


def _term_parts(word: str) -> Iterator[str]:
    for run in RUN.finditer(JOINTS.sub(" ", word)):
        yield from map("".join, pairwise(run[0])) if run["joined"] and len(run[0]) > 2 else (run[0],)


def index_terms(text: str) -> list[str]:
    """Return the terms of a text without stop words, with repetitions."""
    return [term_of(word) for word in words(text) if word not in STOP_WORDS]


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
    tokens = words(text[:LONGEST_QUERY])  # with its capitals: the A of "team A owns" is no article
    content = [word for word in tokens if word not in STOP_WORDS] or tokens
    terms = tuple(dict.fromkeys(term_of(word) for word in content))[:MOST_TERMS]
    wholes = [next(filter(None, groups)) for groups in QUOTED.findall(cut)]
    wholes += [word for word in tokens if is_identifier(word)]
    bare = cut.strip(" \"'`“”.?!,;:")
    if " " in bare and bare.count(" ") < 8:
        wholes.append(bare)
    literal = bool(QUOTED.search(cut)) or len(content) <= 2 or all(is_identifier(word) for word in content)
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
def _name(name: str) -> str:
    return term_of(normalise(name))


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
