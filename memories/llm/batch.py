"""Ask a model about rows that wait, several to a call: claim them, ask, carry out what it says, until none waits.

Rows that were asked about in vain are asked about in smaller batches, since one bad text must not spoil the answer
about others. A run that dies leaves claims that end by themselves: their rows are asked about again.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar

from django.db.models import F, Model, QuerySet
from django.utils import timezone
from pydantic import BaseModel

from claudeops.lib.lease import Lease
from memories.llm.calls import Answer, Reason, Unavailable, Used, ask

SIZES = (20, 5, 1)
"""Rows to a call, by how often they were asked about in vain. After the last of them a person decides."""
LASTS = timedelta(minutes=10)
"""How long rows are claimed; a call takes at most the time of its role."""
LOOKED_AT = 200
"""Waiting rows that are read to fill a call."""
TASK_CALLS, TASK_SECONDS = 10, 120.0
"""What a run of a task may use: no call begins later, since the queue ends a task after 300 seconds."""

Row = TypeVar("Row", bound=Model)
Shape = TypeVar("Shape", bound=BaseModel)
Verdict = TypeVar("Verdict")


@dataclass(frozen=True, slots=True)
class Batch(Generic[Row]):
    """Rows for one call. `until` (UTC) is their claim, which no other run has at the same microsecond."""

    rows: tuple[Row, ...]
    until: datetime


class Questions(ABC, Generic[Row, Shape, Verdict]):
    """What a model is asked about waiting rows. `lease` claims them, the column `tries` counts vain calls about one."""

    role: ClassVar[str]
    instructions: ClassVar[str]
    shape: type[Shape]
    lease: ClassVar[Lease] = Lease(LASTS)
    tries: ClassVar[str] = "tries"

    def __init__(self, used: Used) -> None:
        self.used = used

    @abstractmethod
    def waiting(self) -> QuerySet[Row]:
        """Return the rows that wait, the first ones first, with what `message` needs."""

    @abstractmethod
    def still(self, row: Row) -> QuerySet[Row]:
        """Return the row while it waits; by conditions on its own columns alone, as in `Lease.free`."""

    @abstractmethod
    def group(self, row: Row) -> Hashable:
        """Return what the rows of one call have in common."""

    @abstractmethod
    def leave(self, row: Row, at: datetime) -> bool:
        """Leave a row to a person when no model may be asked about it; return whether it was left."""

    @abstractmethod
    def message(self, rows: Sequence[Row]) -> str:
        """Return the question, with the rows numbered from 1."""

    @abstractmethod
    def read(self, answer: Shape, count: int) -> list[Verdict | None]:
        """Return what the answer says of each of `count` rows, in their order; None where it says nothing usable."""

    @abstractmethod
    def carry_out(
        self,
        batch: Batch[Row],
        verdicts: Sequence[Verdict | None],
        answer: Answer[Shape] | Unavailable,
        at: datetime | None,
    ) -> None:
        """Do what the verdicts say of those rows that the batch still has."""

    def ask_all(self, *, at: datetime | None, most_calls: int | None, most_seconds: float | None) -> None:
        """Ask about what waits. No call begins after `most_calls` or `most_seconds` (None: without limit).

        `at` (UTC; now when None) is the time of claims. Call it outside of a transaction.
        """
        begun = time.monotonic()
        while most_calls is None or self.used.calls < most_calls:
            if most_seconds is not None and time.monotonic() - begun >= most_seconds:
                break
            batch = self._claim(at or timezone.now())
            if batch is None or not self._ask(batch, at):
                break

    def mine(self, row: Row, batch: Batch[Row]) -> QuerySet[Row]:
        """Return the row while it waits and the batch has it."""
        return self.still(row).filter(**{self.lease.column: batch.until})

    def in_vain(self, row: Row, batch: Batch[Row]) -> int:
        """Note that a call said nothing usable about a row and let go of it; 0 when another run has it by now."""
        return self.mine(row, batch).update(**{self.lease.column: None, self.tries: F(self.tries) + 1})

    def _key(self, row: Row) -> tuple[int, Hashable]:
        return min(getattr(row, self.tries), len(SIZES) - 1), self.group(row)

    def _claim(self, at: datetime) -> Batch[Row] | None:
        """Take the first free rows for one call; None when there are none."""
        while rows := list(self.waiting().filter(self.lease.free(at))[:LOOKED_AT]):
            candidates = [row for row in rows if not self.leave(row, at)]
            alike = [row for row in candidates if self._key(row) == self._key(candidates[0])]
            size = SIZES[self._key(alike[0])[0]] if alike else 0
            if taken := tuple(row for row in alike[:size] if self.lease.take(self.still(row), at)):
                return Batch(taken, self.lease.claimed(at))
        return None

    def _ask(self, batch: Batch[Row], at: datetime | None) -> bool:
        """Ask about a batch and carry out the answer; return whether to go on with the next one."""
        answer = ask(self.role, self.instructions, self.message(batch.rows), self.shape)
        verdicts: list[Verdict | None] = [None] * len(batch.rows)
        if isinstance(answer, Answer):
            verdicts = self.read(answer.value, len(batch.rows))
            self.used.count(answer)
        elif answer.reason != Reason.UNREADABLE:
            self.used.why, self.used.until = answer.why, answer.until
            for row in batch.rows:
                self.mine(row, batch).update(**{self.lease.column: None})
            return False
        self.used.calls += 1
        self.carry_out(batch, verdicts, answer, at)
        return True


def by_number(
    verdicts: Iterable[tuple[int, Verdict | None]], count: int, same: Callable[[Verdict], Any]
) -> list[Verdict | None]:
    """Return the verdict about each of `count` rows, which are numbered from 1; the first of equal ones.

    None: there is none, one that is not known (None), or two that differ by what `same` returns of them. Verdicts about
    other numbers are ignored.
    """
    first: list[Verdict | None] = [None] * count
    spoiled = set()
    for number, verdict in verdicts:
        place = number - 1
        if not 0 <= place < count:
            continue
        earlier = first[place]
        if verdict is None or (earlier is not None and same(earlier) != same(verdict)):
            spoiled.add(place)
        elif earlier is None:
            first[place] = verdict
    return [None if place in spoiled else verdict for place, verdict in enumerate(first)]
