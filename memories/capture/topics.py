"""What a text is about, as far as it matters for trust: a wide net of words in several languages. Pure.

It does not say that a text is hostile. What it finds needs a confirmation when the session had read outside text, so a
find too many costs a wait, a find too few an injection. It reads what the gate reads, so that a disguise hides nothing.
The words are in `topics.toml`.
"""

from __future__ import annotations

from functools import lru_cache

from memories.capture.attack import readings
from memories.capture.patterns import expressions, names_found, read_table, rule
from memories.capture.text import fold

LONGEST = 1_000
"""Characters that are read. A longer text is a topic of its own: observations are short."""
PATTERNS = expressions(read_table("topics"))

TOPICS = tuple(
    rule(name, pattern)
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
    names = tuple(names_found(TOPICS, readings(raw, fold(raw))))
    return names if len(text) <= LONGEST else (*names, "a long text")
