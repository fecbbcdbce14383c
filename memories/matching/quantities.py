"""Compare amounts as intervals: 60s = 60 seconds = 1 minute, 4G = 4096 MB, twice a day = every 12 hours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .units import BOUNDS

PERIOD = "period"
"""The dimension of a frequency, in seconds between two times."""

BARE = "number"
"""The dimension of a plain value: "MTU is 1380". Counted things have `count <noun>`."""

MOST = 40
"""Most amounts of a text that are paired: pairing is quadratic."""

_HEDGED = 0.1
"""The tolerance of "about 60s": a tenth to either side."""


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
        """The first reading's dimension: enough to distinguish amounts of one text."""
        return self.readings[0].dimension

    def as_period(self) -> Quantity:
        periods = tuple(replace(reading, dimension=PERIOD) for reading in self.readings if reading.dimension == "time")
        return replace(self, readings=periods) if periods else self


def bounded(quantity: Quantity, word: str) -> Quantity:
    """Bound the amount by "at least", "under", …"""
    low = BOUNDS[word] == "low"
    readings = tuple(
        replace(reading, high=math.inf) if low else replace(reading, low=-math.inf) for reading in quantity.readings
    )
    return replace(quantity, readings=readings)


@dataclass(frozen=True, slots=True)
class Compared:
    """Amounts of two texts side by side. `unsure` pairs overlap without being the same."""

    same: tuple[tuple[Quantity, Quantity], ...] = ()
    different: tuple[tuple[Quantity, Quantity], ...] = ()
    unsure: tuple[tuple[Quantity, Quantity], ...] = ()
    only_known: tuple[Quantity, ...] = ()
    only_new: tuple[Quantity, ...] = ()


def compare(known: Sequence[Quantity], new: Sequence[Quantity]) -> Compared:
    """Pair equal amounts first, then the rest of each dimension, those of one anchor before others."""
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
    """Move fitting pairs out of both lists, in the order of the left one."""
    pairs: Pairs = []
    for one in tuple(left):
        other = next((candidate for candidate in right if fits(one, candidate)), None)
        if other is not None:
            pairs.append((one, other))
            left.remove(one)
            right.remove(other)
    return pairs


def _crossed(same: Pairs) -> tuple[tuple[Quantity, Quantity], ...]:
    """Find equal amounts of one dimension that changed their anchors: "waits 10s, retries 60s" the other way round."""
    moved = [pair for pair in same if pair[0].anchor != pair[1].anchor]
    dimensions = [pair[0].dimension for pair in same]
    return tuple(pair for pair in moved if dimensions.count(pair[0].dimension) > 1)


def agree(one: Quantity, other: Quantity) -> bool:
    """Whether two amounts are equal, or within a tenth when one of them is "about"."""
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
