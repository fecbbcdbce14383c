"""Claim rows for a time by a conditional UPDATE: of several workers one has each, and a dead one's are free again.

A claim is the end of its time in a column of the row; null: the row is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet


@dataclass(frozen=True, slots=True)
class Lease:
    """Claims that end after `lasts`. `holds_start`: the column has when a claim began, which pages show."""

    lasts: timedelta
    column: str = "claimed_until"
    holds_start: bool = False

    def free(self, at: datetime) -> Q:
        """Return the condition of rows that nobody has at `at` (aware UTC).

        It is on the row's own column alone: PostgreSQL checks such a condition again when another worker was first.
        """
        ended = at - self.lasts if self.holds_start else at
        return Q(**{self.column: None}) | Q(**{f"{self.column}__lte": ended})

    def take(self, rows: QuerySet[Any], at: datetime, **columns: Any) -> bool:
        """Claim those of `rows` that are free, and set `columns`; return whether there was one."""
        return self.renew(rows.filter(self.free(at)), at, **columns)

    def renew(self, rows: QuerySet[Any], at: datetime, **columns: Any) -> bool:
        """Begin the time of a claim anew; `rows` says whose it is. False: it was lost."""
        return bool(rows.update(**{self.column: self.claimed(at)}, **columns))

    def claimed(self, at: datetime) -> datetime:
        """Return what the column holds of a claim that begins at `at`."""
        return at if self.holds_start else at + self.lasts
