"""Count rows up to a cap, so that a number on a page costs the same however many rows there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import IntegerField, QuerySet, Subquery

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


class CappedCount(Subquery):
    """Count the rows of a subquery that refers to the outer row, up to `most` + 1: one index range for each row."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS capped)"
    output_field = IntegerField()

    def __init__(self, rows: QuerySet[Any], most: int) -> None:
        super().__init__(rows.order_by().values("pk")[: most + 1])


def count_of(rows: QuerySet[Any]) -> Count:
    return Count(rows.order_by()[: CAP + 1].count())
