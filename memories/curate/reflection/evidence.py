"""Which observations a proposal may call its evidence. Pure.

The reflector names them, and it has read hostile text: what it names is a claim. A poisoned observation must not get
into the file by the name of a harmless one, so that whatever words the named ones do not have are looked for in the
others, and where too little of the text is theirs, all observations count.
"""

from __future__ import annotations

from collections.abc import Sequence

from memories.curate.words import share, words_of
from memories.matching import Kind, relation

LEAST = 0.6
"""The share of a proposal's words that the observations must have that it names."""


def evidence_of(text: str, target: str, claimed: Sequence[int], observations: Sequence[str]) -> tuple[int, ...]:
    """Return the places (from 0, ascending) of the observations that a proposal comes from; all when in doubt.

    `text` is the new entry, `target` the entry that it changes or removes, `claimed` the places that the reflector
    named. Each other observation with a word of the text that no named one has is evidence, too.
    """
    everything = tuple(range(len(observations)))
    named = {place for place in claimed if 0 <= place < len(observations)}
    if not named:
        return everything
    words = (words_of(text) - words_of(target)) if text else words_of(target)
    known = frozenset[str]().union(*(words_of(observations[place]) for place in named))
    if not words or share(words, known) < LEAST:
        return everything
    if text and any(relation(observations[place], text).kind is Kind.CONTRADICTS for place in named):
        return everything
    missing = words - known
    others = {place for place in everything if place not in named and words_of(observations[place]) & missing}
    return tuple(sorted(named | others))
