"""Make one change of a MEMORY.md: the commit, then the index, the working tree and what its proposal says.

A change is prepared as objects of git, noted in `MemoryFile.pending`, made by moving the branch, and then completed;
a process that is killed in between leaves what `complete` finishes at the next reading.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from claudeops.lib.domain_error import DomainError
from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file import disk, git
from claudeops.lib.tracked_file.git import Blob, GitError
from claudeops.lib.tracked_file.merge import merge
from memories import telemetry
from memories.capture.text import fold
from memories.curate import document, proposals
from memories.curate.document import SECTIONS, Document, Misfit, parse
from memories.curate.proposals import SYSTEM
from memories.curate.state import Seen, store
from memories.curate.working_tree import Spot, check_writable, decode, read_file
from memories.errors import Conflict
from memories.library import journal
from memories.models import (
    CommitKind,
    MemoryFile,
    MemoryFileCommit,
    Proposal,
    ProposalDecision,
    ProposalKind,
    ProposalState,
    ProposalVerdict,
    Tier,
)

logger = logging.getLogger(__name__)

VERBS = {ProposalKind.ADD: "Add to", ProposalKind.CHANGE: "Change in", ProposalKind.REMOVE: "Remove from"}
LONGEST_SUBJECT = 72

Edit = Callable[[Document], Document]


@dataclass(frozen=True, slots=True)
class Change:
    """A change to commit. `proposal` is promoted by it, and `rejects` is a proposal that it rejects."""

    edit: Edit
    message: str
    author: tuple[str, str] = (git.NAME, git.EMAIL)
    proposal: int | None = None
    rejects: int | None = None
    by: str = SYSTEM


def commit_change(row: MemoryFile, seen: Seen, change: Change, at: datetime) -> None:
    """Make the change in the commit, the index and the working tree. Raises DomainError; then nothing was done."""
    committed = change.edit(parse(seen.committed_text)).text
    working = change.edit(parse(seen.working_text)).text
    if committed == seen.committed_text and working == seen.working_text and seen.committed:
        return
    _write(row, seen, change, committed.encode(), working.encode(), at)


def commit_as_it_is(row: MemoryFile, seen: Seen, change: Change, at: datetime) -> None:
    """Commit the working tree's file, or that it is gone, as it is."""
    _write(row, seen, change, seen.working, seen.working, at)


def _write(
    row: MemoryFile, snapshot: Seen, change: Change, committed: bytes | None, working: bytes | None, at: datetime
) -> None:
    check_writable(snapshot.spot)
    repository, path = snapshot.spot.repository, snapshot.spot.path
    mode = snapshot.committed.mode if snapshot.committed else "100644"
    new = git.write_blob(repository, committed) if committed is not None else ""
    staged = git.blob_in_index(repository, path)
    index = _staged(snapshot, staged, change, new)
    commit = git.make_commit(
        repository,
        snapshot.head.commit,
        path,
        (mode, new) if new else None,
        change.message,
        author=change.author,
        at=at,
    )
    pending = {
        "commit": commit,
        "branch": snapshot.head.branch,
        "mode": staged.mode if staged else mode,
        "index": index,
        "index_before": staged.sha if staged else "",
        "before": git.write_blob(repository, snapshot.working) if snapshot.working is not None else "",
        "after": git.write_blob(repository, working) if working is not None else "",
        "proposal": change.proposal,
        "rejects": change.rejects,
        "by": change.by,
    }
    store(row, pending=pending)
    subject = change.message.partition("\n")[0]
    try:
        git.move_branch(repository, snapshot.head.branch, commit, snapshot.head.commit, f"claudeops: {subject}")
    except GitError:
        store(row, pending={})
        raise
    complete(row, snapshot.spot, at)


def _staged(snapshot: Seen, staged: Blob | None, change: Change, new: str) -> str:
    """Return the object that the index is to have: what a person staged of the file stays, with the change in it."""
    if staged is None or (snapshot.committed and staged.sha == snapshot.committed.sha):
        return new
    try:
        text = change.edit(parse(decode(staged.data))).text
    except DomainError:
        return staged.sha
    return git.write_blob(snapshot.spot.repository, text.encode())


def complete(row: MemoryFile, spot: Spot, at: datetime) -> None:
    """Complete the change that is noted in the row, wherever it was broken off; nothing the second time."""
    pending: dict[str, Any] = row.pending
    if not pending:
        return
    repository, commit = spot.repository, str(pending["commit"])
    tip = git.tip(repository, str(pending["branch"]))
    if not tip or not git.is_ancestor(repository, commit, tip):
        store(row, pending={})  # the branch was not moved: it never happened
        return
    head = git.head(repository)
    if head.branch == pending["branch"] and not git.in_progress(repository):
        _complete_index(spot, pending)
        _complete_file(spot, pending)
    with transaction.atomic():
        _settle(pending, at)
        store(row, pending={})


def _complete_index(spot: Spot, pending: dict[str, Any]) -> None:
    staged = git.blob_in_index(spot.repository, spot.path)
    if (staged.sha if staged else "") == pending["index_before"] != pending["index"]:
        wanted = (pending["mode"], pending["index"]) if pending["index"] else None
        git.stage(spot.repository, spot.path, wanted)


def _complete_file(spot: Spot, pending: dict[str, Any]) -> None:
    before, after = (
        git.read_blob(spot.repository, pending[name]) if pending[name] else None for name in ("before", "after")
    )
    now = read_file(spot)
    if now == after or after is None:
        return
    if now != before:  # a person edited it in between: both edits, or theirs where they touch the same lines
        base = parse(decode(before or b""))
        merged = merge(base, parse(decode(now or b"")), parse(decode(after)))
        if now is None or merged.clashes:
            return
        after = merged.document.to_bytes()
    disk.write(spot.file, after)


def _settle(pending: dict[str, Any], at: datetime) -> None:
    """Note on the proposals what a commit did to them."""
    if pending["proposal"]:
        try:
            proposals.mark_promoted(pending["proposal"], pending["commit"], at=at)
        except DomainError as error:  # a person took the approval back meanwhile; the commit can be reverted
            logger.warning("commit %s: %s", pending["commit"], error)
        key = f"promote {pending['commit']}"
        subject = f"Proposal {pending['proposal']} became commit {pending['commit'][:7]} of MEMORY.md."
        journal.note("promote", "MEMORY.md", subject, key=key, at=at)
        telemetry.record(
            "memory.promote.completed", component="curate", source="promote", key=key[:64], at=at, promoted=1
        )
    if pending["rejects"]:
        proposal = Proposal.objects.filter(pk=pending["rejects"]).first()
        if proposal is not None:
            reject(proposal, pending["by"], "Its commit was reverted.", at)


def reject(proposal: Proposal, by: str, reason: str, at: datetime) -> None:
    """Reject a proposal that is approved or in the file. `proposals.reject` is for one that waits."""
    states = (ProposalState.APPROVED, ProposalState.PROMOTED)
    tier = Tier.RULES if by == SYSTEM else Tier.PERSON
    changed = Proposal.objects.filter(pk=proposal.pk, state__in=states).update(
        state=ProposalState.REJECTED, decided_at=at, decided_by=by[:150], why=reason, problem="", commit=""
    )
    if changed:
        ProposalDecision.objects.create(
            proposal=proposal,
            tier=tier,
            verdict=ProposalVerdict.REJECT,
            reason=reason,
            by=by[:150],
            at=at,
            before=proposal.text,
            after=proposal.text,
        )


def is_undone(commit: MemoryFileCommit) -> bool:
    later = MemoryFileCommit.objects.filter(file=commit.file_id, kind=CommitKind.REVERT)
    return later.filter(body__contains=f"Reverts: {commit.sha}").exists()


def without(now: Document, before: Document, after: Document) -> Document:
    """Return `now` without what made `before` to `after`. Raises Conflict for what later edits touched, too."""
    difference = document.difference(before, after)
    merged = merge(after, now, before)
    wanted = document.difference(after, before)
    if not merged.clashes and document.keeps_others(now, merged.document, difference.added, wanted.added):
        return merged.document
    try:
        for entry in difference.added:
            now = document.remove(now, entry.text, section=entry.section)
        for entry in difference.removed:
            now = document.put_back(now, entry)
    except Misfit as error:
        raise Conflict(f"A later change touches the same lines: {error}", "Edit the file instead.") from None
    return now


def with_line_ends(wanted: Document, old: Document) -> Document:
    """Return a text with the line ends and the byte order mark that the file had."""
    end = old.line_end
    return Document(tuple((text, end if had else "") for text, had in wanted.lines), old.bom or wanted.bom)


def promotion_message(proposal: Proposal, *more: tuple[str, str]) -> str:
    verb, section = VERBS[ProposalKind(proposal.kind)], SECTIONS.get(proposal.section, proposal.section)
    lines = [("Proposal", str(proposal.uuid)), ("Kind", proposal.kind)]
    for one in proposal.evidence.all():
        session = f" (session {one.session_id})" if one.session_id else ""
        lines.append(("Evidence", f"memory {one.memory_id or one.memory_uuid}{session}"))
    lines += [("Trust", proposal.trust), ("Approved-by", proposal.decided_by or SYSTEM), *more]
    return message(f"{verb} {section}: {proposal.text or proposal.target}", lines)


def message(subject: str, lines: Sequence[tuple[str, str]]) -> str:
    """Return a message of a commit: one line, and trailers; nothing in either can open another line."""
    first = fold(mask(fold(subject)))
    first = first if len(first) <= LONGEST_SUBJECT else f"{first[: LONGEST_SUBJECT - 1]}…"
    trailers = "".join(f"{name}: {fold(mask(value))[:200]}\n" for name, value in lines)
    return f"{first}\n\n{trailers}" if trailers else f"{first}\n"


def person(name: str) -> tuple[str, str]:
    slug = "".join(one if one.isalnum() and one.isascii() else "-" for one in name.partition(" ")[0]) or "operator"
    return name, f"{slug}@localhost"
