"""Decide pairs that the rules leave distinct, by multinomial logistic regression over all signals.

It may only choose what no guard forbids; in doubt the answer is distinct.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .evidence import Case, listed
from .features import CLOSE_ENOUGH, Features
from .guards import apart, uneven
from .model_weights import WEIGHTS
from .order import rearranged
from .paraphrase import CLOSER
from .relations import Kind
from .vocabulary import MANNERS

SURE_SAME, SURE_AGAINST = 0.6, 0.5
"""Least likelihood of an answer, before the guards."""

LIKELY_OTHER_VALUE = 0.35
"""The same where only one value of a kind differs: SQLite, PostgreSQL."""

SURE_ALIKE = 0.8
"""The same where only one text has a denial, or both deny in different words ("keep away", "don't put near")."""

LIKELY_AGAINST = 0.12
"""Least likelihood of a contradiction between texts that are one but for words of opposite leanings."""

SURE_ELSEWHERE = 0.85
"""Least likelihood of a contradiction between texts that differ in more than one place."""


@dataclass(frozen=True, slots=True)
class Look:
    """The likelihood of each answer (0..1), and the answer that no guard forbids."""

    likely: tuple[float, float, float]
    kind: Kind
    apart: str = ""


def likelihood(numbers: Sequence[float]) -> tuple[float, float, float]:
    """Return the likelihood of one fact, a contradiction and two facts; the three add up to 1."""
    same = against = apart = 0.0
    for number, (one, two, three) in zip(numbers, WEIGHTS, strict=True):
        if number:  # most are 0
            same, against, apart = same + number * one, against + number * two, apart + number * three
    top = max(same, against, apart)
    powers = (math.exp(same - top), math.exp(against - top), math.exp(apart - top))
    total = sum(powers)
    return powers[0] / total, powers[1] / total, powers[2] / total


def by_model(case: Case, known: str, new: str, weighed: Features) -> Look:
    """Decide by all features; amounts, opposites and order must have been computed."""
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
    """Whether two words or amounts are exchanged in texts that share all of them."""
    amounts = case.amounts
    if case.clashes or amounts.only_known or amounts.only_new or amounts.unsure:
        return False
    return bool(rearranged(case.known, case.new, case.words.shared))


def why_not_same(case: Case, known: str, new: str, weighed: Features, likely: float) -> str:
    """Say why two texts that are likely one fact are not merged; '' when they are."""
    close = case.cosine or 0.0
    if close < CLOSE_ENOUGH:
        return "They are not close enough in meaning."
    sure = likely >= SURE_ALIKE and close >= CLOSER  # plain contradictions were decided before
    if case.clashes and not sure:
        return "Something cannot be true of both."
    if weighed.opposed:
        return "They lean to opposite sides."
    if weighed.pure_swap or weighed.other_subject or weighed.recounted:
        return f"One stands where the other has another: {listed([*weighed.left, *weighed.right])}."
    if weighed.says_own:
        return f"Each says something of its own: {listed([*weighed.left, *weighed.right])}."
    if weighed.narrower:
        return f"One of them is narrower: {listed([*weighed.left, *weighed.right])}."
    if uneven(case) and not (sure or (weighed.leaning_alike and likely >= SURE_ALIKE)):
        return "One of them denies what the other does not."
    return apart(case, known, new) if weighed.apart is None else weighed.apart


def _only_denials(case: Case, opposed: int) -> str:
    """Say why what one text denies and the other does not reverses neither; '' when it does."""
    sides = ((case.known, case.new), (case.new, case.known))
    how = [turn for form, beside in sides for turn in form.turns if turn in MANNERS and turn not in beside.words]
    turns = [turn for form, _ in sides for turn in form.turns]
    if how and len(how) == len(turns) and not (opposed or case.amounts.different):
        return "Only one of them says how."  # "asynchronously"
    twice = len(turns) % 2 == 0 and len(case.known.turns) != len(case.new.turns)  # "without the key it does not start"
    if any(
        form.tangled or (twice and (form.plain or "without" in form.ordered) and len(form.turns) > 1)
        for form, _ in sides
    ):
        return "Too many negatives to be sure."
    return ""


def why_not_against(case: Case, weighed: Features, likely: float) -> str:
    """Say why two texts that likely contradict may both hold; '' when they cannot."""
    if weighed.heads_apart:
        return f"They speak of different things: {listed([*weighed.left, *weighed.right])}."
    if weighed.two_cases:
        return "They speak of two cases."
    if weighed.describing:
        return f"They speak of different things: {listed([*weighed.left, *weighed.right])}."
    clash = bool(case.amounts.different or case.opposites.clashes)
    turned = clash or weighed.opposed > 0
    denied = (len(case.known.turns) - len(case.new.turns)) % 2
    if not (turned or weighed.evident or weighed.exclusive or denied or case.order.clashes):
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
    if why := _only_denials(case, weighed.opposed):
        return why
    if weighed.of_a_kind:
        return "They name two things of a kind."
    if weighed.names_apart and weighed.more_than_names:
        return "They name different things."
    return ""
