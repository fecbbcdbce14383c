"""The stems of the C library against those of the Python one: terms in an index were made by either."""

from __future__ import annotations

import json
import re
from pathlib import Path

import snowballstemmer
import Stemmer
from snowballstemmer.english_stemmer import EnglishStemmer

PAIRS = sorted((Path(__file__).parents[2] / "data" / "pairs").glob("*.jsonl"))
ENDINGS = [
    "s",
    "es",
    "ed",
    "ing",
    "ly",
    "ation",
    "ational",
    "isation",
    "ness",
    "fulness",
    "ement",
    "able",
    "ies",
    "eed",
    "'s",
]


def test_stems_of_the_c_library_are_those_of_the_python_one():
    said = " ".join(str(value) for path in PAIRS for line in path.open() for value in json.loads(line).values())
    words = {word.lower() for word in re.findall(r"[^\W\d_]+", said)}
    words |= {word + ending for word in sorted(words)[::3] for ending in ENDINGS}
    slow, fast = EnglishStemmer(), Stemmer.Stemmer("english")

    assert len(words) > 5_000
    assert [word for word in sorted(words) if slow.stemWord(word) != fast.stemWord(word)] == []


def test_stemmer_takes_the_c_library_by_itself():
    assert isinstance(snowballstemmer.stemmer("english"), Stemmer.Stemmer)
