"""Decide whether close texts with different words are paraphrases.

The cosine only admits a pair: a contradiction is closer than a paraphrase, so values, names, denials and order must
agree.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from .clause_types import Stance
from .evidence import Case, listed
from .function_words import FUNCTION_WORDS
from .order import rearranged
from .phrases import phrased
from .quantities import Quantity
from .synonyms import EMPTY, meaning
from .tokens import A_COMMA, A_NUMBER, A_STOP, A_WORD
from .units import BOUNDS, NUMBER_WORDS, UNITS

CLOSE = 0.80
"""Least cosine.

On 1,000 distinct facts, 1,000 restatements and 950 contradictions, .80 merged 581 restatements, lost no fact and
swallowed no contradiction.
"""

CLOSER = 0.85
"""The same where each text has own words."""

CLOSEST = 0.93
"""The same where only one text has own words, which may make another fact."""

_MOST_OWN = 3
"""Most full words that each text may have for itself."""

_LEAST_SHARED = 2
"""Least words and amounts that two texts must share."""

_DENIALS = frozenset((Stance.NOT, Stance.MUST_NOT))
_DROPPED = frozenset(("the", "a", "an", "it", "its", "their", "this", "that"))


def why_not_one_fact(case: Case, known: str, new: str, cosine: float) -> str:
    """Say why two close texts are two facts; '' when they are one."""
    return (
        _values(case)
        or names_apart(case, known, new)
        or _denial(case)
        or _sequence(case)
        or _words(case, known, new, cosine)
    )


def _values(case: Case) -> str:
    amounts = case.amounts
    if amounts.different:
        return "Their amounts differ."
    if only := amounts.only_known or amounts.only_new:
        return f"Only one of them gives an amount: {only[0].written}."
    if bounded := [pair for pair in amounts.same if _is_bound(pair[0]) != _is_bound(pair[1])]:
        return f"{bounded[0][0].written} and {bounded[0][1].written} may or may not be the same."
    if unsure := [pair for pair in amounts.unsure if not _one_end(*pair)]:
        return f"{unsure[0][0].written} and {unsure[0][1].written} may or may not be the same."
    return ""


def _is_bound(amount: Quantity) -> bool:
    return any(math.isinf(reading.low) or math.isinf(reading.high) for reading in amount.readings)


def _one_end(one: Quantity, other: Quantity) -> bool:
    """Whether one of two times is only the other's upper bound: "within 15 minutes" and "15 minutes"."""
    bounds = [(a, b) for a in one.readings for b in other.readings if a.dimension == b.dimension == "time"]
    return any(math.isclose(a.high, b.high) and math.isinf(min(a.low, b.low)) for a, b in bounds)


def names_apart(case: Case, known: str, new: str) -> str:
    """Find names of one text only: paths, hosts, versions, and capitalised words."""
    own = (case.known.names ^ case.new.names) | (_written_as_names(known) - _all_words(new))
    own |= _written_as_names(new) - _all_words(known)
    own -= UNITS.keys() | BOUNDS.keys()
    own = frozenset(name for name in own if not (_is_said(name, known) and _is_said(name, new)))
    return f"Only one of them names {listed(own)}." if own else ""


def _is_said(name: str, text: str) -> bool:
    """Whether a text has a name in some form: Saturdays, Saturday; --on, on."""
    found = _all_words(text)
    return name in found or name.lstrip("-") in found or (name.isalpha() and meaning(name).name in found)


@lru_cache(maxsize=4_096)
def _written_as_names(text: str) -> frozenset[str]:
    """Return words with a capital letter that do not begin a sentence."""
    found = set()
    for match in re.finditer(r"(?<![.!?:;—-] )(?<=[\w,)] )[`\"“]?([A-Za-z][\w+#]*)", text):
        word = match[1]
        if word != word.lower():
            found.add(word.lower())
    return frozenset(found)


@lru_cache(maxsize=4_096)
def _all_words(text: str) -> frozenset[str]:
    written = {word.lower() for word in re.findall(r"[^\W_][\w+#]*", text)}
    meant = {token.text for token in phrased(text)}  # "local network" is the LAN
    return frozenset(written | meant | {meaning(word).name for word in written} | {_joined(text)})


def _joined(text: str) -> str:
    return re.sub(r"\W", "", text.lower())


def _denial(case: Case) -> str:
    """Find a denial in one text only."""
    for turn in case.opposites.doubts:
        if (turn.known in _DENIALS) != (turn.new in _DENIALS) or Stance.OPTIONAL in (turn.known, turn.new):
            return f"Of {listed([turn.word])} one says “{turn.known.value}”, the other “{turn.new.value}”."
    if (len(case.known.turns) - len(case.new.turns)) % 2 or case.known.tangled != case.new.tangled:
        return "One of them denies what the other does not."
    return ""


def _sequence(case: Case) -> str:
    if len(case.order.doubts) > case.order.loose:
        return f"The order may be another: {case.order.doubts[0]}."
    return rearranged(case.known, case.new, case.words.shared)


def _words(case: Case, known: str, new: str, cosine: float) -> str:
    """Compare own words: none may replace another in its place or qualify the fact."""
    shared, here, there = case.words, case.words.known, case.words.new
    if shared.full_shared + len(case.amounts.same) < _LEAST_SHARED:
        return "They share too little."
    if max(here.full, there.full) > min(_MOST_OWN, shared.full_shared) or (here.aside and there.aside):
        return f"Each speaks of something the other does not: {listed(here.words)} and {listed(there.words)}."
    one, other = _sequence_of(known), _sequence_of(new)
    if why := _put_for(one, other):
        return why
    own = here.words | there.words
    if numbers := own & NUMBER_WORDS.keys():  # "one per rack", which is not read as an amount
        return f"Only one of them gives a number: {listed(numbers)}."
    if cosine < CLOSER and own:
        return f"Not close enough for words of their own: {listed(own)}."
    if own and not (here.words and there.words):
        if cosine < CLOSEST:
            return f"Only one of them speaks of {listed(own)}."
        if [word for word in one if word not in own] == [word for word in other if word not in own]:
            return f"One of them is narrower: {listed(own)}."
    return ""


def _put_for(one: Sequence[str], other: Sequence[str]) -> str:
    """Find a word that replaces another beside the same neighbour: "driveway camera", "garden camera"."""
    for left, right in ((one, other), (other, one)):
        here, there = set(left), set(right)
        for at, word in enumerate(left):
            if word in there:
                continue
            for step in (-1, 1):
                beside = left[at + step] if 0 <= at + step < len(left) else ""
                places = [place for place, found in enumerate(right) if found == beside]
                for place in places:
                    facing = right[place - step] if 0 <= place - step < len(right) else ""
                    if facing and facing not in here:
                        return f"“{word}” stands where the other says “{facing}”."
    return ""


@lru_cache(maxsize=4_096)
def _sequence_of(text: str) -> tuple[str, ...]:
    """Return the content words by meaning, in order, without numbers."""
    found: list[str] = []
    for token in phrased(text):
        if token.sort in (A_STOP, A_COMMA, A_NUMBER) or token.text in NUMBER_WORDS:
            continue  # amounts are compared as amounts
        if token.sort is not A_WORD:
            found.append(token.text)
        elif token.text not in FUNCTION_WORDS and token.text not in _DROPPED and meaning(token.text).weight != EMPTY:
            meant = meaning(token.text)
            found.append(meant.name if meant.sign > 0 else f"-{meant.name}")
    return tuple(found)
