"""The third look at two texts that the rules leave apart: all that is known of them, weighed at once.

A linear model (multinomial logistic regression) on the numbers of `weighing` says how likely each answer is. It may
only choose what no guard speaks against: values, names, denials, order and single words put for one another decide
alone, as everywhere. Unsure means distinct.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .evidence import Case, listed
from .kinds import Kind
from .order import rearranged
from .paraphrase import names_apart
from .quantities import Quantity
from .weighing import Weighed
from .weights import WEIGHTS

SURE_SAME, SURE_AGAINST = 0.6, 0.55
"""How likely an answer must be. A fact merged is lost, so guards speak against that first."""

LIKELY_OTHER_VALUE = 0.35
"""The same where all that differs is one value of a kind: SQLite, PostgreSQL."""

CLOSE_ENOUGH = 0.7
"""Cosine below which two texts are never made one."""

SURE_ALIKE = 0.8
"""The same where one text says with a denial what the other says without one."""

LIKELY_AGAINST = 0.12
"""How likely two texts must be at odds that would be one, did not one word of each lean to the other side."""

SURE_ELSEWHERE = 0.85
"""How likely two texts must be at odds that differ in more places than one."""


@dataclass(frozen=True, slots=True)
class Look:
    """How likely each answer is (0..1), and the one that no guard speaks against."""

    likely: tuple[float, float, float]
    kind: Kind
    apart: str = ""


def likelihood(numbers: Sequence[float]) -> tuple[float, float, float]:
    """How likely the texts say the same, disagree, and speak of two things; the three add up to 1."""
    same = against = apart = 0.0
    for number, (one, two, three) in zip(numbers, WEIGHTS, strict=True):
        if number:  # most are 0
            same, against, apart = same + number * one, against + number * two, apart + number * three
    top = max(same, against, apart)
    powers = (math.exp(same - top), math.exp(against - top), math.exp(apart - top))
    total = sum(powers)
    return powers[0] / total, powers[1] / total, powers[2] / total


def third_look(case: Case, known: str, new: str, weighed: Weighed) -> Look:
    """What all numbers together say of two texts that have been asked for amounts, opposites and order."""
    likely = likelihood(weighed.numbers)
    if not (weighed.left or weighed.right) and weighed.ordered_alike and exchanged(case):
        return Look(likely, Kind.CONTRADICTS)
    if likely[0] >= SURE_SAME:
        apart = why_not_same(case, known, new, weighed, likely[0])
        if not apart:
            return Look(likely, Kind.REINFORCES)
        swapped = weighed.opposed and likely[1] >= LIKELY_AGAINST
        if not swapped or why_not_against(case, weighed, likely[1]):
            return Look(likely, Kind.DISTINCT, apart)
        return Look(likely, Kind.CONTRADICTS)
    if likely[1] >= (LIKELY_OTHER_VALUE if weighed.value_of_a_kind else SURE_AGAINST):
        apart = why_not_against(case, weighed, likely[1])
        return Look(likely, Kind.DISTINCT if apart else Kind.CONTRADICTS, apart)
    return Look(likely, Kind.DISTINCT)


def exchanged(case: Case) -> bool:
    """Whether texts of the same words and amounts have two of them in each other's place."""
    amounts = case.amounts
    if case.clashes or amounts.only_known or amounts.only_new or amounts.unsure:
        return False
    return bool(rearranged(case.known, case.new, case.words.shared))


def why_not_same(case: Case, known: str, new: str, weighed: Weighed, likely: float) -> str:
    """Why two texts that are likely one fact are not merged; '' when nothing speaks against it."""
    if (case.cosine or 0.0) < CLOSE_ENOUGH:
        return "They are not close enough in meaning."
    if case.clashes:
        return "Something cannot be true of both."
    if weighed.opposed:
        return "They lean to opposite sides."
    if weighed.pure_swap or weighed.recounted or weighed.other_subject:
        return f"One stands where the other has another: {listed([*weighed.left, *weighed.right])}."
    if weighed.narrower:
        return f"One of them is narrower: {listed([*weighed.left, *weighed.right])}."
    uneven = (len(case.known.turns) - len(case.new.turns)) % 2 or case.known.tangled != case.new.tangled
    if uneven and not (weighed.leaning_alike and likely >= SURE_ALIKE):
        return "One of them denies what the other does not."
    return (
        names_apart(case, known, new)
        or amounts_apart(case)
        or (f"The order may be another: {case.order.doubts[0]}." if len(case.order.doubts) > case.order.loose else "")
        or rearranged(case.known, case.new, case.words.shared)
    )


def why_not_against(case: Case, weighed: Weighed, likely: float) -> str:
    """Why two texts that are likely at odds may both hold; '' when nothing speaks for that."""
    if weighed.heads_apart:
        return f"They speak of different things: {listed([*weighed.left, *weighed.right])}."
    if weighed.describing:
        return f"They speak of different things: {listed([*weighed.left, *weighed.right])}."
    clash = bool(case.amounts.different or case.opposites.clashes)
    turned = clash or weighed.opposed > 0
    denied = (len(case.known.turns) - len(case.new.turns)) % 2
    if not (turned or weighed.evident or denied or case.order.clashes):
        return "Nothing says that one excludes the other."
    both = bool(weighed.left and weighed.right)
    if (weighed.scoped and clash) or (both and (case.amounts.different or case.order.clashes)):
        return "They differ in more than one place."
    if weighed.elsewhere and not turned and likely < SURE_ELSEWHERE:
        return "They differ in more than one place."
    if len(case.amounts.different) > 1:
        return "More than one amount differs: they may speak of two cases."
    if case.amounts.unsure:
        return "Their amounts may be the same."
    if case.known.tangled or case.new.tangled:
        return "Too many negatives to be sure."
    if weighed.of_a_kind:
        return "They name two things of a kind."
    if weighed.names_apart and weighed.more_than_names:
        return "They name different things."
    return ""


def amounts_apart(case: Case) -> str:
    """Amounts of one text that the other has not, however written: "three times" is "3 restarts"."""
    amounts = case.amounts
    left, right = list(amounts.only_known), list(amounts.only_new)
    for one in tuple(left):
        same = next((other for other in right if _one_number(one, other)), None)
        if same is not None:
            left.remove(one)
            right.remove(same)
    own = [one for one in (left or right) if not _is_night(one, case)]
    if own:
        return f"Only one of them gives an amount: {own[0].written}."
    if unsure := [pair for pair in amounts.unsure if not _one_number(*pair)]:
        return f"{unsure[0][0].written} and {unsure[0][1].written} may or may not be the same."
    return ""


def _is_night(amount: Quantity, case: Case) -> bool:
    """ "Nightly" beside "at night"."""
    return "night" in amount.written and "night" in case.words.shared


def _one_number(one: Quantity, other: Quantity) -> bool:
    """Whether the two have a finite end in common, in one dimension or as plain counts."""
    for a in one.readings:
        for b in other.readings:
            counted = all(reading.dimension.partition(" ")[0] in ("count", "number") for reading in (a, b))
            if a.dimension == b.dimension or counted:
                ends = ((a.low, b.low), (a.high, b.high), (a.low, b.high), (a.high, b.low))
                if any(math.isfinite(x) and math.isclose(x, y) for x, y in ends):
                    return True
    return False
