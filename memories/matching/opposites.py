"""Negation, antonyms and opposite modals: what one text affirms and the other denies.

By now "disabled", "not enabled" and "no longer enabled" are one word under one stance, so that a clash is a
shared word under two stances. Judges nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .clauses import Stance
from .normalise import NormalForm

_CLASHES = {
    frozenset(pair)
    for pair in (
        (Stance.IS, Stance.NOT),
        (Stance.IS, Stance.MUST_NOT),
        (Stance.CAN, Stance.NOT),
        (Stance.CAN, Stance.MUST_NOT),
        (Stance.MUST, Stance.NOT),
        (Stance.MUST, Stance.MUST_NOT),
        (Stance.MUST, Stance.OPTIONAL),
    )
}
_ALIKE = {frozenset(pair) for pair in ((Stance.IS, Stance.CAN), (Stance.NOT, Stance.MUST_NOT))}
_ALIKE_IN_A_PROCEDURE = frozenset((Stance.IS, Stance.MUST))
_PROCEDURE = frozenset(("after", "before", "unless"))
"""A step in an order is a rule already: "restart workers after a deploy" obliges without a "must"."""

DENIALS = frozenset((Stance.NOT, Stance.MUST_NOT, Stance.OPTIONAL))


@dataclass(frozen=True, slots=True)
class Turn:
    """A shared word with its stance in either text."""

    word: str
    known: Stance
    new: Stance


@dataclass(frozen=True, slots=True)
class Opposites:
    """`clashes` cannot both be true; `doubts` may or may not agree ("must" and "can")."""

    clashes: tuple[Turn, ...] = ()
    doubts: tuple[Turn, ...] = ()

    @property
    def new_denies(self) -> bool:
        """Which side of the clash says no. "Must" against "must not" has the no on the side of "must not"."""
        return self.clashes[0].new in DENIALS

    def clauses(self, form: NormalForm) -> frozenset[int]:
        """The clauses of `form` in which the clash is, those with the most of it."""
        counts = Counter(form.places[turn.word].clause for turn in self.clashes)
        most = max(counts.values(), default=0)
        return frozenset(clause for clause, count in counts.items() if count == most)

    def in_one_clause(self, known: NormalForm, new: NormalForm) -> bool:
        """False when the texts turn round in two clauses each: "works when on", "fails when off"."""
        return len(self.clauses(known)) < 2 or len(self.clauses(new)) < 2


def opposites(known: NormalForm, new: NormalForm, shared: frozenset[str]) -> Opposites:
    """The shared words whose stances differ, in the order of the known text."""
    if known.plain and new.plain:
        return Opposites()
    procedure = bool(known.leads & _PROCEDURE and new.leads & _PROCEDURE)
    clashes, doubts = [], []
    for word in shared:
        one, other = known.stances[word], new.stances[word]
        if one & other:
            continue
        turn = Turn(word, known.places[word].stance, new.places[word].stance)
        pair = frozenset((turn.known, turn.new))
        if pair in _CLASHES:
            clashes.append(turn)
        elif pair not in _ALIKE and not (procedure and pair == _ALIKE_IN_A_PROCEDURE):
            doubts.append(turn)
    places = known.places
    clashes.sort(key=lambda turn: (places[turn.word].clause, places[turn.word].at))
    return Opposites(tuple(clashes), tuple(doubts))
