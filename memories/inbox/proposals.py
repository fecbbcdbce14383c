"""Proposals for MEMORY.md in the inbox: the difference as it would be committed, its evidence, and the decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import Max, QuerySet
from django.utils import timezone

from claudeops.lib.diff import GONE, NEW, DiffLine, line_diff, word_diff
from claudeops.lib.domain_error import DomainError
from memories.capture.text import fold
from memories.curate import document, proposals
from memories.curate.document import SECTIONS, Document
from memories.errors import Conflict, MemoryNotFound
from memories.inbox.kinds import Decided, Decision, Pick, Row, read_id
from memories.models import MemoryFile, Proposal, ProposalDecision, ProposalEvidence, ProposalKind, ProposalState, Tier

IN_INBOX, EARLIER = "proposals", "untriaged"
"""The kinds: what waits for a person, and what waits for the rules or the model."""
APPROVE, REJECT = "approve", "reject"
VERBS = {APPROVE: proposals.approve, REJECT: proposals.reject}
MOST_EVIDENCE = 50
MOST_DECISIONS = 20
AROUND = 2
"""Lines of the file that are shown before and after the difference."""
ICONS = {ProposalKind.ADD: "proposal", ProposalKind.CHANGE: "disagree", ProposalKind.REMOVE: "inactive"}
"""The icon of a proposal by its kind."""
CONFLICT_DECISIONS = (
    Decision(REJECT, "Keep mine", "1", "rejected", is_main=True),
    Decision(APPROVE, "Take the promotion", "2", "approved"),
)
"""The answers when a person edited the same lines; key 3 opens the field for a text of both."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A proposal that waits, with its row of the queue; `sides` is empty unless there is a conflict."""

    proposal: Proposal
    row: Row
    sides: dict[str, Any]


class Proposals:
    """Proposals that wait at some tiers, those that expire first at the top."""

    icon = "proposal"
    template = "memories/_inbox_proposal.html"
    permission = "memories.change_proposal"
    decisions = (
        Decision(APPROVE, "Approve", "a", "approved", is_main=True),
        Decision(REJECT, "Reject", "r", "rejected"),
    )

    def __init__(self, name: str, label: str, *tiers: Tier) -> None:
        self.name, self.label, self.tiers = name, label, tiers

    def waiting(self) -> QuerySet[Proposal]:
        return Proposal.objects.filter(state=ProposalState.WAITING, tier__in=self.tiers)

    def rows(self, limit: int) -> list[Row]:
        waiting = list(self.waiting().select_related("file__project").order_by("tier", "pk")[:limit])
        latest = _latest_decisions([row.pk for row in waiting])
        return [row_of(row, latest.get(row.pk, 0)) for row in waiting]

    def item(self, pk: int) -> dict[str, Any] | None:
        row = self.waiting().select_related("file__project", "reflection").filter(pk=pk).first()
        if row is None:
            return None
        evidence = ProposalEvidence.objects.filter(proposal=row).select_related("memory", "session__agent")
        lines, problem = difference(row, timezone.now().date())
        return {
            "row": row_of(row, _latest_decisions([pk]).get(pk, 0)),
            "proposal": row,
            "lines": lines,
            "problem": problem,
            "sides": sides(row),
            "evidence": list(evidence.order_by("pk")[:MOST_EVIDENCE]),
            "history": list(row.decisions.order_by("-at", "-pk")[:MOST_DECISIONS]),
            "decisions": CONFLICT_DECISIONS if row.conflict else (),
        }

    def decide(self, decision: str, picks: Sequence[Pick], *, by: str, text: str | None = None) -> Decided:
        fields: dict[str, Any] = {"text": text} if decision == APPROVE and len(picks) == 1 and text is not None else {}
        ids, refused = [], []
        for pick in picks:
            try:
                VERBS[decision](pick.pk, by=by, seen=pick.seen[0], **fields)
            except DomainError as error:
                refused.append(f"{error} {error.fix}".strip() if len(picks) == 1 else str(error))
            else:
                ids.append(pick.pk)
        latest = _latest_decisions(ids)
        token = ".".join(f"{pk}_{latest[pk]}" for pk in ids if pk in latest)
        return Decided(len(ids), token, tuple(refused))

    def undo(self, token: str, *, by: str) -> str:
        try:
            parts = [one.split("_") for one in token.split(".")]
            wanted = {read_id(pk): read_id(decision) for pk, decision in parts}
        except ValueError:
            raise MemoryNotFound("There is no such decision.") from None
        latest = _latest_decisions(wanted)
        count, refused = 0, []
        for pk, decision in wanted.items():
            try:
                if latest.get(pk) != decision:
                    raise Conflict(f"Somebody decided about proposal {pk} meanwhile.")
                proposals.undo(pk, by=by)
            except DomainError as error:
                refused.append(str(error))
            else:
                count += 1
        messages = [f"{count} {'proposal waits' if count == 1 else 'proposals wait'} again."] if count else []
        return " ".join([*messages, *refused])


def row_of(row: Proposal, seen: int) -> Row:
    """Return the queue's row of a proposal; `seen` is the id of its last decision, 0 without one."""
    where = SECTIONS.get(row.section, row.section)
    project = f"{row.file.project.slug} · " if row.file.project else ""
    tier = "" if row.tier == Tier.PERSON else f" · waits for {'the model' if row.tier == Tier.MODEL else 'rules'}"
    what = "conflict" if row.conflict else row.kind
    kind = IN_INBOX if row.tier == Tier.PERSON else EARLIER
    return Row(kind, row.pk, (seen,), row.text or row.target, f"{project}{what} · {where}{tier}")


def in_file(file: MemoryFile, limit: int) -> list[Waiting]:
    """Return what waits for a file, those for a person first. Two queries."""
    rows = Proposal.objects.filter(state=ProposalState.WAITING, file=file).order_by("-tier", "-pk")
    waiting = list(rows[:limit])
    latest = _latest_decisions([row.pk for row in waiting])
    for row in waiting:
        row.file = file
    return [Waiting(row, row_of(row, latest.get(row.pk, 0)), sides(row)) for row in waiting]


def difference(row: Proposal, on: date) -> tuple[list[DiffLine], str]:
    """Return the lines of MEMORY.md that the commit would change, with their neighbours, or why there would be none.

    The file is as it was last read; `on` is the day (UTC) that the entry gets.
    """
    before = document.parse(row.file.text)
    try:
        after = changed(row, before, on)
    except DomainError as error:
        return [], str(error)
    return _near(line_diff(row.file.text, after.text, around=AROUND)), ""


def changed(row: Proposal, before: Document, on: date) -> Document:
    """Return the document with the change of a proposal. After a conflict, it is about the entry that stands there now.

    Raises MemoriesError when it cannot be made.
    """
    target = row.target
    if row.conflict and document.find(before, target, row.section) is None:
        target = str(row.conflict.get("theirs") or "")
    if row.kind == ProposalKind.ADD or (row.kind == ProposalKind.CHANGE and row.conflict and not target):
        return document.add(before, row.section, row.text, on=on)
    if row.kind == ProposalKind.CHANGE:
        return document.change(before, target, row.text, on=on, section=row.section)
    return document.remove(before, target, section=row.section)


def sides(row: Proposal) -> dict[str, Any]:
    """Return both texts of a conflict with the words that differ; empty without one."""
    if not row.conflict:
        return {}
    theirs, ours, base = (fold(str(row.conflict.get(name) or "")) for name in ("theirs", "ours", "base"))
    pieces = word_diff(theirs, ours)
    line = row.conflict.get("line")
    return {
        "theirs": [piece for piece in pieces if piece.kind != NEW],
        "ours": [piece for piece in pieces if piece.kind != GONE],
        "base": base,
        "line": line + 1 if isinstance(line, int) else None,
    }


def _near(lines: list[DiffLine]) -> list[DiffLine]:
    """Leave out the fold before the first line and that behind the last: they say nothing of the difference."""
    start = 1 if lines and lines[0].fold else 0
    end = len(lines) - 1 if len(lines) > 1 and lines[-1].fold else len(lines)
    return lines[start:end]


def _latest_decisions(pks: Iterable[int]) -> dict[int, int]:
    """Return the id of the latest decision by proposal; one without decisions is left out."""
    decisions = ProposalDecision.objects.filter(proposal__in=list(pks)).order_by()
    return dict(decisions.values_list("proposal").annotate(latest=Max("pk")))
