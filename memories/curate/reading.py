"""Read a MEMORY.md into its row: what people wrote is taken over, and what it means for the proposals about it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from claudeops.lib.domain_error import DomainError
from claudeops.lib.secrets import find as find_credentials
from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file import git
from claudeops.lib.tracked_file.disk import Unusable
from claudeops.lib.tracked_file.merge import same_lines
from memories import committers
from memories.capture.text import fold
from memories.curate import document, proposals
from memories.curate.commits import Change, commit_as_it_is, complete, message, person
from memories.curate.document import SECTIONS, WARN_AT, Document, Entry, parse
from memories.curate.state import Seen, look, say, store
from memories.curate.working_tree import check_writable, find_spot, place_of, stamp
from memories.errors import Conflict
from memories.lifecycle import vouched
from memories.models import (
    CommitKind,
    MemoryFile,
    MemoryFileCommit,
    Proposal,
    ProposalKind,
    ProposalState,
    Tier,
)

BY_HAND = "operator (edited by hand)"
LOOKED_BACK = timedelta(days=1)
MOST_PRUNED = 20
"""Removals that are proposed at once when a file is nearly full."""
LONGEST_BODY = 10_000
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def ready(row: MemoryFile, at: datetime, *, may_begin: bool = False) -> Seen:
    """Read the file, and return it as one that may be written. Raises DomainError with why it may not."""
    place = place_of(row.project)
    if place.is_ours and find_spot(place) is None:
        git.init(place.folder)
    row, snapshot = read_row(row.pk, at)
    gone = snapshot is not None and snapshot.working is None and may_begin
    if snapshot is None or (row.problem and not gone):
        raise (
            Unusable(row.problem) if row.problem else Unusable(f"{place.folder} is in no repository.", "Run: git init")
        )
    check_writable(snapshot.spot)
    return snapshot


def read_row(pk: int, at: datetime) -> tuple[MemoryFile, Seen | None]:
    row = MemoryFile.objects.select_related("project").get(pk=pk)
    try:
        spot = find_spot(place_of(row.project))
        if spot is None:
            _without_repository(row, at)
            return row, None
        complete(row, spot, at)
        snapshot = look(row, spot)
        is_whole = parse(snapshot.working_text).conflict_line is None
        if snapshot.is_edited and spot.is_ours and is_whole and not _has_new_credential(snapshot):
            by_hand = Change(lambda _: Document(), message(f"Edit {spot.path} by hand", []), person(BY_HAND))
            commit_as_it_is(row, snapshot, by_hand, at)
            snapshot = look(row, spot)
        _save(row, snapshot, at)
    except (DomainError, OSError) as error:
        say(row, f"{error} {getattr(error, 'fix', '')}".strip(), at)
        return row, None
    return row, snapshot


def _without_repository(row: MemoryFile, at: datetime) -> None:
    place = place_of(row.project)
    if not place.is_ours:
        say(row, f"{place.folder} is in no git repository on {row.host}. Run: git init", at)
    elif row.commit:
        say(row, f"The repository {place.folder} is gone. Restore it from a backup, or run: memory-file init", at)
    else:
        store(row, stamp="none", read_at=at)


def _has_new_credential(snapshot: Seen) -> bool:
    """Whether an edit by hand added a credential: it is not made permanent by a commit."""
    old_lines = {text for text, _ in parse(snapshot.committed_text).lines}
    return any(find_credentials(text) for text, _ in parse(snapshot.working_text).lines if text not in old_lines)


def _save(row: MemoryFile, snapshot: Seen, at: datetime, **columns: Any) -> None:
    """Store what the repository holds, its new commits, and what an edit means for proposals, in one transaction."""
    texts = (snapshot.working_text, snapshot.committed_text, row.text)  # the last one without a conflict is told
    text = mask(next((text for text in texts if parse(text).conflict_line is None), ""))
    repository, path = snapshot.spot.repository, snapshot.spot.path
    commits, is_whole = list[git.Commit](), False
    if snapshot.head.commit and snapshot.head.commit != row.commit:
        is_whole = not (row.commit and git.is_ancestor(repository, row.commit, snapshot.head.commit))
        with committers.signers_of(row.project) as signers:
            since = "" if is_whole else row.commit
            commits = git.log(repository, snapshot.head.commit, path, since=since, signers=signers)
    blamed = list[str]()
    if snapshot.committed and (commits or text != row.text or len(row.blame) != len(parse(text).lines)):
        blamed = git.blame(repository, snapshot.head.commit, path, snapshot.committed.data)
    problem = _problem_of(snapshot)
    mark = stamp(snapshot.spot)
    with transaction.atomic():
        if is_whole:
            row.commits.exclude(sha__in=[one.sha for one in commits]).delete()
        _store_commits(row, commits, git.shallow(repository), at)
        if blamed or not snapshot.committed:
            columns["blame"] = _blame_of(row, snapshot, text, blamed)
        if row.read_at is not None:
            _find_conflicts(row, parse(row.text), parse(text), at)
        store(
            row,
            repository=str(repository.root),
            path=path,
            branch=snapshot.head.branch,
            commit=snapshot.head.commit,
            text=text,
            sha256=hashlib.sha256(snapshot.working).hexdigest() if snapshot.working is not None else "",
            entries=len(parse(text).entries),
            stamp=mark,
            read_at=at,
            problem=problem,
            problem_since=(row.problem_since or at) if problem else None,
            **columns,
        )
    if row.entries >= WARN_AT:
        propose_removals(row, at)


def _problem_of(snapshot: Seen) -> str:
    head = snapshot.head.commit
    for text, place in ((snapshot.working_text, ""), (snapshot.committed_text, " of the last commit")):
        if (line := parse(text).conflict_line) is not None:
            where = f"it begins in line {line + 1:,}{place}"
            return f"MEMORY.md is in a merge conflict: {where}. It is read again when a person has resolved it."
    if snapshot.working is None and git.last_change(snapshot.spot.repository, head, snapshot.spot.path):
        return "MEMORY.md was deleted, and stays so; promotions wait. To begin a new one: manage.py memory-file init"
    if snapshot.is_edited and snapshot.spot.is_ours and _has_new_credential(snapshot):
        return "MEMORY.md holds what looks like a credential, and is not committed. Take it out of the file."
    return ""


def _nobodys(row: MemoryFile, commits: Sequence[git.Commit], cut_off: Collection[str], at: datetime) -> dict[str, str]:
    """Return why commits are nobody's word for what their rows do not say: who was at work, or who committed.

    A line that was seen before it was committed may be an agent's of the day before.
    """
    if row.project is None:
        return {one.sha: committers.NOT_TRUSTED for one in commits}
    lines = parse(row.text).lines
    had_uncommitted = any(pk is None and text.strip() for (text, _), pk in zip(lines, row.blame, strict=False))
    since = row.read_at - LOOKED_BACK if row.read_at and had_uncommitted else row.read_at
    seen = committers.seen_with([one.sha for one in commits], committers.Look(row.project, since, at))
    by_agents = {
        one.sha: committers.NAMES_AGENT
        for one in commits
        if not one.is_ours and committers.AGENTS.search(f"{one.committer} {one.committer_email}")
    }
    return {**seen, **by_agents, **dict.fromkeys(cut_off, committers.CUT_OFF)}


def _store_commits(row: MemoryFile, commits: Sequence[git.Commit], cut_off: Collection[str], at: datetime) -> None:
    nobodys = _nobodys(row, commits, cut_off, at) if commits else {}
    uuids = {uuid for one in commits for uuid in one.trailers.get("Proposal", []) if UUID.fullmatch(uuid)}
    by_uuid = {str(uuid): pk for uuid, pk in row.proposals.filter(uuid__in=uuids).values_list("uuid", "pk")}
    MemoryFileCommit.objects.bulk_create(
        [
            MemoryFileCommit(
                file=row,
                sha=one.sha,
                at=one.at,
                kind=kind_of(one),
                author=fold(one.author)[:200],
                email=fold(one.author_email)[:200],
                signer=fold(one.signer)[:200],
                agents=nobodys[one.sha],
                is_ours=one.is_ours and one.author == git.NAME,
                subject=fold(one.subject)[:500],
                body=one.body.replace("\0", "")[:LONGEST_BODY],
                added=one.added,
                removed=one.removed,
                proposal_id=next((by_uuid[uuid] for uuid in one.trailers.get("Proposal", []) if uuid in by_uuid), None),
            )
            for one in reversed(commits)
        ],
        ignore_conflicts=True,
    )


def kind_of(commit: git.Commit) -> CommitKind:
    if commit.is_ours and "Reverts" in commit.trailers:
        return CommitKind.REVERT
    if commit.is_ours and commit.author == git.NAME:
        return CommitKind.PROMOTION if "Proposal" in commit.trailers else CommitKind.FIRST
    return CommitKind.EDIT


def _blame_of(row: MemoryFile, snapshot: Seen, text: str, blamed: Sequence[str]) -> list[int | None]:
    """Return for each line of `text` the number of its commit's row; None for what is not committed."""
    rows = dict(row.commits.filter(sha__in=set(blamed)).values_list("sha", "pk"))
    lines = parse(text).texts
    of: list[int | None] = [None] * len(lines)
    for there, here in same_lines(parse(snapshot.committed_text).texts, lines):
        of[here] = rows.get(blamed[there])
    return of


def _find_conflicts(row: MemoryFile, before: Document, after: Document, at: datetime) -> None:
    """Send the proposals about entries that somebody changed or removed to a person, with both texts."""
    gone = {entry.text for entry in document.difference(before, after).removed}
    if not gone:
        return
    states = (ProposalState.WAITING, ProposalState.APPROVED)
    for one in row.proposals.filter(state__in=states).exclude(target=""):
        theirs = str(one.conflict.get("theirs", "")) if one.conflict else ""
        if theirs and document.find(after, theirs, one.section) is not None:
            continue  # it is about that text already
        entry = document.find(before, one.target, one.section)
        if entry is not None and entry.text in gone and document.find(after, one.target, one.section) is None:
            set_conflict(one, before, after, at)


def set_conflict(proposal: Proposal, before: Document, after: Document, at: datetime) -> None:
    theirs, line = document.became(before, after, proposal.target, proposal.section)
    conflict = {"base": proposal.target, "theirs": theirs, "ours": proposal.text, "line": line}
    reason = "The entry was changed meanwhile." if theirs else "The entry was removed meanwhile."
    try:
        proposals.review(proposal.pk, reason=reason, conflict=conflict, at=at)
    except Conflict:  # it waits for a person already, who gets both texts
        Proposal.objects.filter(pk=proposal.pk, state=ProposalState.WAITING).update(conflict=conflict)


def _least_used(row: MemoryFile) -> list[Entry]:
    """Return the entries of claudeops, then those of people; in each what was recalled least, the oldest first."""
    used = dict(
        row.proposals.filter(state=ProposalState.PROMOTED)
        .exclude(evidence__memory=None)
        .values_list("text", "evidence__memory__recall_count")
        .order_by("evidence__memory__recall_count")
    )
    ours = set(row.proposals.filter(state=ProposalState.PROMOTED).values_list("text", flat=True))
    return sorted(
        (one for one in parse(row.text).entries if one.section in SECTIONS),
        key=lambda one: (one.text not in ours, used.get(one.text) or 0, str(one.date or ""), one.line),
    )


def replaceable(row: MemoryFile) -> Entry | None:
    """Return the entry that a full file gives up for a new one: no person approved it, none wrote it."""
    promoted = row.proposals.filter(state=ProposalState.PROMOTED).values_list("text", "decided_by")
    by_machine = {text for text, by in promoted if not proposals.is_person(by)}
    by_people = {text for text, by in promoted if proposals.is_person(by)}
    entries = [one for one in _least_used(row) if one.text in by_machine - by_people]
    decided = vouched.vouched([one.text for one in entries], row.project_id)
    return next((one for one in entries if one.text not in decided), None)


def propose_removals(row: MemoryFile, at: datetime) -> None:
    """Propose to remove what was recalled least, once for each entry. A person decides."""
    count = len(parse(row.text).entries)
    for entry in _least_used(row)[: min(count - WARN_AT + 1, MOST_PRUNED)]:
        words = f"prune {row.pk} {entry.section} {entry.text}"
        proposals.propose(
            row,
            ProposalKind.REMOVE,
            entry.section,
            text="",
            target=entry.text,
            evidence=[],
            confidence=None,
            by=proposals.SYSTEM,
            key=hashlib.sha256(words.encode()).hexdigest(),
            tier=Tier.PERSON,
            at=at,
        )
