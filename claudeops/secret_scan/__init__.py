"""Search everything that is stored for credentials, and mask them: `scan()`.

It finds what an earlier version stored, and what a rule of today knows and one of that day did not. It never returns a
value, only kinds, places and numbers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from claudeops.secret_scan import columns, files, last, leftovers
from memories.models import RecordLevel
from memories.recall import keyword_index
from memories.telemetry import record

Places = dict[str, Counter[str]]


@dataclass(slots=True)
class Scanned:
    """The result. `found` and `left` count kinds by place (table.column, or a folder); `left` is what was not masked.

    `problems` are sentences for people. Without `masking` all that was found is left.
    """

    masking: bool
    at: datetime
    found: Places = field(default_factory=dict)
    left: Places = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, place: str, kinds: Counter[str], *, left: bool) -> None:
        for places in (self.found, self.left) if left else (self.found,):
            places.setdefault(place, Counter()).update(kinds)

    def kinds(self) -> Counter[str]:
        return sum(self.found.values(), Counter())

    @property
    def count(self) -> int:
        return self.kinds().total()

    @property
    def left_count(self) -> int:
        return sum(kinds.total() for kinds in self.left.values())


def scan(*, masking: bool, at: datetime | None = None) -> Scanned:
    """Search the database and the data folder; with `masking` also mask, and remove what is left of the old values.

    Safe to repeat and to interrupt. `at` is UTC, now when None.
    """
    done = Scanned(masking, at or timezone.now())
    for place, kinds, left in (*columns.scan(masking=masking), *files.scan(masking=masking)):
        done.add(place, kinds, left=left)
    if masking:
        keyword_index.catch_up()  # the terms of the memories that were changed
        done.problems += leftovers.remove()
    last.write(last.Last(done.at, masking, done.count, done.left_count))
    record(
        "secrets.scan.completed",
        component="secret_scan",
        source="command",
        level=RecordLevel.WARNING if done.left_count else RecordLevel.INFO,
        masking=masking,
        found=done.count,
        left=done.left_count,
        problems=len(done.problems),
    )
    return done
