"""The findings about two texts, and their form as JSON evidence. Judges nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from .frames import Slot
from .normalise import NormalForm
from .opposites import Opposites
from .order import Order
from .overlap import Overlap
from .quantities import Compared
from .synonyms import FULL

MATCHER = "lexical"
"""The matcher's name in the evidence."""

NEAR, NEAR_IN_WORDS = 0.88, 0.75
"""Least cosine, or without one word similarity, of distinct facts that may be one.

Of operational pairs a tenth of the distinct ones are as close, and nine in ten restatements.
"""

ASKED = 0.8
"""Least likeness of texts, but for a denial in a language that is not understood, of which a person is asked."""


@dataclass(slots=True)
class Case:
    """What the signals found; those that did not run found nothing."""

    known: NormalForm
    new: NormalForm
    words: Overlap
    amounts: Compared = field(default_factory=Compared)
    opposites: Opposites = field(default_factory=Opposites)
    order: Order = field(default_factory=Order)
    slot: Slot | None = None
    cosine: float | None = None
    likely: tuple[float, ...] = ()  # of one fact, a contradiction, two facts, by the linear model
    denied: float | None = None  # how alike they are but for a denial in another language
    apart: str = ""  # why two close texts are two facts

    @property
    def clashes(self) -> bool:
        """Whether any signal found something that cannot be true of both."""
        return bool(self.amounts.different or self.opposites.clashes or self.order.clashes)


def similarity(case: Case) -> float:
    """Sørensen–Dice over weighted words and amounts, 0..1."""
    if case.known.marks == case.new.marks:
        return 1.0
    weights = case.known.weights
    shared = sum(weights[word] for word in case.words.shared) + FULL * len(case.amounts.same)
    total = case.known.weight + case.new.weight
    return round(min(1.0, 2 * shared / total), 4) if total else 0.0


def evidence_of(case: Case, score: float, why: str) -> dict[str, Any]:
    """Return the findings as JSON, without empty ones."""
    known, new, words, amounts = case.known, case.new, case.words, case.amounts
    found: dict[str, Any] = {
        "matcher": MATCHER,
        "why": why,
        "similarity": score,
        "shared": sorted(words.shared),
        "only_known": sorted(words.known.words | words.known.aside),
        "only_new": sorted(words.new.words | words.new.aside),
    }
    if known.names != new.names:
        found["names"] = _sides(known.names - new.names, new.names - known.names)
    if known.negations or new.negations:
        found["negation"] = _sides(known.negations, new.negations)
    if known.antonyms or new.antonyms:
        found["antonyms"] = _sides(known.antonyms, new.antonyms)
    if known.amounts or new.amounts:
        found["quantities"] = _quantities(amounts)
    if turns := (*case.opposites.clashes, *case.opposites.doubts):
        found["stance"] = [{"word": turn.word, "known": turn.known.value, "new": turn.new.value} for turn in turns]
    if case.slot:
        found["slot"] = {"subject": case.slot.subject, "known": case.slot.known, "new": case.slot.new}
    if case.cosine is not None:
        found["cosine"] = round(case.cosine, 4)
    if case.likely:
        found["likely"] = [round(one, 3) for one in case.likely]
    if case.denied is not None:
        found["alike but for a denial"] = round(case.denied, 2)
    if case.apart:
        found["apart"] = case.apart
    if sentences := (*case.order.clashes, *case.order.doubts):
        found["order"] = list(sentences)
    return found


def may_be_one(evidence: Mapping[str, Any]) -> bool:
    """Whether two distinct texts are so close, without a name or an amount between them, that a person should look."""
    if (
        evidence.get("names")
        or evidence.get("slot")
        or any(one["verdict"] != "same" for one in evidence.get("quantities", ()))
    ):
        return False
    if evidence.get("alike but for a denial", 0.0) >= ASKED:
        return True
    cosine = evidence.get("cosine")
    if cosine is None:
        return bool(evidence.get("similarity", 0.0) >= NEAR_IN_WORDS)
    return bool(cosine >= NEAR)


def _quantities(amounts: Compared) -> list[dict[str, str]]:
    compared = (("same", amounts.same), ("different", amounts.different), ("unsure", amounts.unsure))
    return [
        {"known": one.written, "new": other.written, "verdict": verdict}
        for verdict, pairs in compared
        for one, other in pairs
    ]


def _sides(known: Collection[str], new: Collection[str]) -> dict[str, list[str]]:
    return {"known": sorted(known), "new": sorted(new)}


def listed(words: Collection[str]) -> str:
    shown = [f"the {word[1:]}" if word.startswith("#") else f"“{word}”" for word in sorted(words)[:4]]
    return ", ".join(shown) + (" and more" if len(words) > 4 else "")
