"""Amounts: 60s = 60 seconds = 1 minute = a minute, 4G = 4096 MB, twice a day = every 12 hours.

Reads them from tokens and compares them; knows nothing of the words around them. All arithmetic is on
intervals, so that "at least 2 GB" and "60-90s" need no case of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .tokens import Sort, Token
from .units import BOUNDS, NUMBER_WORDS, PERIODS, TIME_WORDS, TIMES, UNITS

PERIOD = "period"
"""The dimension of how often; its value is the seconds between two times."""

BARE = "number"
"""The dimension of a number that is a value: "MTU is 1380". Of counted things it is `count <noun>`."""

_EVERY = frozenset({"every", "each", "per"})
_ONE = frozenset({"a", "an", "one"})
MOST = 40
"""Pairing is quadratic; texts with more amounts than a person would put in one fact are not paired."""

_HEDGED = 0.1
"""How far "about 60s" reaches: a tenth to either side."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read an amount: an interval of a dimension in its base unit; a plain number has low == high."""

    dimension: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount as written, with its readings ("5m" has three). `anchor` is the word it belongs to."""

    written: str
    readings: tuple[Reading, ...]
    hedged: bool = False
    anchor: str = ""

    @property
    def dimension(self) -> str:
        """The first reading's: enough to tell amounts of one text apart."""
        return self.readings[0].dimension

    def about(self, anchor: str) -> Quantity:
        return replace(self, anchor=anchor)

    def as_period(self) -> Quantity:
        """The same amount of time as an interval between two times."""
        periods = tuple(replace(reading, dimension=PERIOD) for reading in self.readings if reading.dimension == "time")
        return replace(self, readings=periods) if periods else self


def take(tokens: Sequence[Token], at: int, noun: Callable[[str], str]) -> tuple[Quantity, int] | None:
    """The amount that starts at token `at` and the index after it; None when none starts there.

    `noun` gives the name under which a counted thing is compared ('' when the word counts nothing).
    """
    return _period(tokens, at) or _bounded(tokens, at, noun) or _amount(tokens, at, noun)


def _word(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) and tokens[at].sort is Sort.WORD else ""


def _number(tokens: Sequence[Token], at: int) -> tuple[float, int] | None:
    """A number in digits or words: 90, five, twenty-four, two hundred, a couple of, half."""
    if at >= len(tokens):
        return None
    if tokens[at].sort is Sort.NUMBER:
        value, at = float(tokens[at].text), at + 1
    elif (word := _word(tokens, at)) in NUMBER_WORDS:
        value, at = NUMBER_WORDS[word], at + 1
        if 20 <= value <= 90 and 0 < NUMBER_WORDS.get(_word(tokens, at), 0) < 10:
            value, at = value + NUMBER_WORDS[_word(tokens, at)], at + 1
    elif word == "half" and _word(tokens, at + 1) in _ONE and _word(tokens, at + 2) in TIME_WORDS:
        return 0.5, at + 2
    elif word in _ONE and _word(tokens, at + 1) == "couple" and _word(tokens, at + 2) == "of":
        return 2.0, at + 3
    elif word in _ONE and _word(tokens, at + 1) in TIME_WORDS and not _is_ordinal(tokens, at + 1):
        return 1.0, at + 1
    else:
        return None
    scale = NUMBER_WORDS.get(_word(tokens, at), 0)
    return (value * scale, at + 1) if scale >= 100 else (value, at)


def _is_ordinal(tokens: Sequence[Token], at: int) -> bool:
    """ "a second restart" counts restarts, not seconds."""
    return _word(tokens, at) == "second" and at + 1 < len(tokens) and tokens[at + 1].sort in (Sort.WORD, Sort.NAME)


def _period(tokens: Sequence[Token], at: int) -> tuple[Quantity, int] | None:
    """daily, every 5 minutes, every other day, once a week, three times per hour."""
    word = _word(tokens, at)
    if word in PERIODS:
        return _every(word, PERIODS[word]), at + 1
    if word in _EVERY and _word(tokens, at - 1) != "of":  # "the first of every month" is a day
        times, after = (2.0, at + 2) if _word(tokens, at + 1) == "other" else (_number(tokens, at + 1) or (1.0, at + 1))
        unit = _word(tokens, after)
        if unit in TIME_WORDS or (after > at + 1 and unit in UNITS and UNITS[unit][0][0] == "time"):
            seconds = TIME_WORDS[unit] if unit in TIME_WORDS else UNITS[unit][0][1]
            return _every(f"{word} {times:g} {unit}", times * seconds), after + 1
        return None
    if word in TIMES:
        times, after = TIMES[word], at + 1
        if word != "once" and _word(tokens, after) not in _ONE | _EVERY and _word(tokens, after) not in PERIODS:
            return _times(times), after
        if word == "once" and (after >= len(tokens) or tokens[after].sort in (Sort.COMMA, Sort.STOP)):
            return _times(times), after
    elif (number := _number(tokens, at)) and _word(tokens, number[1]) in ("time", "times"):
        times, after = number[0], number[1] + 1
    else:
        return None
    if _word(tokens, after) in PERIODS and times:
        return _every(f"{times:g} times {_word(tokens, after)}", PERIODS[_word(tokens, after)] / times), after + 1
    if _word(tokens, after) in _ONE | _EVERY and _word(tokens, after + 1) in TIME_WORDS and times:
        unit = _word(tokens, after + 1)
        return _every(f"{times:g} times a {unit}", TIME_WORDS[unit] / times), after + 2
    return None


def _times(times: float) -> Quantity:
    return Quantity(f"{times:g} times", (Reading("count time", times, times),), anchor="time")


def _every(written: str, seconds: float) -> Quantity:
    return Quantity(written, (Reading(PERIOD, seconds, seconds),))


def _bounded(tokens: Sequence[Token], at: int, noun: Callable[[str], str]) -> tuple[Quantity, int] | None:
    """at least 2 GB, under 5 minutes."""
    word = _word(tokens, at)
    found = _amount(tokens, at + 1, noun) if word in BOUNDS else None
    return (bounded(found[0], word), found[1]) if found else None


def bounded(quantity: Quantity, word: str) -> Quantity:
    """The amount with "at least", "under", … put to it."""
    low = BOUNDS[word] == "low"
    readings = tuple(
        replace(reading, high=math.inf) if low else replace(reading, low=-math.inf) for reading in quantity.readings
    )
    return replace(quantity, written=f"{word.replace('_', ' ')} {quantity.written}", readings=readings)


def _amount(tokens: Sequence[Token], at: int, noun: Callable[[str], str]) -> tuple[Quantity, int] | None:
    """60s, 5 minutes, 5 to 10 minutes, 3 nodes, 1380."""
    number = _number(tokens, at)
    if number is None:
        return None
    low, after = number
    high = low
    if _word(tokens, after) in ("to", "and", "or") and (upper := _number(tokens, after + 1)):
        joined = _word(tokens, after) != "and" or _word(tokens, at - 1) == "between"
        if joined and upper[0] > low and _word(tokens, upper[1]) in UNITS:
            high, after = upper
    unit = _word(tokens, after)
    shown = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    if unit in UNITS and not (unit == "m" and after == at):
        after += 1
        if [_word(tokens, after + ahead) for ahead in range(3)] == ["and", "a", "half"]:
            low, high, shown, after = low + 0.5, high + 0.5, f"{shown} and a half", after + 3
        readings = tuple(Reading(dimension, low * factor, high * factor) for dimension, factor in UNITS[unit])
        return Quantity(f"{shown} {unit}", readings), after
    counted = noun(unit) if unit else ""
    if counted:
        return Quantity(f"{shown} {unit}", (Reading(f"count {counted}", low, high),), anchor=counted), after
    if tokens[at].text in ("one", "single"):
        return None  # "one of them"
    return Quantity(shown, (Reading(BARE, low, high),)), after


@dataclass(frozen=True, slots=True)
class Compared:
    """Amounts of two texts side by side. `unsure` pairs overlap without being the same."""

    same: tuple[tuple[Quantity, Quantity], ...] = ()
    different: tuple[tuple[Quantity, Quantity], ...] = ()
    unsure: tuple[tuple[Quantity, Quantity], ...] = ()
    only_known: tuple[Quantity, ...] = ()
    only_new: tuple[Quantity, ...] = ()


def compare(known: Sequence[Quantity], new: Sequence[Quantity]) -> Compared:
    """Pairs equal amounts first, then the rest of each dimension, those of one anchor before others."""
    if not known and not new:
        return Compared()
    if max(len(known), len(new)) > MOST:
        return Compared(only_known=tuple(known), only_new=tuple(new))
    left, right = list(known), list(new)
    same = _pair(left, right, lambda a, b: a.anchor == b.anchor and agree(a, b)) + _pair(left, right, agree)
    rest = _pair(left, right, lambda a, b: a.anchor == b.anchor and _comparable(a, b)) + _pair(left, right, _comparable)
    different = tuple(pair for pair in rest if _apart(*pair))
    unsure = tuple(pair for pair in rest if not _apart(*pair)) + _crossed(same)
    return Compared(tuple(same), different, unsure, tuple(left), tuple(right))


Pairs = list[tuple[Quantity, Quantity]]


def _pair(left: list[Quantity], right: list[Quantity], fits: Callable[[Quantity, Quantity], bool]) -> Pairs:
    """Takes fitting pairs out of both lists, in the order of the left one."""
    pairs: Pairs = []
    for one in tuple(left):
        other = next((candidate for candidate in right if fits(one, candidate)), None)
        if other is not None:
            pairs.append((one, other))
            left.remove(one)
            right.remove(other)
    return pairs


def _crossed(same: Pairs) -> tuple[tuple[Quantity, Quantity], ...]:
    """Equal amounts of one dimension that changed their anchors: "waits 10s, retries 60s" the other way round."""
    moved = [pair for pair in same if pair[0].anchor != pair[1].anchor]
    dimensions = [pair[0].dimension for pair in same]
    return tuple(pair for pair in moved if dimensions.count(pair[0].dimension) > 1)


def agree(one: Quantity, other: Quantity) -> bool:
    """Whether two amounts say the same: equal, or within a tenth when one of them is "about"."""
    return any(_equal(a, b, one.hedged or other.hedged) for a, b in _readings(one, other))


def _comparable(one: Quantity, other: Quantity) -> bool:
    return any(True for _ in _readings(one, other))


def _apart(one: Quantity, other: Quantity) -> bool:
    """Whether no reading lets both be true; "at least 2 GB" and "at least 4 GB" name two bounds."""
    return all(
        a.high < b.low
        or b.high < a.low
        or (math.isinf(a.low), math.isinf(a.high)) == (math.isinf(b.low), math.isinf(b.high)) != (False, False)
        for a, b in _readings(one, other)
    )


def _readings(one: Quantity, other: Quantity) -> list[tuple[Reading, Reading]]:
    return [(a, b) for a in one.readings for b in other.readings if a.dimension == b.dimension]


def _equal(a: Reading, b: Reading, hedged: bool) -> bool:
    reach = _HEDGED if hedged else 1e-9
    if math.isinf(a.low) == math.isinf(b.low) and math.isinf(a.high) == math.isinf(b.high):
        return math.isclose(a.low, b.low, rel_tol=reach) and math.isclose(a.high, b.high, rel_tol=reach)
    # "needs 2 GB" means at least 2 GB, but "takes 2 minutes" does not mean at most 2
    point, bound = (a, b) if math.isinf(b.high) else (b, a)
    return point.low == point.high and math.isinf(bound.high) and math.isclose(point.low, bound.low, rel_tol=reach)
