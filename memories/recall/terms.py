"""Turn text into terms, the same on every database.

Pure. A term is ASCII letters, digits and `_` (others are spelled by code point), so that no tokenizer splits or folds
it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
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
    found: list[str] = []
    for whole in COMPOUND.findall(normalise(join_lettered(text))):
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
                # it's, Caroline's: the word without its ending; don't, isn't: one word.
                found.append(fine[0] if fine[-1] == "s" else "".join(fine))
                continue
            found.append(piece)
            # 2.1.330 is not found by its 2, but web-01 by web and by 01.
            found += [part for part in fine if len(part) > 1 or not part.isdigit()]
    # /etc/.hidden has nothing before its dot
    return tuple(part for word in found if word for part in ((word,) if word.isascii() else _parts(word)))


def _parts(word: str) -> Iterator[str]:
    for run in RUN.finditer(JOINTS.sub(" ", word)):
        yield from map("".join, pairwise(run[0])) if run["joined"] and len(run[0]) > 2 else (run[0],)


def index_terms(text: str) -> list[str]:
    """Return the terms of a text without stop words, with repetitions."""
    return [term_of(word) for word in words(text) if word not in STOP_WORDS]
