"""Find negation, antonyms and opposite modals between two normal forms: shared words with two stances."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .clause_types import Stance
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
_DONE_WITHOUT = frozenset((Stance.NOT, Stance.OPTIONAL))
"""What works without a thing does not need it."""

_ALIKE_IN_A_PROCEDURE = frozenset((Stance.IS, Stance.MUST))
_PROCEDURE = frozenset(("after", "before", "unless", "when"))
"""A step in an order is a rule: "restart workers after a deploy" obliges without a "must"."""

_CONDITIONS = _PROCEDURE | {"except"}
"""A condition and a statement do not clash."""

_DENIALS = frozenset((Stance.NOT, Stance.MUST_NOT, Stance.OPTIONAL))


@dataclass(frozen=True, slots=True)
class Turn:
    word: str
    known: Stance
    new: Stance


@dataclass(frozen=True, slots=True)
class Opposites:
    """`clashes` cannot both be true; `doubts` may or may not agree ("must" and "can")."""

    clashes: tuple[Turn, ...] = ()
    doubts: tuple[Turn, ...] = ()

    @property
    def known_denies(self) -> bool:
        """Whether the known text is the one that denies."""
        return bool(self.clashes) and self.clashes[0].new not in _DENIALS

    @property
    def new_denies(self) -> bool:
        """Whether the new text is the one that denies."""
        return bool(self.clashes) and self.clashes[0].new in _DENIALS

    @property
    def about_need(self) -> bool:
        """Whether the clash is about need."""
        return any(Stance.OPTIONAL in (turn.known, turn.new) for turn in self.clashes)

    def clauses(self, form: NormalForm) -> frozenset[int]:
        """Return the clauses of `form` with the most clashes."""
        counts = Counter(form.places[turn.word].clause for turn in self.clashes)
        most = max(counts.values(), default=0)
        return frozenset(clause for clause, count in counts.items() if count == most)

    def in_one_clause(self, known: NormalForm, new: NormalForm) -> bool:
        """False when the texts clash in two clauses each: "works when on", "fails when off"."""
        return any(len({form.places[turn.word].clause for turn in self.clashes}) < 2 for form in (known, new))


def opposites(known: NormalForm, new: NormalForm, shared: frozenset[str]) -> Opposites:
    """Find shared words whose stances differ, in the order of the known text.

    With the same negations in both, only the clauses were split differently: a doubt, no clash.
    """
    if known.plain and new.plain:
        return Opposites()
    procedure = bool(known.ordered & _PROCEDURE and new.ordered & _PROCEDURE)
    turned_alike = known.turns == new.turns
    clashes, doubts = [], []
    for word in shared:
        one, other = known.stances[word], new.stances[word]
        if one & other:
            continue
        turn = Turn(word, known.places[word].stance, new.places[word].stance)
        pair = frozenset((turn.known, turn.new))
        same_part = (known.places[word].lead in _CONDITIONS) == (new.places[word].lead in _CONDITIONS)
        alike = pair in _ALIKE or (procedure and pair == _ALIKE_IN_A_PROCEDURE)
        if pair == _DONE_WITHOUT and "without" in (known.places[word].lead, new.places[word].lead):
            alike = True
        if pair in _CLASHES and same_part and (not turned_alike or Stance.OPTIONAL in pair):
            clashes.append(turn)
        elif not alike:
            doubts.append(turn)
    places = known.places
    for turns in (clashes, doubts):
        turns.sort(key=lambda turn: (places[turn.word].clause, places[turn.word].at))
    return Opposites(tuple(clashes), tuple(doubts))
