"""Commit the proposals that are approved, one commit for each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Q

from claudeops.lib.domain_error import DomainError
from memories import telemetry
from memories.curate import document, proposals
from memories.curate.commits import (
    Change,
    Edit,
    commit_change,
    is_undone,
    promotion_message,
    reject,
)
from memories.curate.document import Document, Entry, Full, Missing, parse
from memories.curate.reading import propose_removals, read_row, ready, replaceable, set_conflict
from memories.curate.state import Seen, alone, say
from memories.models import CommitKind, MemoryFile, Proposal, ProposalKind, ProposalState, to_utc


@dataclass(frozen=True, slots=True)
class Promoted:
    """What a run committed: the proposals, and in words why others wait."""

    done: tuple[int, ...] = ()
    waiting: tuple[str, ...] = ()


def promote_due(*, at: datetime | None = None) -> Promoted:
    """Commit what is approved, one commit for each proposal, in the files of this host. What cannot be waits, said."""
    when, ids, waiting = to_utc(at), list[int](), list[str]()
    due = Q(proposals__state=ProposalState.APPROVED) | ~Q(pending={})
    rows = MemoryFile.objects.filter(due, host=settings.CLAUDEOPS_HOST).distinct().order_by("pk")
    for row in rows:
        with alone(row):
            outcome = _promote_all(row, when)
        ids += outcome.done
        waiting += outcome.waiting
    return Promoted(tuple(ids), tuple(waiting))


def _promote_all(row: MemoryFile, at: datetime) -> Promoted:
    ids: list[int] = []
    approved = row.proposals.filter(state=ProposalState.APPROVED).order_by("decided_at", "pk")
    try:
        snapshot = ready(row, at)
    except (DomainError, OSError) as error:
        words = f"{error} {getattr(error, 'fix', '')}".strip()
        row.refresh_from_db()
        if not row.problem:
            say(row, words, at)
        rows = approved.exclude(problem=words[:500])
        count = rows.update(problem=words)
        if count:
            telemetry.record(
                "memory.promote.failed", component="curate", source="promote", success=False, at=at, waiting=count
            )
        return Promoted(waiting=tuple(f"proposal {pk}: {words}" for pk in approved.values_list("pk", flat=True)))
    waiting: list[str] = []
    # Removals first: they make room.
    for proposal in sorted(approved, key=lambda one: one.kind != ProposalKind.REMOVE):
        row.refresh_from_db()
        try:
            if _promote(row, snapshot, proposal, at):
                ids.append(proposal.pk)
        except (DomainError, OSError) as error:
            words = f"{error} {getattr(error, 'fix', '')}".strip()
            Proposal.objects.filter(pk=proposal.pk, state=ProposalState.APPROVED).update(problem=words)
            waiting.append(f"proposal {proposal.pk}: {words}")
            if isinstance(error, Full):
                propose_removals(row, at)
        again, fresh = read_row(row.pk, at)
        if fresh is None or again.problem:
            break
        snapshot = fresh
    return Promoted(tuple(ids), tuple(waiting))


def _promote(row: MemoryFile, snapshot: Seen, proposal: Proposal, at: datetime) -> bool:
    """Commit one proposal; False for one that was not, because of a conflict or because nothing is left to do."""
    for commit in row.commits.filter(proposal=proposal, kind=CommitKind.PROMOTION):
        if not is_undone(commit):
            proposals.mark_promoted(proposal.pk, commit.sha, at=at)
            return True
    working = parse(snapshot.working_text)
    change = Change(_edit_of(proposal, working, at), promotion_message(proposal), proposal=proposal.pk)
    try:
        try:
            change.edit(working)
        except Full:
            if (least := replaceable(row)) is None:
                raise
            message = promotion_message(proposal, ("Removes", least.text))
            change = Change(_instead_of(least, change.edit), message, proposal=proposal.pk)
            change.edit(working)
    except Missing:
        if proposal.kind == ProposalKind.REMOVE and proposal.conflict:
            reject(proposal, proposals.SYSTEM, "The entry is gone already.", at)
        else:
            set_conflict(proposal, parse(snapshot.committed_text), working, at)
        return False
    commit_change(row, snapshot, change, at)
    return True


def _instead_of(least: Entry, edit: Edit) -> Edit:
    """Return an edit that first removes an entry, so that a full file goes on learning."""

    def both(one: Document) -> Document:
        if document.find(one, least.text, least.section) is not None:
            one = document.remove(one, least.text, section=least.section)
        return edit(one)

    return both


def _edit_of(proposal: Proposal, working: Document, at: datetime) -> Edit:
    """Return what a proposal does. After a conflict, it is about the entry that stands there now."""
    target = proposal.target
    if proposal.conflict and document.find(working, target, proposal.section) is None:
        target = str(proposal.conflict.get("theirs") or "")
    on = at.date()
    if proposal.kind == ProposalKind.ADD or (proposal.kind == ProposalKind.CHANGE and proposal.conflict and not target):
        return lambda one: document.add(one, proposal.section, proposal.text, on=on)
    if proposal.kind == ProposalKind.CHANGE:
        return lambda one: document.change(one, target, proposal.text, on=on, section=proposal.section)
    return lambda one: document.remove(one, target, section=proposal.section)
