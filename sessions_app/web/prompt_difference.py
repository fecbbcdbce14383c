"""What differs between two prompts: the next one, and that of an earlier session by its receipt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from claudeops.lib.diff import GONE, NEW, Piece, word_diff
from claudeops.lib.tracked_file.passages import ITEM
from memories.injection.budget import shown
from memories.injection.ops import reasons
from memories.injection.selector import key_of, keys_of
from memories.taxonomy import GENERAL, OPS
from sessions_app.models import InjectionReceipt, Session, Status
from sessions_app.runner.prompt import Selected

Entry = Mapping[str, Any]
NOT_CHOSEN = "other memories come first"


@dataclass(frozen=True, slots=True)
class Difference:
    """A line that comes (`before` is empty), goes (`after` is empty, `why`), or is told otherwise.

    `memory_id` is None for a line of a file that is no memory.
    """

    memory_id: int | None
    before: tuple[Piece, ...]
    after: tuple[Piece, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Differences:
    """What differs, in the order of the prompt; `same` counts the memories that are told as before."""

    rows: tuple[Difference, ...]
    same: int

    @property
    def come(self) -> int:
        return sum(not row.before for row in self.rows)

    @property
    def go(self) -> int:
        return sum(not row.after for row in self.rows)

    @property
    def changed(self) -> int:
        return len(self.rows) - self.come - self.go

    @property
    def new(self) -> frozenset[int | str]:
        """Return the memories and the lines of files that come or are told otherwise."""
        rows = (row for row in self.rows if row.after)
        return frozenset(row.memory_id or "".join(piece.text for piece in row.after) for row in rows)


def last_injected(
    *, tier: int | None = None, project_id: int | None = None, any_project: bool = True, agent: str | None = None
) -> Session | None:
    """Return the last session with a receipt: of this tier (None: any), project (unless any will do) and agent."""
    rows = Session.objects.filter(receipt__isnull=False)
    if tier is not None:
        rows = rows.filter(tier=tier)
    if not any_project:
        rows = rows.filter(project=project_id)
    if agent is not None:
        rows = rows.filter(agent__slug=agent)
    return rows.select_related("agent", "project").defer("ingest_state").order_by("-queued_at", "-id").first()


def last_good(beside: Session | None) -> int | None:
    """Return the last completed session with a receipt of the same agent; None when it is `beside` or there is none."""
    if beside is None or beside.agent_id is None or beside.status == Status.COMPLETED:
        return None
    rows = Session.objects.filter(agent=beside.agent_id, status=Status.COMPLETED, receipt__isnull=False)
    return rows.order_by("-queued_at", "-id").values_list("pk", flat=True).first()


def differences(selected: Selected, receipt: InjectionReceipt, *, project_id: int | None, at: datetime) -> Differences:
    """Compare what is told now with a receipt. `at` (aware UTC) is the time of the selection."""
    now = [*selected.ops.included, *selected.record["included"]]
    then = [entry for entry in receipt.included if isinstance(entry, dict) and "id" in entry]
    here = {entry["id"] for entry in now}
    gone = {entry["id"] for entry in then if entry["id"] not in here}
    left_out = [*selected.ops.left_out, *selected.record["left_out"]]
    named = {entry["id"]: entry["reason"] for entry in left_out if entry["id"] in gone}
    of_ops = {entry["id"] for entry in receipt.of(OPS.slug)} & gone - named.keys()
    named |= reasons(of_ops, budget=selected.ops.budget, project_id=project_id, at=at) if of_ops else {}
    rows = compare(now, then, dict.fromkeys(gone, NOT_CHOSEN) | named)
    memories = keys_of(str(entry.get("observation") or "") for entry in (*now, *then))
    files = ((selected.curated.text, receipt.curated), (selected.agent.text, receipt.agent_file))
    of_files = [row for text, then_told in files for row in _lines(text, then_told.get("text", ""), memories)]
    return Differences((*rows.rows, *of_files), rows.same)


def _lines(new: str, old: str, memories: frozenset[str]) -> Iterable[Difference]:
    """Yield the lines of a file that come or go and that are no memories."""
    before, after = (_items(text, memories) for text in (old, new))
    yield from (Difference(None, (), (Piece(NEW, line),)) for line in after if line not in before)
    yield from (Difference(None, (Piece(GONE, line),), ()) for line in before if line not in after)


def _items(text: str, memories: frozenset[str]) -> list[str]:
    rows = (line.strip() for line in text.splitlines() if ITEM.match(line))
    return [line for line in rows if key_of(line.partition(" ")[2]) not in memories]


def compare(now: Sequence[Entry], then: Sequence[Entry], why_gone: Mapping[int, str]) -> Differences:
    """Compare what is told now with what was told then, as lines. Moving within the block is no difference. Pure."""
    before = {entry["id"]: _line(entry) for entry in then}
    after = {entry["id"]: _line(entry) for entry in now}
    rows = []
    for pk, line in after.items():
        old_line = before.get(pk)
        if old_line is None:
            rows.append(Difference(pk, (), (Piece(NEW, line),)))
        elif old_line != line:
            pieces = word_diff(old_line, line)
            rows.append(Difference(pk, _without(pieces, NEW), _without(pieces, GONE)))
    for pk, line in before.items():
        if pk not in after:
            rows.append(Difference(pk, (Piece(GONE, line),), (), why_gone.get(pk, "")))
    return Differences(tuple(rows), sum(before.get(pk) == line for pk, line in after.items()))


def _line(entry: Entry) -> str:
    confidence = shown(float(entry.get("confidence") or 0))
    text = entry.get("observation") or f"memory {entry['id']}"
    return f"[{entry.get('service') or GENERAL}, {entry.get('category', '')}, {confidence}] {text}"


def _without(pieces: Iterable[Piece], kind: str) -> tuple[Piece, ...]:
    return tuple(piece for piece in pieces if piece.kind != kind)
