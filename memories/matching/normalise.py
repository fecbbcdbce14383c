"""Convert a text to its normal form, which keeps what separates facts: negation, obligation, amounts, names, order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from .clause_types import Stance
from .clauses import read
from .phrases import phrased
from .quantities import Quantity
from .synonyms import EMPTY, FULL
from .tokens import COMMA, STOP, fold, tokens
from .vocabulary import IMPLIED

LONG = 1_000
"""Characters. Normal forms of longer texts are not cached: few recur."""


_ALONE = {stance: frozenset((stance,)) for stance in Stance}
_EITHER = frozenset((Stance.IS, Stance.NOT))
"""The stances of a word that may or may not belong to the part that "without" opens."""

UNCLEAR = "?"
"""The lead of a word that may or may not belong to the clause's lead."""


class Place(NamedTuple):
    """A word's clause and statement, position, what leads it, and the clause's stance."""

    clause: int
    statement: int
    at: int
    preposition: str
    lead: str
    stance: Stance


@dataclass(frozen=True, slots=True)
class NormalForm:
    """A text made comparable.

    Equal `marks` (all that was read, in order) are the same text. `places`: the first place of each content word, and
    of each kind of amount ("#time"); `stances`: all its stances; `implied`: words that the amounts imply ("size").
    `weights`: 1 for light words, 2 for `full` ones; `weight`: their sum, an amount counting 2. `leads`: by statement,
    what opens its clauses (after, when, …); `ordered`: all of them. `plain`: every clause affirms; `tangled`: one has
    several negations. `negations`, `antonyms`: as written; `turns`: both, by meaning, sorted, with negative adjectives
    ("slow disks"), so that "the disks are slow" has as many.
    """

    folded: str
    marks: tuple[object, ...]
    places: Mapping[str, Place]
    stances: Mapping[str, frozenset[Stance]]
    weights: Mapping[str, int]
    weight: int
    words: frozenset[str]
    full: frozenset[str]
    names: frozenset[str]
    amounts: tuple[Quantity, ...]
    dimensions: frozenset[str]
    implied: frozenset[str]
    leads: Mapping[int, frozenset[str]]
    ordered: frozenset[str]
    negations: tuple[str, ...]
    antonyms: tuple[str, ...]
    turns: tuple[str, ...]
    tangled: bool
    passive: bool
    plain: bool
    statements: int


def normal_form(text: str) -> NormalForm:
    """Return the cached normal form of any text. Linear in the text's length."""
    return _kept(text) if len(text) <= LONG else _normal_form(text)


def _normal_form(text: str) -> NormalForm:
    folded = fold(text)
    clauses = read(phrased(text))
    marks = tuple(mark for clause in clauses for mark in clause.marks)
    places: dict[str, Place] = {}
    stances: dict[str, frozenset[Stance]] = {}
    weights: dict[str, int] = {}
    names: set[str] = set()
    dimensions: set[str] = set()
    turns: list[str] = []
    leads: dict[int, frozenset[str]] = {}
    for number, clause in enumerate(clauses):
        stance, statement, clause_lead, runs_on = clause.stance, clause.statement, clause.lead, clause.runs_on
        only = _ALONE[stance]
        led = leads.setdefault(statement, frozenset())
        if clause_lead:
            leads[statement] = led | {clause_lead}
        for at, (text_of, weight, preposition, is_name) in enumerate(clause.words):
            if is_name:
                names.add(text_of)
            if weight == EMPTY:
                continue
            unclear = runs_on and at
            found_under = _EITHER if unclear and clause_lead == "without" else only
            if text_of in places:
                stances[text_of] |= found_under
            else:
                lead = UNCLEAR if unclear else clause_lead
                places[text_of] = Place(number, statement, at, preposition, lead, stance)
                stances[text_of] = found_under
            weights[text_of] = weight
        for amount in clause.amounts:
            dimension = f"#{amount.dimension}"
            if dimension not in places:
                places[dimension] = Place(number, statement, -1, "", clause_lead, stance)
            stances[dimension] = stances.get(dimension, only) | only
            dimensions.add(dimension)
        if clause.negations or clause.turned_by:
            turns += clause.turns
    return NormalForm(
        folded=folded,
        marks=marks or tuple(token.text for token in tokens(folded) if token not in (COMMA, STOP)),
        places=places,
        stances=stances,
        weights=weights,
        weight=sum(weights.values()) + FULL * sum(len(clause.amounts) for clause in clauses),
        words=frozenset(weights),
        full=frozenset(word for word, weight in weights.items() if weight == FULL),
        dimensions=frozenset(dimensions),
        implied=frozenset(word for dimension in dimensions for word in IMPLIED.get(dimension[1:], ())),
        names=frozenset(names),
        amounts=tuple(amount for clause in clauses for amount in clause.amounts),
        turns=tuple(sorted((*turns, *_described(weights)))),
        leads=leads,
        ordered=frozenset().union(*leads.values()),
        negations=tuple(mark for clause in clauses for mark in clause.marks if mark == "not"),
        antonyms=tuple(word for clause in clauses for word in clause.turned_by),
        passive=any(clause.passive for clause in clauses),
        plain=all(clause.stance is Stance.IS for clause in clauses),
        statements=len({clause.statement for clause in clauses}),
        tangled=any(clause.tangled for clause in clauses),
    )


def _described(found: Iterable[str]) -> list[str]:
    return [word.removeprefix("not ") for word in found if word.startswith("not ")]


_kept = lru_cache(maxsize=8_192)(_normal_form)
