"""The candidates' rows on their way into a ranking: each read once, within the scope, and judged by the trust pass.

Knows no ranking and no query; what is dropped is counted for whoever asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from memories.models import Memory
from memories.recall import history, rows, scope, trust, vectors
from memories.recall.rows import Row
from memories.recall.values import Filters


@dataclass(slots=True)
class Reading:
    """What was `read` so far, and which of these `rows` may come back."""

    filters: Filters = field(default_factory=Filters)
    visible: scope.Where = scope.EVERYTHING
    dropped: Counter[str] = field(default_factory=Counter)
    read: dict[int, Row] = field(default_factory=dict)
    rows: dict[int, Row] = field(default_factory=dict)

    def with_vectors(self, model_id: int) -> Callable[[Sequence[int]], vectors.Stored]:
        """How the rows of memories are read together with their vectors, which are what it gives."""

        def read(ids: Sequence[int]) -> vectors.Stored:
            self._read([pk for pk in ids if pk not in self.read], model_id)
            return [(pk, self.read[pk].vector) for pk in ids if pk in self.read]

        return read

    def judge(self, ids: Iterable[int]) -> None:
        """Take these candidates in within the scope, as of the time that was asked for; those not read yet are."""
        wanted = list(dict.fromkeys(ids))
        self._read([pk for pk in wanted if pk not in self.read])
        there = {row.pk: row for row in self._as_it_was([self.read[pk] for pk in wanted if pk in self.read])}
        self.dropped[trust.OTHER_SCOPE] += len(wanted) - len(there)
        self._take(there[pk] for pk in wanted if pk in there)

    def judge_beside(self) -> None:
        """Take in what stands before and after each of the rows in its sequence."""
        self._take(self._as_it_was(rows.beside(self.rows.values(), self.visible)))

    def _read(self, ids: Sequence[int], model_id: int | None = None) -> None:
        self.read.update((row.pk, row) for row in rows.read(self.visible, ids, model_id))

    def _take(self, found: Iterable[Row]) -> None:
        for row in found:
            reason = trust.objection(row, self.filters.include_hold)
            if reason:
                self.dropped[reason] += 1
            else:
                self.rows[row.pk] = row

    def _as_it_was(self, found: Sequence[Row]) -> Sequence[Row]:
        if self.filters.as_of is None or not found:
            return found
        now = Memory.objects.filter(scope.among(row.pk for row in found))
        then = history.as_of(now, self.filters.as_of)
        return [rows.of(row) for row in then if history.fits(row, self.filters)]
