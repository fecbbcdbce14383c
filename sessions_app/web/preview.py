"""Preview the memories of the next prompt, and compare them with those that an earlier session got."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from claudeops.lib.diff import GONE, NEW, Piece, word_diff
from memories.curate.told import NOT_CURATED, Curated
from memories.injection.block import BlockLine, Shares, lines_of, shares_of
from memories.injection.budget import shown, tokens
from memories.injection.knowledge import Knowledge
from memories.injection.ops import Injection, reasons
from memories.injection.project import Selection
from memories.taxonomy import GENERAL, OPS
from sessions_app.errors import InvalidSession
from sessions_app.models import InjectionReceipt, Session, Status
from sessions_app.runner.prompt import Selected

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """A memory that comes (`before` is empty), goes (`after` is empty, `why`), or is told otherwise."""

    memory_id: int
    before: tuple[Piece, ...]
    after: tuple[Piece, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Differences:
    """What differs, in the order of the block; `same` counts the memories that are told as before."""

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


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many memories are left out for one reason; `query` lists them on the page of memories, empty for none."""

    label: str
    count: int
    query: str
    percent: int


@dataclass(frozen=True, slots=True)
class Preview:
    """What a session of `tier` would get now. `session` is the earlier one, `good` the last that completed."""

    tier: int
    injection: Injection
    lines: list[BlockLine]
    shares: Shares
    left_out: list[LeftOut]
    session: Session | None
    receipt: InjectionReceipt | None
    differences: Differences
    good: int | None


REASONS = (
    ("over_budget", "No room", "status=active&sort=-confidence"),
    ("outside_window", "Outside their window", ""),
    ("held", "Held", "status=held"),
    ("unconfirmed", "Unconfirmed", "status=unconfirmed"),
    ("below_threshold", "Below the threshold", "status=active&confidence_max=0.3"),
    ("other_project", "Other project", ""),
    ("inactive", "Inactive", "status=inactive"),
)
"""The counts of an injection that say why memories are left out, and the list of memories that shows them."""


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


def preview_of(selected: Selected, session: Session, *, beside: Session | None, at: datetime) -> Preview:
    """Preview what a session that is not stored is told at `at` (aware UTC), beside an earlier one."""
    injection, project_id, tier = selected.ops, session.project_id, session.tier
    allowed = injection.budget
    receipt = InjectionReceipt.objects.filter(session=beside).first() if beside else None
    then = receipt.of(OPS.slug) if receipt else []
    here = {entry["id"] for entry in injection.included}
    gone = {entry["id"] for entry in then} - here
    named = {entry["id"]: entry["reason"] for entry in injection.left_out if entry["id"] in gone}
    unnamed = gone - named.keys()
    if unnamed:
        named |= reasons(unnamed, budget=allowed, project_id=project_id, at=at)
    lines = lines_of(injection.text, injection.included)
    ordered = [line.entry for line in lines if line.entry is not None]
    return Preview(
        tier=tier,
        injection=injection,
        lines=lines,
        shares=shares_of(lines, tokens=injection.tokens, budget=injection.budget),
        left_out=_left_out(injection.counts),
        session=beside,
        receipt=receipt,
        differences=compare(ordered, then, named),
        good=_last_good(beside),
    )


@dataclass(frozen=True, slots=True)
class ComposedPreview:
    """The prompt of a session that is not stored, with the project's memories and the knowledge in it.

    `why` says why there is none.
    """

    text: str = ""
    tokens: int = 0
    selection: Selection = field(default_factory=Selection)
    knowledge: Knowledge = field(default_factory=Knowledge)
    curated: Curated = NOT_CURATED
    why: str = ""


def composed_of(selected: Selected, session: Session, *, at: datetime) -> ComposedPreview:
    """Compose the prompt of an unsaved session at `at` (aware UTC), with what was selected for it."""
    parts = ComposedPreview(selection=selected.project, knowledge=selected.knowledge, curated=selected.curated)
    try:
        composed = selected.composed(session, handoff_file="handoff.json", at=at)
    except InvalidSession as error:
        return replace(parts, why=f"{error} {error.fix}".strip())
    return replace(parts, text=composed.text, tokens=tokens(composed.text))


def _last_good(beside: Session | None) -> int | None:
    """Return the last completed session with a receipt of the same agent; None when it is `beside` or there is none."""
    if beside is None or beside.agent_id is None or beside.status == Status.COMPLETED:
        return None
    rows = Session.objects.filter(agent=beside.agent_id, status=Status.COMPLETED, receipt__isnull=False)
    return rows.order_by("-queued_at", "-id").values_list("pk", flat=True).first()


def _left_out(counts: Mapping[str, int]) -> list[LeftOut]:
    rows = [(label, counts.get(name, 0), query) for name, label, query in REASONS if counts.get(name)]
    most = max((count for _, count, _ in rows), default=0)
    return [LeftOut(label, count, query, max(1, round(100 * count / most))) for label, count, query in rows]


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
