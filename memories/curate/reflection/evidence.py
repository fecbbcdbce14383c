"""Whether the observations that a proposal names carry its words, and whose word it then is. Pure.

The reflector names them, and it has read hostile text: what it names is a claim, and what they do not say is invented,
or comes from elsewhere. So a poisoned observation does not get into the file by the name of a harmless one, nor the
reflector's own idea by the name of an operator's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memories.capture.text import fold
from memories.curate.rules import HARD
from memories.curate.words import share, words_of
from memories.matching import Kind, relation
from memories.matching.function_words import FUNCTION_WORDS
from memories.matching.synonyms import meaning
from memories.matching.units import NUMBER_WORDS

LEAST = 0.6
"""The share of a proposal's words that the observations must have that it names."""
LEAST_OF_A_CLAUSE = 0.34
"""The same of each clause of two words or more: of two facts that are joined both are said."""
CLAUSE = re.compile(r"[.;:!?](?=\s)|\s[–—-]\s|\n|,?\s(?:and|but|while|whereas|because|so|therefore)\s", re.IGNORECASE)
DENIAL = re.compile(r"\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|without)\b|n['’]t\b", re.IGNORECASE)
LIMIT = re.compile(r"\b(?:only|just|instead|rather|unless|except|until|till|before|once)\b", re.IGNORECASE)
"""With such a word the same may be said with a denial and without one: "not before …", "only after …"."""
SMALL = words_of(" ".join(FUNCTION_WORDS)) | {"00"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """`places` (from 0, ascending) are the observations that a proposal comes from, `why` is why they do not carry it.

    `is_whole`: each of its words stands in one of them; else some are the reflector's own.
    """

    places: tuple[int, ...]
    why: str = ""
    is_whole: bool = False


def evidence_of(text: str, target: str, claimed: Sequence[int], observations: Sequence[str]) -> Evidence:
    """Return what a proposal comes from, and why it is to be rejected ("": it is not).

    `text` is the new entry ("" for a removal), `target` the entry that it changes or removes, `claimed` the places that
    the reflector named. Each other observation with a word of the text that no named one has is evidence, too.
    """
    named = sorted({place for place in claimed if 0 <= place < len(observations)})
    if not named or len(named) < len(set(claimed)):
        return Evidence((), "it names no evidence, or some that was not shown")
    texts = [observations[place] for place in named]
    evidence_words = _words("\n".join(texts))
    words = _words(text) - _words(target)
    if not words:  # a removal, or it only takes away
        about = evidence_words & _words(target or text)
        return Evidence(tuple(named), "" if about else "its evidence is not about the entry", bool(about))
    missing = words - evidence_words
    others = [place for place, one in enumerate(observations) if place not in named and _words(one) & missing]
    places = tuple(sorted([*named, *others]))
    all_words = evidence_words | _words("\n".join(observations[place] for place in others))
    why = _uncarried(text, target, words, evidence_words) or _invented(text, target, texts, all_words)
    return Evidence(places, why, words <= all_words)


def _uncarried(text: str, target: str, words: frozenset[str], evidence_words: frozenset[str]) -> str:
    if share(words, evidence_words) < LEAST:
        return f"its evidence has only {len(words & evidence_words)} of its {len(words)} words"
    for clause in CLAUSE.split(text):
        own = _words(clause) - _words(target)
        if len(own) > 1 and share(own, evidence_words) < LEAST_OF_A_CLAUSE:
            return f"its evidence does not say “{clause.strip()[:120]}”"
    return ""


def _invented(text: str, target: str, texts: Sequence[str], all_words: frozenset[str]) -> str:
    """Say which number, hard rule or denial of a text is not that of its evidence."""
    if numbers := sorted(word for word in _words(text) - _words(target) - all_words if any(map(str.isdigit, word))):
        return f"none of its evidence has {', '.join(numbers[:3])}"
    clauses = [one for each in texts for one in CLAUSE.split(each) if one.strip()]
    for clause in filter(str.strip, CLAUSE.split(text)):
        own = _words(clause)
        near = [one for one in [*clauses, *CLAUSE.split(target)] if share(own, _words(one)) >= LEAST]
        match = HARD.search(clause)
        if match and not any(HARD.search(one) for one in (near or [*texts, target])):
            return f"none of its evidence states the hard rule “{match[0]}”"
        kinds = {relation(one, clause).kind for one in texts} if len(own) > 1 else set()
        is_turned = not LIMIT.search(clause) and {_denies(one) for one in near} == {not _denies(clause)}
        if is_turned or (Kind.CONTRADICTS in kinds and Kind.REINFORCES not in kinds):
            return f"it says otherwise than its evidence: “{clause.strip()[:120]}”"
    return ""


def _denies(clause: str) -> bool | None:
    return None if LIMIT.search(clause) else bool(DENIAL.search(clause))


def _words(text: str) -> frozenset[str]:
    """Return the words of a text that say something, each by its meaning; numbers as digits, without leading zeros."""
    return frozenset(_plain(word) for word in words_of(fold(text)) - SMALL)


def _plain(word: str) -> str:
    if word.isdigit() or NUMBER_WORDS.get(word, 0) > 1:
        return f"{NUMBER_WORDS.get(word) or int(word):g}"
    return word if any(map(str.isdigit, word)) else meaning(word).name
