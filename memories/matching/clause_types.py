"""Data types of a clause: a few words under one stance. `clauses` builds them, the signals compare them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from .quantities import Quantity
from .synonyms import meaning

FAILURE = meaning("fail").name
"""The question "fails" answers with no."""


class Stance(Enum):
    """What a clause does with what it says."""

    IS = "is"
    NOT = "is not"
    MUST = "must"
    MUST_NOT = "must not"
    CAN = "can"
    OPTIONAL = "need not"


class Word(NamedTuple):
    """A word of a clause, by its meaning's name. `preposition` is the one that leads it, '' for none."""

    text: str
    weight: int
    preposition: str = ""
    is_name: bool = False


@dataclass(slots=True)
class Clause:
    """A few words with one stance. `lead` is the kind of word that opens them: after, before, when, unless, …

    `marks` is all that was read, in order: texts with equal marks are the same text.
    """

    statement: int = 0
    lead: str = ""
    words: list[Word] = field(default_factory=list)
    amounts: list[Quantity] = field(default_factory=list)
    marks: list[object] = field(default_factory=list)
    negations: int = 0
    turned_by: list[str] = field(default_factory=list)  # words from the "no" side of their question: disabled, manually
    plainly_negated: bool = False  # "not disabled"
    modal: str = ""
    finite: bool = False
    passive: bool = False
    runs_on: bool = False  # "after a bulk delete run vacuum": where the lead's part ends is not to be seen

    @property
    def says_something(self) -> bool:
        return bool(self.words or self.amounts)

    @property
    def turns(self) -> list[str]:
        """All that turns its meaning round, by meaning."""
        return ["not"] * self.negations + [meaning(word).name for word in self.turned_by]

    @property
    def stance(self) -> Stance:
        """Two negatives make a positive; `tangled` says how far to trust that."""
        denied = (self.negations + len(self.turned_by)) % 2 == 1
        match self.modal:
            case "optional":
                return Stance.OPTIONAL
            case "must" | "need":
                return Stance.MUST_NOT if denied else Stance.MUST
            case "can":
                return Stance.NOT if denied else Stance.CAN
        return Stance.NOT if denied else Stance.IS

    @property
    def denies_once(self) -> bool:
        """Whether all it says is denied by one plain word: "does not start", "fails"."""
        return self.modal != "optional" and self.turns in (["not"], [FAILURE])

    @property
    def tangled(self) -> bool:
        """More than one turn of meaning, other than a plain "not disabled"."""
        turns = self.negations + len(self.turned_by) + (self.modal == "optional" and self.negations > 0)
        return turns > 2 or (turns == 2 and not self.plainly_negated)
