"""Compare order and direction: A after B, B after A, independence; from A to B, from B to A."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from .clause_types import Stance
from .function_words import words
from .normalise import UNCLEAR, NormalForm, Place

_ORDERED = frozenset(("after", "before"))
_ROLES: Mapping[str, str] = MappingProxyType(
    {"after": "first", "before": "second", "when": "condition", "unless": "exception", "except": "exception",
     "independent": "free", "without": "free"}
)  # fmt: skip
"""The role of a clause's words by its lead."""

_CLASHES = {
    frozenset(pair) for pair in (("first", "second"), ("first", "free"), ("second", "free"), ("condition", "exception"))
}
_ALIKE = {frozenset(("first", "condition"))}

_DIRECTIONS: Mapping[str, str] = MappingProxyType(
    {"from": "from", "to": "to", "into": "to", "onto": "to", "toward": "to", "towards": "to", "than": "than",
     "behind": "behind", "instead": "instead", "by": "by", "inside": "inside", "within": "inside",
     "outside": "outside", "against": "against", "under": "under", "below": "under", "above": "above"}
)  # fmt: skip
"""Prepositions whose sides cannot be exchanged, by direction. "On", "for", "with", "of" are too loose."""

_NEAR = 12
"""Words of one clause further apart than this are not compared."""

_TURNED: Mapping[str, str] = MappingProxyType({"after:": "before:", "before:": "after:"})

_FLOATING = frozenset(("solely",))
"""Words that can stand anywhere: "only files from the share", "files from the share only"."""

_SAID: Mapping[str, str] = MappingProxyType(
    {"first": "first", "second": "second", "free": "in no order", "condition": "as a condition",
     "exception": "as an exception", "": "without an order"}
)  # fmt: skip

_LIKE_A_LEAD = words("on at upon with since from in during by through via")
"""Prepositions that can stand for "after" or "when": "on deploy", "at boot"."""


@dataclass(frozen=True, slots=True)
class Order:
    """Sentences about what is reversed (`clashes`) or may be (`doubts`). `freed_by_…`: one side is "independently"."""

    clashes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    loose: int = 0  # how many doubts are about words without an order in one text
    freed_by_known: bool = False
    freed_by_new: bool = False


def order(known: NormalForm, new: NormalForm, shared: frozenset[str]) -> Order:
    """Compare sequence in time (after, before, when, unless) and direction (from, to, instead of, by)."""
    sequence = _sequence(known, new, shared) if known.ordered or new.ordered else Order()
    clashes, doubts = list(sequence.clashes), list(sequence.doubts)
    if not clashes and _only_turned(known, new):
        clashes.append("“before” stands where the other says “after”")
    for direction in _exchanged(known, new, shared):
        # The "to" of "to start" gives no direction.
        (doubts if direction == "to" else clashes).append(f"what follows “{direction}” has changed places")
    doubts += _elsewhere(known, new, shared)
    return Order(tuple(clashes), tuple(doubts), sequence.loose, sequence.freed_by_known, sequence.freed_by_new)


def _only_turned(known: NormalForm, new: NormalForm) -> bool:
    """Whether "before" for "after" is the only difference: "started by hand after a boot", "… before a boot"."""
    if len(known.marks) != len(new.marks) or not ("after:" in known.marks or "before:" in known.marks):
        return False
    turned = tuple(_TURNED.get(mark, mark) if isinstance(mark, str) else mark for mark in known.marks)
    return turned != known.marks and turned == new.marks


def _sequence(known: NormalForm, new: NormalForm, shared: frozenset[str]) -> Order:
    """Compare what comes first.

    A word led alike in both texts settles the order of its statement, whichever side pronouns put the others on.
    """
    clashes, doubts, freed, loose = [], [], set(), 0
    shifts = [_Shift.of(word, known, new) for word in sorted(shared)]
    settled = {shift.statements for shift in shifts if shift.is_led_alike}
    if exchanged := _both_ways([shift for shift in shifts if shift.statements in settled]):
        return Order(clashes=exchanged)
    for shift in shifts:
        if not shift.matters or (shift.changes_over and shift.statements in settled):
            continue
        if shift.roles in _CLASHES:
            clashes.append(shift.said)
            freed |= {side for side, role in (("known", shift.one), ("new", shift.other)) if role == "free"}
        elif not shift.stands_in:
            doubts.append(shift.said)
            loose += "" in shift.roles
    return Order(tuple(clashes), tuple(doubts), loose, "known" in freed, "new" in freed)


def _both_ways(shifts: Sequence[_Shift]) -> tuple[str, ...]:
    """Find words that "before" or "after" leads in one text only, while others left it: "A before B", "B before A"."""
    over = [shift for shift in shifts if shift.changes_over and shift.matters and not shift.stands_in]
    went, came = ([s for s in over if s.there.lead in _ORDERED], [s for s in over if s.here.lead in _ORDERED])
    return tuple(f"“{one.word}” and “{other.word}” have changed places" for one, other in zip(went, came, strict=False))


@dataclass(frozen=True, slots=True)
class _Shift:
    """A shared word with its place and its role in the order in either text."""

    word: str
    here: Place
    there: Place
    one: str
    other: str

    @classmethod
    def of(cls, word: str, known: NormalForm, new: NormalForm) -> _Shift:
        here, there = known.places[word], new.places[word]
        return cls(word, here, there, _role(known, here), _role(new, there))

    @property
    def roles(self) -> frozenset[str]:
        return frozenset((self.one, self.other))

    @property
    def statements(self) -> tuple[int, int]:
        return self.here.statement, self.there.statement

    @property
    def matters(self) -> bool:
        """Whether the word is part of an order in one text, and not surely the same part in the other."""
        same = self.one == self.other or self.roles in _ALIKE or UNCLEAR in self.roles or self.is_lacked
        if self.word.startswith("#") and self.changes_over:
            return False  # "5 minutes after X" is "when X, after 5 minutes"
        return not same and bool(self.here.lead or self.there.lead)

    @property
    def is_lacked(self) -> bool:
        """ "Without the key" beside "if the key is missing"."""
        ways = {(place.lead, place.stance is Stance.NOT) for place in (self.here, self.there)}
        return ways == {("without", True), ("when", True)}

    @property
    def is_led_alike(self) -> bool:
        return self.one == self.other and self.here.lead in _ORDERED and self.there.lead in _ORDERED

    @property
    def changes_over(self) -> bool:
        """Whether only one text leads it."""
        return not (self.here.lead and self.there.lead) and "free" not in self.roles

    @property
    def stands_in(self) -> bool:
        """Whether a preposition replaces a lead: "on deploy" for "after a deploy"."""
        return any(not place.lead and place.preposition in _LIKE_A_LEAD for place in (self.here, self.there))

    @property
    def said(self) -> str:
        what = f"“{self.word.removeprefix('#')}”"
        return f"{what} comes {_SAID[self.one]} in the known text, {_SAID[self.other]} in the new one"


def _role(form: NormalForm, place: Place) -> str:
    """Return the role of a word in the order of its statement; '' for none."""
    if place.stance is Stance.OPTIONAL:
        return "free"
    if place.lead:
        return _ROLES.get(place.lead, UNCLEAR)
    ordered = form.leads[place.statement] & _ORDERED
    if len(ordered) == 1:
        return "second" if "after" in ordered else "first"
    return ""


def _exchanged(known: NormalForm, new: NormalForm, shared: frozenset[str]) -> list[str]:
    """Find directions that lead different shared words: "from nas to vault", "from vault to nas"."""
    one, other = _directed(known, shared), _directed(new, shared)
    return sorted(direction for direction in one.keys() & other.keys() if not one[direction] & other[direction])


def _directed(form: NormalForm, shared: frozenset[str]) -> dict[str, set[str]]:
    directed: dict[str, set[str]] = {}
    for word in shared:
        if direction := _DIRECTIONS.get(form.places[word].preposition):
            directed.setdefault(direction, set()).add(word)
    return directed


def _elsewhere(known: NormalForm, new: NormalForm, shared: frozenset[str]) -> list[str]:
    """Find words led by different prepositions: "restored from the vault", "restored to the vault"."""
    found = []
    for word in sorted(shared):
        one, other = known.places[word].preposition, new.places[word].preposition
        if one != other and one in _DIRECTIONS and other in _DIRECTIONS and _DIRECTIONS[one] != _DIRECTIONS[other]:
            found.append(f"“{one} {word}” is not “{other} {word}”")
    return found


def _changed_company(known: NormalForm, new: NormalForm, shared: frozenset[str]) -> str:
    """Find a word that left a phrase whose other words stayed: "users in a locked group", "locked users in a group"."""
    shared = shared - _FLOATING
    led = {word: (known.places[word].preposition, new.places[word].preposition) for word in shared}
    stayed = {here for here, there in led.values() if here == there}
    return min(
        (word for word, (here, there) in led.items() if here != there and {here, there} - {""} <= stayed), default=""
    )


def rearranged(known: NormalForm, new: NormalForm, shared: frozenset[str]) -> str:
    """Say that words may have exchanged their parts ("A proxies B", "B proxies A"); '' when they have not.

    The agent of a passive ("proxied by A") must act in the other text.
    """
    for passive, active in ((known, new), (new, known)):
        agents = {word for word in shared if passive.places[word].preposition == "by"}
        hidden = agents and not any(active.places[word].preposition == "by" for word in agents)
        if hidden and not any(active.places[word].at <= 1 for word in agents):  # "the ML container needs"
            return f"Who acts may not be the same: by {', '.join(sorted(agents))}."
    if word := _changed_company(known, new, shared):
        return f"“{word}” belongs to something else."
    if known.passive != new.passive:
        return ""  # without an agent the passive has one part only: "drops idle clients", "idle clients are dropped"
    shared = shared - _FLOATING
    free = [word for word in shared if not known.places[word].preposition and not new.places[word].preposition]
    for clause in {known.places[word].clause for word in free}:
        here = sorted((w for w in free if known.places[w].clause == clause), key=lambda w: known.places[w].at)
        if turned := _turned_around(here, [(new.places[word].clause, new.places[word].at) for word in here]):
            return f"“{turned[0]}” and “{turned[1]}” have changed places."
    return ""


def _turned_around(found: list[str], places: list[tuple[int, int]]) -> tuple[str, str] | None:
    """Find two words in reverse order, with a third between them in both texts."""
    for left in range(len(found)):
        for right in range(left + 2, min(len(found), left + _NEAR)):
            exchanged = places[left][0] == places[right][0] and places[left] > places[right]
            if exchanged and any(places[right] < places[at] < places[left] for at in range(left + 1, right)):
                return found[left], found[right]
    return None
