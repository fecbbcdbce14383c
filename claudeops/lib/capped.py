"""Count rows up to a cap, so that a number on a page costs the same however many rows there are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
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


def counts_of(parts: Iterable[QuerySet[Any]], most: int = CAP + 1) -> list[int]:
    """Count the rows of each queryset up to `most`, all by one query; by none if all are empty by themselves."""
    counts: list[str] = []
    params: list[Any] = []
    for place, rows in enumerate(parts):
        try:
            sql, values = rows.order_by().values("pk")[:most].query.sql_with_params()
        except EmptyResultSet:
            counts.append("0")
        else:
            counts.append(f"(SELECT count(*) FROM ({sql}) AS part_{place})")  # noqa: S608  (the ORM's)
            params += values
    if set(counts) <= {"0"}:
        return [0] * len(counts)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(counts)}", params)
        return list(cursor.fetchone())


def count_of(rows: QuerySet[Any]) -> Count:
    return Count(rows.order_by()[: CAP + 1].count())
