"""Count rows up to a cap, so that a number on a page costs the same however many rows there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

CAP = 10_000
"""Rows are counted up to here; above, pages show "10,000+"."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number of rows, at most CAP + 1."""

    value: int

    @property
    def shown(self) -> str:
        return f"{CAP:,}+" if self.value > CAP else f"{self.value:,}"

    def __bool__(self) -> bool:
        return self.value > 0

    def __add__(self, other: Count) -> Count:
        return Count(min(self.value + other.value, CAP + 1))


def count_of(rows: QuerySet[Any]) -> Count:
    return Count(rows.order_by()[: CAP + 1].count())
