"""Order and direction: A after B, B after A, independently of both; from A to B, from B to A.

Reads where the shared words of two normal forms stand. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .clauses import Stance
from .normalise import UNCLEAR, NormalForm, Place

_ORDERED = frozenset(("after", "before"))
_ROLES: Mapping[str, str] = MappingProxyType(
    {"after": "first", "before": "second", "when": "condition", "unless": "exception", "except": "exception",
     "independent": "free", "without": "free"}
)  # fmt: skip
"""What a clause's lead makes of the words in it."""

_CLASHES = {
    frozenset(pair) for pair in (("first", "second"), ("first", "free"), ("second", "free"), ("condition", "exception"))
}
_ALIKE = {frozenset(("first", "condition"))}

_DIRECTIONS: Mapping[str, str] = MappingProxyType(
    {"from": "from", "to": "to", "into": "to", "onto": "to", "toward": "to", "towards": "to", "than": "than",
     "behind": "behind", "instead": "instead", "by": "by", "inside": "inside", "within": "inside",
     "outside": "outside", "against": "against", "under": "under", "below": "under", "above": "above"}
)  # fmt: skip
"""Prepositions whose sides cannot be exchanged, by direction. "On", "for", "with", "of" are too loose to tell."""

_NEAR = 12
"""Words of one clause further apart than this are not looked at."""

_LIKE_A_LEAD = frozenset("on at upon with since from in during by through via".split())
"""Prepositions that can stand for "after" or "when": "on deploy", "at boot"."""


@dataclass(frozen=True, slots=True)
class Order:
    """Sentences about what stands the other way round (`clashes`) or may do so (`doubts`). `free` says that one
    side of a clash is "independently"."""

    clashes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    freed_by_known: bool = False
    freed_by_new: bool = False


def order(known: NormalForm, new: NormalForm, shared: frozenset[str]) -> Order:
    """Compares sequence in time (after, before, when, unless) and direction (from, to, instead of, by)."""
    sequence = _sequence(known, new, shared) if known.leads or new.leads else Order()
    clashes, doubts = list(sequence.clashes), list(sequence.doubts)
    for direction in _exchanged(known, new, shared):
        # the "to" of "to start" gives no direction
        (doubts if direction == "to" else clashes).append(f"what follows “{direction}” has changed places")
    doubts += _elsewhere(known, new, shared)
    return Order(tuple(clashes), tuple(doubts), sequence.freed_by_known, sequence.freed_by_new)


def _sequence(known: NormalForm, new: NormalForm, shared: frozenset[str]) -> Order:
    """What comes first. One word that leads in the same way in both texts settles it: pronouns hide the others."""
    clashes, doubts, freed = [], [], set()
    for word in sorted(shared):
        here, there = known.places[word], new.places[word]
        one, other = _role(known, here), _role(new, there)
        pair = frozenset((one, other))
        if here.lead in _ORDERED and there.lead in _ORDERED and one == other:
            return Order()
        if one == other or pair in _ALIKE or UNCLEAR in pair or not (here.lead or there.lead):
            continue
        if pair in _CLASHES:
            clashes.append(f"“{word}” comes {_SAID[one]} in the known text, {_SAID[other]} in the new one")
            freed |= {side for side, role in (("known", one), ("new", other)) if role == "free"}
        elif not _stands_in(here, there):
            doubts.append(f"“{word}” comes {_SAID[one]} in the known text, {_SAID[other]} in the new one")
    return Order(tuple(clashes), tuple(doubts), "known" in freed, "new" in freed)


_SAID: Mapping[str, str] = MappingProxyType(
    {"first": "first", "second": "second", "free": "in no order", "condition": "as a condition",
     "exception": "as an exception", "": "without an order"}
)  # fmt: skip


def _role(form: NormalForm, place: Place) -> str:
    """Which part a word has in the text's order; '' for none."""
    if place.stance is Stance.OPTIONAL:
        return "free"
    if place.lead:
        return _ROLES.get(place.lead, UNCLEAR)
    ordered = form.leads & _ORDERED
    if len(ordered) == 1:
        return "second" if "after" in ordered else "first"
    return ""


def _stands_in(one: Place, other: Place) -> bool:
    return any(not place.lead and place.preposition in _LIKE_A_LEAD for place in (one, other))


def _exchanged(known: NormalForm, new: NormalForm, shared: frozenset[str]) -> list[str]:
    """Directions that lead one shared word here and another there: "from nas to vault", "from vault to nas"."""
    one, other = _directed(known, shared), _directed(new, shared)
    return sorted(direction for direction in one.keys() & other.keys() if not one[direction] & other[direction])


def _directed(form: NormalForm, shared: frozenset[str]) -> dict[str, set[str]]:
    directed: dict[str, set[str]] = {}
    for word in shared:
        if direction := _DIRECTIONS.get(form.places[word].preposition):
            directed.setdefault(direction, set()).add(word)
    return directed


def _elsewhere(known: NormalForm, new: NormalForm, shared: frozenset[str]) -> list[str]:
    """Words led one way here and another way there: "restored from the vault", "restored to the vault"."""
    found = []
    for word in sorted(shared):
        one, other = known.places[word].preposition, new.places[word].preposition
        if one != other and one in _DIRECTIONS and other in _DIRECTIONS and _DIRECTIONS[one] != _DIRECTIONS[other]:
            found.append(f"“{one} {word}” is not “{other} {word}”")
    return found


def rearranged(known: NormalForm, new: NormalForm, shared: frozenset[str]) -> str:
    """A sentence when words may have changed their parts ("A proxies B", "B proxies A"), '' when they have not.

    Words that a preposition leads may stand anywhere; the agent of a passive ("proxied by A") must be the one
    who acts in the other text.
    """
    for passive, active in ((known, new), (new, known)):
        agents = {word for word in shared if passive.places[word].preposition == "by"}
        if agents and not any(active.places[word].preposition == "by" for word in agents):
            if not any(_acts(active, word) for word in agents):
                return f"who acts is not the same: by {', '.join(sorted(agents))}"
    free = [word for word in shared if not known.places[word].preposition and not new.places[word].preposition]
    for clause in {known.places[word].clause for word in free}:
        here = sorted((w for w in free if known.places[w].clause == clause), key=lambda w: known.places[w].at)
        if turned := _turned_around(here, [(new.places[word].clause, new.places[word].at) for word in here]):
            return f"“{turned[0]}” and “{turned[1]}” have changed places"
    return ""


def _acts(form: NormalForm, word: str) -> bool:
    """Whether no other word stands before it in its clause, apart from those right beside it."""
    place = form.places[word]
    return place.at <= 1


def _turned_around(words: list[str], places: list[tuple[int, int]]) -> tuple[str, str] | None:
    """Two words in the other order, with a third between them in both texts."""
    for left in range(len(words)):
        for right in range(left + 2, min(len(words), left + _NEAR)):
            if places[left][0] == places[right][0] and places[left] > places[right]:
                if any(places[right] < places[between] < places[left] for between in range(left + 1, right)):
                    return words[left], words[right]
    return None
