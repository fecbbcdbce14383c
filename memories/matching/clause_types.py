"""Data types of a clause: a few words with one stance."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from .quantities import Quantity
from .synonyms import meaning

FAILURE = meaning("fail").name
"""The meaning that "fails" denies."""


class Stance(Enum):
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
    """A few words with one stance. `lead` opens them (after, when, …); texts with equal `marks` are the same text."""

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
    runs_on: bool = False  # "after a bulk delete run vacuum": the end of the lead's part is unclear

    @property
    def says_something(self) -> bool:
        return bool(self.words or self.amounts)

    @property
    def turns(self) -> list[str]:
        """All that reverses its meaning."""
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
        """Whether all of it is denied by one plain word: "does not start", "fails"."""
        return self.modal != "optional" and self.turns in (["not"], [FAILURE])

    @property
    def tangled(self) -> bool:
        """Whether more than one word reverses its meaning, other than a plain "not disabled"."""
        turns = self.negations + len(self.turned_by) + (self.modal == "optional" and self.negations > 0)
        return turns > 2 or (turns == 2 and not self.plainly_negated)
