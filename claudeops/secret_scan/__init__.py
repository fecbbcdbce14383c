"""Search everything that is stored for credentials, and mask them: `scan()`.

It finds what an earlier version stored, and what a rule of today knows and one of that day did not. It never returns a
value, only kinds, places and numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db.models import Model
from django.utils import timezone

from claudeops.secret_scan import columns, files, last, leftovers
from memories.models import RecordLevel
from memories.recall import keyword_index
from memories.telemetry import record
from sessions_app.runner.log_masking import mask_file

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

    def add(self, place: str, kinds: Mapping[str, int], *, left: bool) -> None:
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

    def note(model: type[Model], found: Counter[tuple[columns.AnyField, str]]) -> None:
        for (column, kind), number in found.items():
            left = not (masking and columns.can_be_masked(model, column))
            done.add(f"{model._meta.db_table}.{column.column}", {kind: number}, left=left)

    columns.change_columns(lambda column, value: columns.masked(value), note, write=masking)
    _scan_files(done)
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


def _scan_files(done: Scanned) -> None:
    """Files of running sessions are left: they are masked when these end. So are raw logs that are kept on purpose."""
    running, keep = files.running_folders(), settings.CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS
    for path in files.text_files():
        place = files.kind_of(path)
        write = done.masking and not (keep and place.startswith("sessions/")) and path.parent not in running
        try:
            if kinds := mask_file(path, write=write):
                done.add(place, kinds, left=not write)
        except OSError as error:
            done.add(f"{place} ({error.strerror})", {"file that cannot be read or written": 1}, left=True)
