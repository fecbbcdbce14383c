"""Compare what would be injected now with an earlier session: new, gone, moved."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memories.injection.ops import Injection, budget_for, build, reasons
from memories.injection.relevant import Task
from sessions_app.models import InjectionReceipt, Session

SAME, NEW, GONE, MOVED = "same", "new", "gone", "moved"


@dataclass(frozen=True, slots=True)
class Row:
    """One memory on one side. `place` is its number there, `other` its number on the other side (None: none).

    `surer` is its confidence less that of the other side; `edited`: its text differs; `why` is why it is gone.
    """

    entry: dict[str, Any]
    place: int
    mark: str
    other: int | None = None
    surer: float = 0.0
    edited: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Sides:
    """The rows of both sides in their own order, and how many are new, gone, moved and the same."""

    now: list[Row]
    then: list[Row]
    counts: dict[str, int]

    @property
    def unchanged(self) -> int:
        """How many rows are the same in place, text and confidence: the page folds them."""
        return sum(row.mark == SAME and not row.surer and not row.edited for row in self.now)


@dataclass(frozen=True, slots=True)
class Preview:
    tier: int
    injection: Injection
    session: Session | None
    receipt: InjectionReceipt | None
    sides: Sides


def last_told(*, tier: int | None = None, project_id: int | None = None, any_project: bool = True) -> Session | None:
    """Return the last session with a receipt: of this tier (None: any), of this project (unless any will do)."""
    rows = Session.objects.filter(receipt__isnull=False)
    if tier is not None:
        rows = rows.filter(tier=tier)
    if not any_project:
        rows = rows.filter(project=project_id)
    return rows.select_related("agent", "project").defer("ingest_state").order_by("-queued_at", "-id").first()


def preview_of(
    *,
    tier: int,
    project_id: int | None,
    budget: int | None,
    beside: Session | None,
    at: datetime,
    task: str = "",
    agent: str | None = None,
) -> Preview:
    """Preview the prompt of a session at `at` (aware UTC); `budget` is in tokens, None: the tier's.

    `task` is its text, `agent` its slug.
    """
    allowed = budget_for(tier) if budget is None else budget
    injection = build(budget=allowed, project_id=project_id, at=at, task=Task(task, agent, is_preview=True))
    receipt = InjectionReceipt.objects.filter(session=beside).first() if beside else None
    then = [entry for entry in receipt.included if isinstance(entry, dict) and "id" in entry] if receipt else []
    here = {entry["id"] for entry in injection.included}
    gone = {entry["id"] for entry in then} - here
    named = {entry["id"]: entry["reason"] for entry in injection.left_out if entry["id"] in gone}
    unnamed = gone - named.keys()
    if unnamed:
        named |= reasons(unnamed, budget=allowed, project_id=project_id, at=at)
    return Preview(tier, injection, beside, receipt, compare(injection.included, then, named))


def compare(now: Sequence[dict[str, Any]], then: Sequence[dict[str, Any]], why_gone: dict[int, str]) -> Sides:
    """Compare two orders. A row moved only when the order of common rows changed, not when a new row precedes it."""
    place_then = {entry["id"]: place for place, entry in enumerate(then, start=1)}
    place_now = {entry["id"]: place for place, entry in enumerate(now, start=1)}
    before = {entry["id"]: entry for entry in then}
    common = [entry["id"] for entry in now if entry["id"] in place_then]
    still = _longest_rising([place_then[pk] for pk in common])
    mark = {pk: SAME if place_then[pk] in still else MOVED for pk in common}
    rows_now, rows_then = [], []
    for entry in now:
        pk = entry["id"]
        if pk not in before:
            rows_now.append(Row(entry, place_now[pk], NEW))
            continue
        surer = round(float(entry["confidence"]) - float(before[pk].get("confidence") or 0), 6)
        edited = bool(before[pk].get("observation")) and before[pk]["observation"] != entry["observation"]
        rows_now.append(Row(entry, place_now[pk], mark[pk], place_then[pk], surer, edited))
    for entry in then:
        pk = entry["id"]
        gone = pk not in place_now
        why = why_gone.get(pk, "") if gone else ""
        rows_then.append(Row(entry, place_then[pk], GONE if gone else mark[pk], place_now.get(pk), why=why))
    counts = {name: sum(row.mark == name for row in rows_now) for name in (NEW, MOVED, SAME)}
    counts[GONE] = sum(row.mark == GONE for row in rows_then)
    return Sides(rows_now, rows_then, counts)


def _longest_rising(numbers: list[int]) -> set[int]:
    """Return the members of a longest increasing subsequence: those that kept their order."""
    tails: list[int] = []
    ends: list[int] = []  # the place in `numbers` of each tail
    came_from: list[int | None] = []
    for place, number in enumerate(numbers):
        length = bisect_left(tails, number)
        came_from.append(ends[length - 1] if length else None)
        if length == len(tails):
            tails.append(number)
            ends.append(place)
        else:
            tails[length], ends[length] = number, place
    found: set[int] = set()
    at: int | None = ends[-1] if ends else None
    while at is not None:
        found.add(numbers[at])
        at = came_from[at]
    return found
