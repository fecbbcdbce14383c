"""The inbox: everything that waits for a person, by kind, with the decisions on it; and what the gate discarded.

A kind is an object of the protocol `kinds.Kind`; another one is added to _KINDS.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.core.cache import cache

from claudeops.lib.capped import counts_of
from memories.inbox.discards import Discards
from memories.inbox.kinds import Kind
from memories.inbox.pairs import Pairs
from memories.inbox.proposals import EARLIER, IN_INBOX, Proposals
from memories.inbox.review import Review
from memories.models import DisagreementKind, Tier

_KINDS: tuple[Kind, ...] = (
    Pairs(DisagreementKind.CONTRADICTION, "Contradictions"),
    Pairs(DisagreementKind.DUPLICATE, "Suspected duplicates"),
    Proposals(IN_INBOX, "Proposals", Tier.PERSON),
    Review("held", "Held"),
    Review("unconfirmed", "Unconfirmed"),
)
WAITING = tuple(kind.name for kind in _KINDS)
"""The names of the kinds that wait for a person."""

_APART: tuple[Kind, ...] = (
    Proposals(EARLIER, "Waiting for rules or the model", Tier.RULES, Tier.MODEL),
    Discards(),
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in (*_KINDS, *_APART)}
"""All kinds; those that are not in WAITING wait for nobody, but a person may decide about them."""

VIEWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "disagreements": ("Disagreements", (DisagreementKind.CONTRADICTION.value, DisagreementKind.DUPLICATE.value)),
    IN_INBOX: ("Proposals", (IN_INBOX, EARLIER)),
    "held": ("Held", ("held",)),
    "unconfirmed": ("Unconfirmed", ("unconfirmed",)),
    "discarded": ("Discarded", ("discarded",)),
}
"""The views of the page: the label and the kinds that each shows."""

CAP = 1_000
"""Items of a kind are counted up to here; above, pages show "999+"."""
COUNT, COUNT_SECONDS = "inbox-count", 5
"""Cache key, and how long (seconds) every page uses the same count."""


def counts(names: Collection[str] = WAITING) -> dict[str, int]:
    """Count what waits by kind, each up to CAP, from indexes. One query."""
    by_kind = dict(zip(names, counts_of((KINDS[name].waiting() for name in names), CAP), strict=True))
    if by_kind.keys() >= set(WAITING):
        cache.set(COUNT, sum(by_kind[name] for name in WAITING), COUNT_SECONDS)
    return by_kind


def count() -> int:
    """Return how much waits, as of at most COUNT_SECONDS ago: every page shows it, and the inbox itself counts anew."""
    total: int | None = cache.get(COUNT)
    return sum(counts().values()) if total is None else total


def count_of_view(name: str, counted: Mapping[str, int]) -> int:
    """Sum the counts of a view's kinds: of those that wait for a person, if any of them does."""
    kinds = VIEWS[name][1]
    return sum(counted[kind] for kind in [kind for kind in kinds if kind in WAITING] or kinds)


def shown(count: int) -> str:
    """Format a count of the inbox; empty for none."""
    return f"{CAP - 1}+" if count >= CAP else str(count or "")
