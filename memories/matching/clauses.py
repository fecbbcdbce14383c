"""Tokens to clauses: which words belong together, what opens them, and whether they affirm, deny or oblige.

A light-footed reading, no grammar: it need only be the same for two ways of saying one thing, and different
for two things. Knows one text at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from . import quantities
from .phrases import rewritten
from .quantities import BARE, Quantity
from .tokens import Sort, Token
from .units import BOUNDS, DAY, NUMBER_WORDS, PERIODS, TIMES, UNITS
from .vocabulary import (
    ARTICLES, BE, EMPTY_WEIGHT, FINITE, FULL_WEIGHT, FUNCTION_WORDS, HEDGES, LABEL_NOUNS, LEADS,
    NECESSITY, NEGATIONS, OBLIGATION, OPTION, POSSIBILITY, PREPOSITIONS, REASONS, STATES, VALUE_NOUNS, WEEKDAYS,
    meaning, stem,
)  # fmt: skip


class Stance(Enum):
    """What a clause does with what it says."""

    IS = "is"
    NOT = "is not"
    MUST = "must"
    MUST_NOT = "must not"
    CAN = "can"
    OPTIONAL = "need not"


@dataclass(frozen=True, slots=True)
class Word:
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
    runs_on: bool = False  # "after a bulk delete run vacuum": where the lead's part ends is not to be seen
    is_reason: bool = False

    @property
    def says_something(self) -> bool:
        return bool(self.words or self.amounts)

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
    def tangled(self) -> bool:
        """More than one turn of meaning, other than a plain "not disabled"."""
        turns = self.negations + len(self.turned_by)
        return turns > 2 or (turns == 2 and not self.plainly_negated)


_STARTS_AMOUNT = (
    frozenset(NUMBER_WORDS) | frozenset(PERIODS) | frozenset(TIMES) | frozenset(BOUNDS)
    | frozenset("every each per a an one half".split())
)  # fmt: skip
_NECESSITY = frozenset(map(stem, NECESSITY))
_LABELS, _VALUES = frozenset(map(stem, LABEL_NOUNS)), frozenset(map(stem, VALUE_NOUNS))
_EVENTS = {"running": "run", "stopped": "stop"}  # unless a form of be makes them states
_AN_END = (Sort.COMMA, Sort.STOP)


def read(tokens: Sequence[Token]) -> list[Clause]:
    """The clauses of a text, in order; each says something."""
    return _Reader(rewritten(tokens)).read()


class _Reader:
    """Walks over the tokens once; `clause` is the one being read."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.read_clauses: list[Clause] = []
        self.clause = Clause()
        self.main: Clause | None = None  # the first clause of this statement that no lead opens
        self.preposition = ""
        self.hedged = False
        self.after_be = False
        self.just_negated = False
        self.just_needed = False
        self.last = ""  # the stem of the last word that says something

    def read(self) -> list[Clause]:
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.sort is Sort.STOP:
                self._next_clause(new_statement=True)
            elif token.sort is Sort.COMMA:
                self._next_clause()
            elif token.sort is Sort.NAME:
                self._add(token.text, is_name=True)
            elif not self._amount(token):
                self._word(token.text)
            self.at += 1
        self._next_clause(new_statement=True)
        return self.read_clauses

    # clauses

    def _next_clause(self, lead: str = "", *, new_statement: bool = False) -> None:
        """Closes the clause. A negation or a modal that has nothing to govern yet moves on: "must, after X, …"."""
        old = self.clause
        self.clause = Clause(old.statement + new_statement, lead, is_reason=old.is_reason and not new_statement)
        if old.says_something:
            old.runs_on = bool(old.lead) and self.main is None and new_statement and len(old.words) > 2
            self._close(old)
            self.main = self.main or (None if old.lead else old)
        elif not new_statement:
            self.clause = replace(old, lead=lead or old.lead)
        if new_statement:
            self.main = None
        if lead:
            self.clause.marks.append(f"{lead}:")
        self.preposition, self.last = "", ""
        self._forget()

    def _close(self, clause: Clause) -> None:
        if any(word.text == "interval" for word in clause.words):
            clause.words = [word for word in clause.words if word.text != "interval"]
            clause.amounts = [amount.as_period() for amount in clause.amounts]
        self.read_clauses.append(clause)

    def _lead(self, kind: str) -> None:
        """after X, before X, unless X, without X. "Not before X" and "not without X" oblige instead of denying."""
        main = self.main if self.clause.lead or not self.clause.negations else self.clause
        denies_once = main is not None and main.negations == 1 and not main.turned_by and main.modal != "optional"
        if kind in ("before", "unless", "without") and main is not None and denies_once:
            main.negations, main.modal = 0, "must"
            kind = "after" if kind == "before" else "when"
        self._next_clause(kind)
        if kind == "without":
            self.clause.negations += 1
        elif kind in ("independent", "unless"):
            self.clause.modal = "optional" if kind == "independent" else "must"

    def _conjunction(self, word: str) -> None:
        """`and` parts clauses that each have a verb; "must A or B" is "B unless A"."""
        if word == "and":
            if self.clause.finite and any(text in FINITE for text in self._ahead("and")):
                self._next_clause()
        elif self.clause.modal in ("must", "need") and not self.clause.lead and self.clause.says_something:
            if sum(text not in FUNCTION_WORDS for text in self._ahead("or")) > 1:
                self.clause.lead = "unless"
                self._next_clause()

    def _ahead(self, until: str) -> Iterator[str]:
        """The words from here to the end of the clause, or to the next `until`."""
        for token in self.tokens[self.at + 1 : self.at + 12]:
            if token.sort in _AN_END or token.text == until:
                return
            yield token.text

    # amounts and labels

    def _amount(self, token: Token) -> bool:
        """Reads the amount or label that starts here; False when none does."""
        if token.sort is not Sort.NUMBER and token.text not in _STARTS_AMOUNT:
            return False
        before = self._before()
        labelled = token.sort is Sort.NUMBER and stem(before) in _LABELS and self._text(self.at + 1) not in UNITS
        found = None if labelled else quantities.take(self.tokens, self.at, self._counted)
        if labelled or (found and found[0].dimension == BARE and self._labels(before)):
            self._add(token.text, is_name=True)
            return True
        if found is None:
            return False
        amount, after = found
        self._add_amount(amount)
        self.at = after - 1
        return True

    def _add_amount(self, amount: Quantity) -> None:
        if self.just_needed and amount.dimension == "time":
            self.clause.modal = ""  # "needs 2 minutes" takes them; "needs 2 GB" demands them
        if not amount.anchor:
            full = (word.text for word in reversed(self.clause.words) if word.weight == FULL_WEIGHT)
            amount = replace(amount, anchor=next(full, ""))
        if self.hedged:
            amount = replace(amount, hedged=True)
        self._forget()
        if all(amount.readings != other.readings for other in self.clause.amounts[-4:]):
            self.clause.amounts.append(amount)
            self.clause.marks.append(amount.readings)
        if "night" in amount.written:
            self._add("night")

    def _bound(self, word: str) -> None:
        if self.clause.amounts:
            bounded = quantities.bounded(self.clause.amounts[-1], word)
            self.clause.amounts[-1] = bounded
            self.clause.marks.append(bounded.readings)

    def _labels(self, before: str) -> bool:
        """Whether a bare number after this word is its label ("PHP 8", "on 8080") and no value ("MTU 1380", "is 5")."""
        if before in ("on", "a", "an", "the"):
            return True
        return bool(before and before not in FUNCTION_WORDS and stem(before) not in _VALUES)

    def _counted(self, word: str) -> str:
        """The name of a counted thing, '' when the word is none: in "MTU to 1280 fixed the stalls" 1280 is a value."""
        return "" if self.last in _VALUES or word in FUNCTION_WORDS else meaning(word).name

    def _before(self) -> str:
        """The word or name right before, '' after a number or a break."""
        token = self.tokens[self.at - 1] if self.at else None
        return token.text if token and token.sort in (Sort.WORD, Sort.NAME) else ""

    def _text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""

    # words

    def _word(self, word: str) -> None:
        if word in HEDGES:
            self.hedged = True
        elif word in BOUNDS and word not in PREPOSITIONS:
            self._bound(word)  # "2 GB at least"
        elif word in LEADS:
            self._lead(LEADS[word])
        elif word in REASONS:
            if word == "otherwise" and self.main:
                self.main.lead = "unless"
            self._next_clause(new_statement=True)
            self.clause.marks.append(word)
            self.clause.is_reason = word in ("because", "since")
        elif word in ("and", "or"):
            self._conjunction(word)
        elif not (self._negation(word) or self._modal(word)):
            self._plain(word)

    def _negation(self, word: str) -> bool:
        if word not in NEGATIONS:
            return False
        clause = self.clause
        clause.marks.append("not")
        if (
            clause.modal == "need"
            and self._before().startswith(("need", "requir"))
            and (word == "no" or self._before() == "need")
        ):
            clause.modal = "optional"  # "requires no restart", "need not be restarted"
        else:
            clause.negations += 1
            self.just_negated = True
        return True

    def _modal(self, word: str) -> bool:
        clause = self.clause
        if word in OBLIGATION:
            modal = "must"
        elif stem(word) in _NECESSITY:
            modal = "need"
            if clause.negations:  # "no restart is needed"
                modal, clause.negations = "optional", clause.negations - 1
        elif word in OPTION:
            modal = "optional"
            if clause.negations:
                modal, clause.negations = "must", clause.negations - 1
        elif word in POSSIBILITY:
            modal = clause.modal or "can"
        else:
            return False
        clause.modal = modal
        self.just_needed = modal == "need"
        clause.finite, self.preposition = True, ""
        clause.marks.append("must" if modal == "need" else modal)
        return True

    def _plain(self, word: str) -> None:
        if word in STATES and self.after_be and self._says_how(word):
            self._add("enable" if word == "on" else "stopped" if word == "stopped" else "up")
        elif word in PREPOSITIONS:
            self.preposition = word
            self.clause.marks.append(word)
        elif word in FUNCTION_WORDS:
            self._small(word)
        else:
            self._add(_EVENTS.get(word, word))

    def _says_how(self, word: str) -> bool:
        """ "is on" at the end of its phrase; "is on the pool" says where."""
        following = self._text(self.at + 1)
        at_end = self.at + 1 >= len(self.tokens) or self.tokens[self.at + 1].sort in _AN_END
        return (
            word != "on" or at_end or following in PREPOSITIONS or following in LEADS or following in ("and", "again")
        )

    def _small(self, word: str) -> None:
        if word in FINITE:
            self.clause.finite, self.preposition = True, ""
        if word in BE:
            self.after_be = True
        if word in ARTICLES and self._before() not in FUNCTION_WORDS and not self._before().endswith("ing"):
            self.preposition = ""
            if self.clause.lead and self.main is None and self.clause.says_something:
                self._next_clause()  # "after each deployment | the workers need a restart"

    def _add(self, word: str, *, is_name: bool = False) -> None:
        meant = meaning(word)
        if meant.sign < 0:
            self.clause.turned_by.append(word)
            self.clause.plainly_negated = self.just_negated
        self.last = stem(word)
        name = word if is_name and meant.weight == FULL_WEIGHT and meant.sign > 0 else meant.name
        self.clause.words.append(Word(name, meant.weight, self.preposition, is_name))
        if meant.weight != EMPTY_WEIGHT:
            self.clause.marks.append(name if meant.sign > 0 else f"-{name}")
        if (day := word.removesuffix("s")) in WEEKDAYS:
            self._add_amount(Quantity(f"every {day}", (quantities.Reading(quantities.PERIOD, 7 * DAY, 7 * DAY),)))
        self._forget()

    def _forget(self) -> None:
        """What holds only until the next word that says something."""
        self.after_be = self.hedged = self.just_negated = self.just_needed = False
