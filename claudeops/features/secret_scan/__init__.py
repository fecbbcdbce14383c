"""Search everything that is stored for credentials, and mask them: `scan()`.

It finds what an earlier version stored, and what a rule of today knows and one of that day did not. It never returns a
value, only kinds, places and numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.db.models import Model
from django.utils import timezone

from claudeops.features.secret_scan import columns, files
from memories.models import RecordLevel
from memories.recall import keyword_index
from memories.telemetry import record
from sessions_app.runner.log_masking import mask_file

Places = dict[str, Counter[str]]


class Last(NamedTuple):
    """`found` and `left` are numbers of credentials; `at` is UTC."""

    at: datetime
    masking: bool
    found: int
    left: int


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
    report = Scanned(masking, at or timezone.now())

    def note(model: type[Model], found: Counter[tuple[columns.AnyField, str]]) -> None:
        for (column, kind), number in found.items():
            is_left = not (masking and columns.can_be_masked(model, column))
            report.add(f"{model._meta.db_table}.{column.column}", {kind: number}, left=is_left)

    columns.change_columns(lambda column, value: columns.masked(value), note, write=masking)
    _scan_files(report)
    if masking:
        keyword_index.catch_up()  # the terms of the memories that were changed
        report.problems += columns.remove_leftovers()
    facts = {"at": report.at.isoformat(), "masking": masking, "found": report.count, "left": report.left_count}
    (Path(settings.CLAUDEOPS_DATA_DIR) / files.LAST).write_text(json.dumps(facts) + "\n", encoding="utf-8")
    record(
        "secrets.scan.completed",
        component="secret_scan",
        source="command",
        level=RecordLevel.WARNING if report.left_count else RecordLevel.INFO,
        masking=masking,
        found=report.count,
        left=report.left_count,
        problems=len(report.problems),
    )
    return report


def _scan_files(report: Scanned) -> None:
    """Files of running sessions are left: they are masked when these end. So are raw logs that are kept on purpose."""
    running, keep = files.running_folders(), settings.CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS
    for path in files.text_files():
        place = files.kind_of(path)
        write = report.masking and not (keep and place.startswith("sessions/")) and path.parent not in running
        try:
            if kinds := mask_file(path, write=write):
                report.add(place, kinds, left=not write)
        except OSError as error:
            report.add(f"{place} ({error.strerror})", {"file that cannot be read or written": 1}, left=True)


def last_scan() -> Last | None:
    """Return what the last scan found; None when there was none, or its file cannot be read."""
    try:
        data = json.loads((Path(settings.CLAUDEOPS_DATA_DIR) / files.LAST).read_text(encoding="utf-8"))
        at = datetime.fromisoformat(data["at"])
        return Last(at, bool(data["masking"]), int(data["found"]), int(data["left"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
