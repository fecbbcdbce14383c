"""What a text is about, as far as it matters for trust: a wide net of words in several languages. Pure.

It does not say that a text is hostile. What it finds needs a confirmation when the session had read outside text, so a
find too many costs a wait, a find too few an injection. It reads what the gate reads, so that a disguise hides nothing.
The words are in `topics.toml`.
"""

from __future__ import annotations

import re
from functools import lru_cache

import re2

from claudeops.lib.lookaround import without_lookaround
from memories.capture.attack import readings
from memories.capture.patterns import expressions, read_table
from memories.capture.text import fold

LONGEST = 1_000
"""Characters that are read. A longer text is a topic of its own: observations are short."""
PATTERNS = expressions(read_table("topics"))

_ANY_CASE = re2.Options()
_ANY_CASE.case_sensitive = False

# Name, pattern, and RE2's form of it, which says no a hundred times as fast.
TOPICS = tuple(
    (name, re.compile(pattern, re.IGNORECASE), re2.compile(without_lookaround(pattern), _ANY_CASE))
    for name, pattern in (
        ("the agent", PATTERNS["agent"]),
        ("rights", PATTERNS["rights"]),
        ("reports", PATTERNS["reports"]),
        ("credentials", PATTERNS["credentials"]),
        ("foreign hosts", PATTERNS["hosts"]),
        ("removal", PATTERNS["removal"]),
        ("protection", PATTERNS["protections"]),
        ("standing orders", f"{PATTERNS['orders']}|{PATTERNS['norms']}"),
    )
)


@lru_cache(maxsize=8)  # one statement is asked about several times
def topics(text: str) -> tuple[str, ...]:
    """Return the topics of a text as it was written, in a fixed order."""
    raw = text[:LONGEST]
    read = list(dict.fromkeys(readings(raw, fold(raw))))
    plain = [reading for reading in read if reading.isascii() and reading.isprintable()]
    others = [reading for reading in read if reading not in plain]  # RE2 reads these in its own way
    joined = "\n".join(plain).encode()
    names = tuple(
        name
        for name, pattern, first in TOPICS
        if any(pattern.search(reading) for reading in (read if first.search(joined) else others))
    )
    return names if len(text) <= LONGEST else (*names, "a long text")
