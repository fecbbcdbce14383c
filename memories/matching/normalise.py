"""Text to its normal form.

What spelling, small words, hedges, inflection and synonyms hide is gone from a normal form; what makes two
facts different (negation, obligation, amounts, names, order) is laid open. Knows one text at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from .clauses import Stance, read
from .quantities import Quantity
from .tokens import fold, tokens
from .vocabulary import EMPTY_WEIGHT, FULL_WEIGHT

LONG = 1_000
"""Characters. Normal forms of longer texts are not kept: few are met twice."""


UNCLEAR = "?"
"""The lead of a word that may or may not belong to the clause's lead."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a word stands: its clause and statement, its position, what leads it, and the clause's stance."""

    clause: int
    statement: int
    at: int
    preposition: str
    lead: str
    stance: Stance


@dataclass(frozen=True, slots=True)
class NormalForm:
    """A text made comparable.

    `marks` is all that was read, in order: equal marks are the same text. `places` has the first place of
    each word that says anything, `stances` all stances it is found under. `weights` is 1 for words that add
    little and 2 for the others, `weight` their sum, an amount counting as a full word. `leads` are the kinds of words that open its clauses (after, when, …). `tangled`: a clause turns its meaning round more than once;
    `plain`: every clause simply affirms; `reasons`: the statements a "because" opens.
    """

    folded: str
    marks: tuple[object, ...]
    places: Mapping[str, Place]
    stances: Mapping[str, frozenset[Stance]]
    weights: Mapping[str, int]
    weight: int
    words: frozenset[str]
    names: frozenset[str]
    amounts: tuple[Quantity, ...]
    leads: frozenset[str]
    negations: tuple[str, ...]
    antonyms: tuple[str, ...]
    tangled: bool
    plain: bool
    statements: int
    reasons: frozenset[int]


def normal_form(text: str) -> NormalForm:
    """The normal form of any text, kept for the next time. Linear in the text's length."""
    return _kept(text) if len(text) <= LONG else _normal_form(text)


def _normal_form(text: str) -> NormalForm:
    folded = fold(text)
    clauses = read(tokens(folded))
    places: dict[str, Place] = {}
    stances: dict[str, frozenset[Stance]] = {}
    weights: dict[str, int] = {}
    for number, clause in enumerate(clauses):
        only = frozenset({clause.stance})
        for at, word in enumerate(clause.words):
            if word.weight == EMPTY_WEIGHT:
                continue
            lead = UNCLEAR if clause.runs_on and at else clause.lead
            places.setdefault(word.text, Place(number, clause.statement, at, word.preposition, lead, clause.stance))
            stances[word.text] = stances.get(word.text, only) | only
            weights[word.text] = word.weight
    return NormalForm(
        folded=folded,
        marks=tuple(mark for clause in clauses for mark in clause.marks),
        places=places,
        stances=stances,
        weights=weights,
        weight=sum(weights.values()) + FULL_WEIGHT * sum(len(clause.amounts) for clause in clauses),
        words=frozenset(places),
        names=frozenset(word.text for clause in clauses for word in clause.words if word.is_name),
        amounts=tuple(amount for clause in clauses for amount in clause.amounts),
        leads=frozenset(clause.lead for clause in clauses if clause.lead),
        negations=tuple(mark for clause in clauses for mark in clause.marks if mark == "not"),
        antonyms=tuple(word for clause in clauses for word in clause.turned_by),
        plain=all(clause.stance is Stance.IS for clause in clauses),
        statements=len({clause.statement for clause in clauses}),
        reasons=frozenset(clause.statement for clause in clauses if clause.is_reason),
        tangled=any(clause.tangled for clause in clauses),
    )


_kept = lru_cache(maxsize=8_192)(_normal_form)
