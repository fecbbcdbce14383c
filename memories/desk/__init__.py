"""The desk: everything that waits for a person, by kind, with the decisions on it; and what the gate discarded.

A kind is an object of the protocol `kinds.Kind`; another one is added to _KINDS.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection

from memories.desk.discards import Discards
from memories.desk.kinds import Kind
from memories.desk.pairs import Pairs
from memories.desk.review import Review
from memories.models import DisagreementKind

_KINDS: tuple[Kind, ...] = (
    Pairs(DisagreementKind.CONTRADICTION, "Contradictions"),
    Pairs(DisagreementKind.DUPLICATE, "Suspected duplicates"),
    Review("held", "Held"),
    Review("unconfirmed", "Unconfirmed"),
)
WAITING = tuple(kind.name for kind in _KINDS)
"""The names of the kinds that wait for a person."""

KINDS: dict[str, Kind] = {kind.name: kind for kind in (*_KINDS, Discards())}

VIEWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "disagreements": ("Disagreements", (DisagreementKind.CONTRADICTION.value, DisagreementKind.DUPLICATE.value)),
    "held": ("Held", ("held",)),
    "unconfirmed": ("Unconfirmed", ("unconfirmed",)),
    "discarded": ("Discarded", ("discarded",)),
}
"""The views of the page: the label and the kinds that each shows."""

CAP = 1_000
"""Items of a kind are counted up to here; above, pages show "999+"."""


def counts() -> dict[str, int]:
    """Count what waits for a person by kind, each up to CAP, from indexes. One query: every page shows the sum."""
    parts: list[str] = []
    params: list[Any] = []
    for place, kind in enumerate(_KINDS):
        try:
            sql, values = kind.waiting().order_by().values("pk")[:CAP].query.sql_with_params()
        except EmptyResultSet:  # CLAUDEOPS_TRUST=open keeps nothing back
            parts.append("0")
        else:
            parts.append(f"(SELECT count(*) FROM ({sql}) AS kind_{place})")  # noqa: S608  (the ORM's)
            params += values
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(parts)}", params)
        return dict(zip(WAITING, cursor.fetchone(), strict=True))


def count_discarded() -> int:
    """Count what the gate discarded, up to CAP."""
    return KINDS["discarded"].waiting().order_by()[:CAP].count()


def shown(count: int) -> str:
    """Format a count of the desk; empty for none."""
    return f"{CAP - 1}+" if count >= CAP else str(count or "")
