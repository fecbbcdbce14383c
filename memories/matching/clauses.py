"""Group tokens into clauses with their words, lead and stance: equal for two wordings of a fact, not a grammar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .amounts import COUNTED_BY_AN_ARTICLE, amount_at, weekly
from .clause_types import Clause, Word
from .content_words import VERB_STEMS
from .function_words import (
    ARTICLES,
    BE,
    FINITE,
    FUNCTION_WORDS,
    HEDGES,
    LEADS,
    NECESSITY,
    NEGATIONS,
    OBLIGATION,
    OPTION,
    PARTICIPLES,
    POSSIBILITY,
    PREPOSITIONS,
    REASONS,
    STATES,
)
from .quantities import BARE, Quantity, bounded
from .synonyms import EMPTY, FULL, Meaning, meaning, stem
from .tokens import A_COMMA, A_NAME, A_NUMBER, A_STOP, A_WORD, Token
from .units import BOUNDS, NUMBER_WORDS, STARTS_AMOUNT, UNITS
from .vocabulary import DENYING_VERBS, EVENT_NOUNS, LABEL_NOUNS, RANKED, VALUE_NOUNS, VERSIONED, WEEKDAYS

_NECESSITY = frozenset(map(stem, NECESSITY))
_AFTER_NO_VERB = ARTICLES | PREPOSITIONS - {"to"}
_RANKED = frozenset(map(stem, RANKED))
_LABELS, _VALUES = frozenset(map(stem, LABEL_NOUNS)), frozenset(map(stem, VALUE_NOUNS))
_EVENTS = {"running": "run", "stopped": "stop"}  # unless a form of be makes them states
_VERSIONED = frozenset(meaning(word).name for word in VERSIONED)
_DENYING = frozenset(map(stem, DENYING_VERBS))
_DAYS = frozenset(map(stem, WEEKDAYS)) | {"night"}
_MEANS = ("with", "via", "through")
_AN_END = (A_COMMA, A_STOP)
_COUNTS_LITTLE = ("a", "an")


_DOING = (
    HEDGES | BOUNDS.keys() | LEADS.keys() | REASONS | NEGATIONS | OBLIGATION | OPTION | POSSIBILITY | STATES
    | PREPOSITIONS | frozenset(("and", "or", "only"))
)  # fmt: skip
_SMALL = FUNCTION_WORDS | _DOING
"""Words with a function; all others but those of necessity, most of a text, are content."""

_MERE = frozenset(word for word in FUNCTION_WORDS - _DOING if stem(word) not in _NECESSITY)
"""Function words without another role: half of all words."""


def read(tokens: Sequence[Token]) -> list[Clause]:
    """Return the clauses of a text in order; each has content."""
    return _Reader(tokens).read()


class _Reader:
    """Walks over the tokens once; `clause` is the current one."""

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
        self.last = ""  # the stem of the last content word

    def read(self) -> list[Clause]:
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            sort = token.sort
            if sort is A_WORD and token.text not in STARTS_AMOUNT:
                self._word(token.text)
            elif sort is A_STOP:
                self._next_clause(new_statement=True)
            elif sort is A_COMMA:
                self._next_clause()
            elif sort is A_NAME:
                self._add(token.text, is_name=True)
            elif not self._amount(token):
                self._word(token.text)
            self.at += 1
        self._next_clause(new_statement=True)
        return self.read_clauses

    def _next_clause(self, lead: str = "", *, new_statement: bool = False) -> None:
        """Close the clause. A negation or a modal without content is carried over: "must, after X, …"."""
        old = self.clause
        if old.says_something:
            old.runs_on = bool(old.lead) and self.main is None and new_statement and len(old.words) > 2
            self._close(old)
            self.main = self.main or (None if old.lead else old)
            self.clause = Clause(old.statement + new_statement, lead)
        elif new_statement:
            self.clause = Clause(old.statement + 1, lead)
        else:
            old.lead = lead or old.lead
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
        """after X, before X, unless X, without X. "Not before X", "fails without X" oblige instead of denying."""
        main = self.clause if self.main is None or not self.clause.lead else self.main
        obliged = main.denies_once and not (kind == "before" and main.turned_by)  # "fails before" denies nothing
        if kind in ("before", "unless", "without", "independent") and obliged:
            main.negations, main.turned_by, main.modal = 0, [], "must"
            kind = "after" if kind == "before" else "when"
        self._next_clause(kind)
        if kind == "without":
            self.clause.negations += 1
        elif kind in ("independent", "unless"):
            self.clause.modal = "optional" if kind == "independent" else "must"

    def _conjunction(self, word: str) -> None:
        """Split at `and` where both sides have a verb; "must A or B" is "B unless A"."""
        if word == "and":
            if self.clause.finite and any(text in FINITE for text in self._ahead("and")):
                self._next_clause()
        elif self.clause.modal in ("must", "need") and not self.clause.lead and self.clause.says_something:
            ahead = list(self._ahead("or"))
            if sum(text not in FUNCTION_WORDS for text in ahead) > 1 or (ahead and ahead[0] in ARTICLES):
                self.clause.lead = "unless"
                self._next_clause()

    def _ahead(self, until: str) -> Iterator[str]:
        """Yield the words from here to the end of the clause, or to the next `until`."""
        for token in self.tokens[self.at + 1 : self.at + 12]:
            if token.sort in _AN_END or token.text == until:
                return
            yield token.text

    def _amount(self, token: Token) -> bool:
        """Read the amount or label that starts here; False when none does."""
        if token.sort is not A_NUMBER and token.text not in STARTS_AMOUNT:
            return False
        following = self._following()
        if token.text in _COUNTS_LITTLE and (following is None or following.text not in COUNTED_BY_AN_ARTICLE):
            return False
        before = self._before()
        has_unit = following is not None and following.text in UNITS
        number = f"{NUMBER_WORDS[token.text]:g}" if token.text in NUMBER_WORDS else token.text
        if stem(before) in _LABELS and not has_unit and number[:1].isdigit():
            self._add(number, is_name=True)
            return True
        found = amount_at(self.tokens, self.at, self._counted)
        if found is None:
            return False
        amount, after = found
        if self._identifies(amount, before, after):
            self._add(amount.written if amount.dimension == "clock" else number, is_name=True)
            self.at = self.at if token.text in BOUNDS else after - 1
            return True
        self._add_amount(amount)
        self.at = after - 1
        return True

    def _add_amount(self, amount: Quantity) -> None:
        if self.just_needed and amount.dimension == "time":
            self.clause.modal = ""  # "needs 2 minutes" takes them; "needs 2 GB" demands them
        if not amount.anchor:
            full = next((word.text for word in reversed(self.clause.words) if word.weight == FULL), "")
            amount = replace(amount, anchor=full) if full else amount
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
            self.clause.amounts[-1] = bounded(self.clause.amounts[-1], word)
            self.clause.marks.append(self.clause.amounts[-1].readings)

    def _identifies(self, amount: Quantity, before: str, after: int) -> bool:
        """Whether a number tells a thing from its like ("probe 5 waits", "the 02:00 job"), and is no value of it."""
        ahead, beyond = (self._text_at(at) for at in (after, after + 1))
        goes_on = bool(ahead) and ahead not in FUNCTION_WORDS
        if amount.dimension == BARE:
            return before == "number" or (goes_on and stem(before) in _RANKED) or self._labels(before)
        counted = amount.dimension == f"count {self._counted(ahead)}"
        if not goes_on or not (counted or amount.dimension == "clock"):
            return False
        single = not ahead.endswith("s")
        if before and before not in _SMALL:  # "camera 4 records", "PR 512 broke", but "allow 3 restarts"
            acts = stem(before) in VERB_STEMS and not before.endswith("ion")
            if (acts or before.endswith(("s", "ed", "ing"))) and before not in EVENT_NOUNS:
                return False
            inside = self.at > 1 and self._text_at(self.at - 2) in _AFTER_NO_VERB and bool(beyond)
            return counted and (single or inside or stem(ahead) in VERB_STEMS or meaning(before).name in _VERSIONED)
        if self.tokens[self.at].sort is not A_NUMBER or (before and before not in ARTICLES):
            return False
        ends = not beyond or beyond in FUNCTION_WORDS or stem(beyond) in VERB_STEMS  # not "the 3 node cluster"
        number = amount.readings[0].low
        return ends and number != 1 if single else 1990 <= number < 2100

    def _text_at(self, at: int) -> str:
        token = self.tokens[at] if at < len(self.tokens) else None
        return token.text if token and token.sort in (A_WORD, A_NAME) else ""

    def _labels(self, before: str) -> bool:
        """Whether a bare number after this word is its label ("PHP 8", "on 8080") and no value ("MTU 1380", "is 5")."""
        if before in ("on", "a", "an", "the") or any(word.text in _VERSIONED for word in self.clause.words):
            return True
        return bool(before and before not in FUNCTION_WORDS and stem(before) not in _VALUES)

    def _counted(self, word: str) -> str:
        """Return the name of a counted thing, or '': in "MTU to 1280 fixed the stalls" 1280 is a value."""
        return "" if self.last in _VALUES or word in FUNCTION_WORDS else meaning(word).name

    def _before(self) -> str:
        """Return the word or name right before, '' after a number or a break."""
        token = self.tokens[self.at - 1] if self.at else None
        return token.text if token and token.sort in (A_WORD, A_NAME) else ""

    def _following(self) -> Token | None:
        return self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None

    def _word(self, word: str) -> None:
        if word in _MERE:
            self._small(word)
        elif word not in _SMALL and stem(word) not in _NECESSITY:
            self._add(_EVENTS.get(word, word))
        elif word in HEDGES or (word == "only" and self._number_follows()):
            self.hedged = word in HEDGES
        elif word in BOUNDS and word not in PREPOSITIONS:
            self._bound(word)  # "2 GB at least"
        elif word in LEADS:
            self._lead(LEADS[word])
        elif word in REASONS:
            if word == "otherwise" and self.main:
                self.main.lead = "unless"
            self._next_clause(new_statement=True)
            self.clause.marks.append(word)
        elif word in ("and", "or"):
            self._conjunction(word)
        elif not (self._negation(word) or self._modal(word)):
            self._plain(word)

    def _negation(self, word: str) -> bool:
        if word not in NEGATIONS:
            return False
        clause = self.clause
        clause.marks.append("not")
        if self.just_needed and (word == "no" or self._before() == "need"):
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
            self._add("enable" if word == "on" else word)
        elif word in PREPOSITIONS:
            if word != "of" or self._before() not in PREPOSITIONS:  # "inside of"
                self.preposition = word
            self.clause.marks.append(word)
        elif word in FUNCTION_WORDS:
            self._small(word)
        else:
            self._add(_EVENTS.get(word, word))

    def _says_how(self, word: str) -> bool:
        """Whether a state word is one: "is on" at the end of its phrase; "is on the pool" is a place."""
        following = self._following()
        if word != "on" or following is None or following.sort in _AN_END:
            return True
        return following.text in PREPOSITIONS or following.text in LEADS or following.text in ("and", "again")

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
        name = word if is_name and meant.weight == FULL and meant.sign > 0 else meant.name
        weight = meant.weight
        if meant.sign < 0:
            if self.preposition in _MEANS and stem(word) in _DENYING and self._is_led():
                name, weight = word, FULL  # "removed with unlock" names a tool
                meant = Meaning(name, 1, weight)
            elif self._describes_next(word):
                name, weight = f"not {name}", FULL  # "disabled users" are other users
            else:
                self.clause.turned_by.append(word)
                self.clause.plainly_negated = self.just_negated
        self.last = stem(word)
        self.clause.words.append(Word(name, weight, self.preposition, is_name))
        if weight != EMPTY or meant.sign < 0:
            self.clause.marks.append(name if meant.sign > 0 else f"-{name}")
        if self.after_be and (word.endswith("ed") or word in PARTICIPLES):
            self.clause.passive = True
        if (day := word.removesuffix("s")) in WEEKDAYS:
            self._add_amount(Quantity(f"every {day}", weekly()))
        self._forget()

    def _describes_next(self, word: str) -> bool:
        """Whether a negative adjective only specifies a noun: the first word of its clause, right before the noun."""
        said = [word.text for word in self.clause.words if not self.clause.amounts or word.text not in _DAYS]
        if said or self.after_be or (stem(word) in _DENYING and not word.endswith("ed")):
            return False
        following = self._following()
        if following is None or following.sort is not A_WORD:
            return following is not None and following.sort is A_NAME
        return following.text not in FUNCTION_WORDS and following.text not in STARTS_AMOUNT

    def _is_led(self) -> bool:
        """Whether the preposition still governs the word: "with zfs unlock", not "with local disks it fails"."""
        return any(token.text in _MEANS for token in self.tokens[max(0, self.at - 2) : self.at])

    def _number_follows(self) -> bool:
        following = self._following()
        return following is not None and (following.sort is A_NUMBER or following.text in NUMBER_WORDS)

    def _forget(self) -> None:
        """Reset what holds only until the next content word."""
        self.after_be = self.hedged = self.just_negated = self.just_needed = False
