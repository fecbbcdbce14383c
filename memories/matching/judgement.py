"""The verdict on two normal forms, and the evidence for it.

Every signal is asked; the first rule that applies decides. What may be wrong is always the same way round:
unsure means distinct, for a fact that is merged is lost and a fact too many is only a line too many.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from .kinds import Kind, Relation
from .normalise import NormalForm, normal_form
from .opposites import Opposites, opposites
from .order import Order, order, rearranged
from .overlap import Overlap, overlap
from .quantities import Compared, compare
from .vocabulary import FULL_WEIGHT

MATCHER = "lexical"
"""Says in the evidence which matcher judged."""

_ALWAYS = frozenset(("matcher", "why", "similarity", "shared", "only_known", "only_new", "quantities"))

_COVERAGE = 0.5
"""A denial must touch at least this share of the words it denies: "caddy is not used" denies little of a long fact."""


class LexicalMatcher:
    """Judges by words and values alone. Stateless; needs no model and no network."""

    def relation(self, known: str, new: str, *, about: str | None = None) -> Relation:
        """See `Matcher.relation`."""
        subject = normal_form(about).words if about else frozenset()
        return judge(normal_form(known), normal_form(new), subject)


@dataclass(slots=True)
class _Case:
    """Two texts with all that was found about them."""

    known: NormalForm
    new: NormalForm
    words: Overlap
    amounts: Compared = field(default_factory=Compared)
    opposites: Opposites = field(default_factory=Opposites)
    order: Order = field(default_factory=Order)


def judge(known: NormalForm, new: NormalForm, about: frozenset[str] = frozenset()) -> Relation:
    """The relation of two normal forms; `about` are words of the subject both share."""
    case = _Case(known, new, overlap(known, new, about))
    if known.marks == new.marks and (known.marks or known.folded == new.folded):
        return _answer(
            case, Kind.REINFORCES, "The two say the same, word for word once spelling and small words are put aside."
        )
    words = case.words
    if not words.shared:
        return _answer(case, Kind.DISTINCT, "The two have no word in common that says something.")
    if words.full_known and words.full_new:
        return _answer(case, Kind.DISTINCT, _different_things(case))
    case.amounts = compare(known.amounts, new.amounts)
    case.opposites = opposites(known, new, words.shared)
    case.order = order(known, new, words.shared)
    if case.amounts.different or case.opposites.clashes or case.order.clashes:
        doubt = _why_no_contradiction(case)
        return _answer(case, Kind.DISTINCT, doubt) if doubt else _answer(case, Kind.CONTRADICTS, _disagreement(case))
    doubt = _why_no_restatement(case)
    return (
        _answer(case, Kind.DISTINCT, doubt)
        if doubt
        else _answer(case, Kind.REINFORCES, "The two say the same in other words.")
    )


def _different_things(case: _Case) -> str:
    known, new = case.words.known & case.known.names, case.words.new & case.new.names
    if known and new:
        return f"They name different things: {_list(known)} and {_list(new)}."
    return f"Each speaks of something the other does not: {_list(case.words.known)} and {_list(case.words.new)}."


def _why_no_contradiction(case: _Case) -> str:
    """Why two texts that clash can both be true; '' when they cannot."""
    words, turned, sequence = case.words, case.opposites, case.order
    found = [bool(case.amounts.different), bool(turned.clashes), bool(sequence.clashes)]
    if sum(found) > 1 and not (sequence.freed_by_known or sequence.freed_by_new):
        return "They turn round in two ways at once, which may come to the same."
    if turned.clashes and not turned.in_one_clause(case.known, case.new):
        return "They turn round in two places at once, which may come to the same."
    if len(case.amounts.different) > 1:
        return "More than one amount differs: they may speak of two cases."
    if case.amounts.different:
        return (
            f"The amounts differ, but one of them is about {_list(words.known | words.new)}."
            if words.full_known or words.full_new
            else ""
        )
    if _narrower(case):
        return "What is denied is narrower than what is affirmed."
    full_shared, left = words.full_shared, words.full_known + words.full_new
    if left and full_shared < _COVERAGE * (full_shared + left):
        return "They clash in too small a part of what they say."
    return ""


def _narrower(case: _Case) -> bool:
    """Whether the text that denies has a condition of its own: "no restart after a renewal" leaves "restart" true.

    A text that affirms may say more: whoever denies the whole denies that too.
    """
    turned, sequence, words = case.opposites, case.order, case.words
    sides = (
        (
            turned.clashes and not turned.new_denies,
            sequence.freed_by_known,
            case.known,
            words.known,
            case.amounts.only_known,
        ),
        (turned.clashes and turned.new_denies, sequence.freed_by_new, case.new, words.new, case.amounts.only_new),
    )
    for turns, frees, form, only, amounts in sides:
        if turns or frees:
            clauses = turned.clauses(form)
            near = [w for w in only if frees or form.places[w].lead or form.places[w].clause in clauses]
            if amounts or any(form.weights[word] == FULL_WEIGHT for word in near):
                return True
    return False


def _disagreement(case: _Case) -> str:
    if case.amounts.different:
        known, new = case.amounts.different[0]
        return f"Of the same thing one says {known.written}, the other {new.written}."
    if case.order.clashes:
        return f"The order is another: {case.order.clashes[0]}."
    turn = case.opposites.clashes[0]
    return f"Of “{turn.word}” the known text says “{turn.known.value}”, the new one “{turn.new.value}”."


def _why_no_restatement(case: _Case) -> str:
    """Why two texts that do not clash are not one fact; '' when they are."""
    words, amounts = case.words, case.amounts
    if amounts.unsure:
        return f"{amounts.unsure[0][0].written} and {amounts.unsure[0][1].written} may or may not be the same."
    if amounts.only_known or amounts.only_new:
        return f"Only one of them gives an amount: {(amounts.only_known or amounts.only_new)[0].written}."
    if words.full_known or words.full_new:
        return f"Only one of them speaks of {_list(words.known | words.new)}."
    if words.known and words.new:
        return f"They differ in a word: {_list(words.known)} and {_list(words.new)}."
    if len(words.known) + len(words.new) > 2 or not words.full_shared:
        return "They share too little."
    if doubt := _aside(case):
        return doubt
    if case.opposites.doubts:
        turn = case.opposites.doubts[0]
        return f"Of “{turn.word}” one says “{turn.known.value}”, the other “{turn.new.value}”."
    if case.order.doubts:
        return f"The order may be another: {case.order.doubts[0]}."
    if case.known.tangled or case.new.tangled:
        return "Too many negatives to be sure."
    return rearranged(case.known, case.new, words.shared)


def _aside(case: _Case) -> str:
    """An added statement may explain a fact; a long one, or one with names of its own, is a fact itself."""
    words = case.words
    if words.aside_known and words.aside_new:
        return "Each adds something of its own."
    added, form = (words.aside_known, case.known) if words.aside_known else (words.aside_new, case.new)
    if added & form.names or len(added) > len(words.shared) + 1:
        return f"One of them adds a fact of its own: {_list(added)}."
    return ""


def _answer(case: _Case, kind: Kind, why: str) -> Relation:
    score = _similarity(case) if case.known.marks != case.new.marks else 1.0
    return Relation(kind, score, _evidence(case, score, why))


def _similarity(case: _Case) -> float:
    """Sørensen–Dice over weighted words and amounts, 0..1."""
    weights = case.known.weights
    shared = sum(weights[word] for word in case.words.shared) + FULL_WEIGHT * len(case.amounts.same)
    total = case.known.weight + case.new.weight
    return round(min(1.0, 2 * shared / total), 4) if total else 0.0


def _evidence(case: _Case, score: float, why: str) -> dict[str, Any]:
    """What was found, as JSON. Empty findings are left out."""
    known, new, words, amounts = case.known, case.new, case.words, case.amounts
    found: dict[str, Any] = {
        "matcher": MATCHER,
        "why": why,
        "similarity": score,
        "shared": sorted(words.shared),
        "only_known": sorted(words.known | words.aside_known),
        "only_new": sorted(words.new | words.aside_new),
        "names": _sides(known.names - new.names, new.names - known.names),
        "quantities": [
            {"known": one.written, "new": other.written, "verdict": verdict}
            for verdict, pairs in (("same", amounts.same), ("different", amounts.different), ("unsure", amounts.unsure))
            for one, other in pairs
        ],
        "negation": _sides(known.negations, new.negations),
        "antonyms": _sides(known.antonyms, new.antonyms),
        "stance": [
            {"word": turn.word, "known": turn.known.value, "new": turn.new.value}
            for turn in (*case.opposites.clashes, *case.opposites.doubts)
        ],
        "order": [*case.order.clashes, *case.order.doubts],
    }
    return {key: value for key, value in found.items() if value or key in _ALWAYS}


def _sides(known: Collection[str], new: Collection[str]) -> dict[str, list[str]]:
    return {"known": sorted(known), "new": sorted(new)} if known or new else {}


def _list(words: Collection[str]) -> str:
    """A few words for a sentence."""
    shown = [f"“{word}”" for word in sorted(words)[:4]]
    return ", ".join(shown) + (" and more" if len(words) > 4 else "")
