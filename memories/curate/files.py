"""The MEMORY.md files: take over what people wrote, commit what was approved, edit and revert.

The repository is the truth and the row its copy. One process of the file's host works on a file at a time. A change is
prepared as objects of git, noted in `MemoryFile.pending`, made by moving the branch, and then completed in the index,
the working tree and the database; a process that is killed in between leaves what the next one completes.
"""

from __future__ import annotations

import difflib
import hashlib
import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from claudeops.lib.locks import file_lock
from claudeops.lib.secrets import find as find_credentials
from claudeops.lib.secrets import mask
from memories import telemetry
from memories.capture.text import fold
from memories.curate import document, git, proposals
from memories.curate.document import SECTIONS, WARN_AT, Document, Full, Misfit, Missing, parse, render
from memories.curate.git import Blob, GitError, Head
from memories.curate.working_tree import (
    Place,
    Spot,
    Unusable,
    check_writable,
    decode,
    find_spot,
    place_of,
    read_file,
    stamp,
    write_file,
)
from memories.errors import Conflict, MemoriesError
from memories.models import (
    CommitKind,
    MemoryFile,
    MemoryFileCommit,
    Project,
    Proposal,
    ProposalDecision,
    ProposalKind,
    ProposalState,
    ProposalVerdict,
    Tier,
    to_utc,
)

__all__ = ["Place", "Promoted", "Unusable", "file_of", "place_of"]

logger = logging.getLogger(__name__)

SYSTEM = "system"
BY_HAND = "operator (edited by hand)"
MOST_PRUNED = 20
"""Removals that are proposed at once when a file is nearly full."""
VERBS = {ProposalKind.ADD: "Add to", ProposalKind.CHANGE: "Change in", ProposalKind.REMOVE: "Remove from"}
LONGEST_SUBJECT = 72
LONGEST_BODY = 10_000
LONGEST_BRANCH = 255
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Edit = Callable[[Document], Document]


@dataclass(frozen=True, slots=True)
class Promoted:
    """What a run committed: the proposals, and in words why others wait."""

    done: tuple[int, ...] = ()
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as it is now: in the commit that is checked out, and in the working tree (None: not there)."""

    spot: Spot
    head: Head
    committed: Blob | None
    working: bytes | None

    @property
    def committed_text(self) -> str:
        return decode(self.committed.data) if self.committed else ""

    @property
    def working_text(self) -> str:
        return decode(self.working) if self.working is not None else ""

    @property
    def is_edited(self) -> bool:
        """Whether a person changed the file since its commit, line ends apart."""
        if self.working is None or self.committed is None:
            return (self.working is None) != (self.committed is None)
        return self.working.replace(b"\r\n", b"\n") != self.committed.data.replace(b"\r\n", b"\n")


@dataclass(frozen=True, slots=True)
class Change:
    """A change to commit. `proposal` is promoted by it; `reverts` is the commit that it undoes."""

    edit: Edit
    message: str
    author: tuple[str, str] = (git.NAME, git.EMAIL)
    proposal: int | None = None
    reverts: str = ""
    rejects: int | None = None
    by: str = SYSTEM


def file_of(project: Project | None) -> MemoryFile:
    """Return the row of a project's file (None: of the global one), made when it is missing; no git is run."""
    place = place_of(project)
    found, _ = MemoryFile.objects.get_or_create(
        project=project,
        defaults={"host": settings.CLAUDEOPS_HOST, "repository": str(place.folder), "path": place.path},
    )
    return found


def refresh(file: MemoryFile, *, at: datetime | None = None) -> MemoryFile:
    """Read the file if it or HEAD changed; otherwise a few looks at files, and no git.

    While another process works on the file, its row is returned as it is. Call it outside of a transaction.
    """
    if file.host != settings.CLAUDEOPS_HOST:
        return file
    try:
        spot = find_spot(place_of(file.project))
        if not file.pending and file.stamp and file.stamp == (stamp(spot) if spot else "none"):
            return file
    except (MemoriesError, OSError):
        pass  # the reading says what is wrong
    with _alone(file, wait=False) as mine:
        return _read(file.pk, to_utc(at))[0] if mine else file


def read(file: MemoryFile, *, at: datetime | None = None) -> MemoryFile:
    """Return the row with what is in the repository now: what people edited or committed is taken over.

    Whatever state the repository is in, nothing is raised: `problem` says it, and the text stays that of the last
    reading. On another host than the file's, the row is returned as it is stored.
    """
    if file.host != settings.CLAUDEOPS_HOST:
        return MemoryFile.objects.select_related("project").get(pk=file.pk)
    with _alone(file):
        return _read(file.pk, to_utc(at))[0]


def init(project: Project | None, *, at: datetime | None = None) -> MemoryFile:
    """Make the file, on this host, where there is none: the repository too, in the data folder. Raises MemoriesError.

    In a repository of a person's it must be there; the file is committed as a first version.
    """
    when, row = to_utc(at), file_of(project)
    if row.host != settings.CLAUDEOPS_HOST:
        MemoryFile.objects.filter(pk=row.pk).update(host=settings.CLAUDEOPS_HOST, stamp="", pending={})
    known = row.text
    with _alone(row):
        seen = _ready(row, when, may_begin=True)
        if seen.working is None:
            # A repository that was lost begins with the text that the database has.
            text = f"{document.TITLE}\n" if seen.head.commit or not known else known
            _commit(row, seen, Change(lambda _: parse(text), f"Begin {seen.spot.path}\n"), when)
        return _read(row.pk, when)[0]


def promote_due(*, at: datetime | None = None) -> Promoted:
    """Commit what is approved, one commit for each proposal, in the files of this host. What cannot be waits, said."""
    when, done, waiting = to_utc(at), list[int](), list[str]()
    due = Q(proposals__state=ProposalState.APPROVED) | ~Q(pending={})
    rows = MemoryFile.objects.filter(due, host=settings.CLAUDEOPS_HOST).distinct().order_by("pk")
    for row in rows:
        with _alone(row):
            found = _promote_all(row, when)
        done += found.done
        waiting += found.waiting
    return Promoted(tuple(done), tuple(waiting))


def keep_here(*, at: datetime | None = None) -> Promoted:
    """Take over what changed in the files of this host, and commit what is approved. The task of each minute."""
    for row in MemoryFile.objects.filter(host=settings.CLAUDEOPS_HOST).select_related("project").order_by("pk"):
        refresh(row, at=at)
    return promote_due(at=at)


def adopt(gone: Collection[str]) -> int:
    """Take over files in the data folder whose host is `gone`, if this one has their repository: it was renamed.

    A repository of a person's may have clones, so that its file stays until a person runs `memory-file init`.
    """
    adopted = 0
    for row in MemoryFile.objects.filter(host__in=gone).select_related("project"):
        place = place_of(row.project)
        spot = find_spot(place) if place.is_ours else None
        if spot is not None and row.commit and git.is_ancestor(spot.repository, row.commit, row.commit):
            still = MemoryFile.objects.filter(pk=row.pk, host=row.host)
            adopted += still.update(host=settings.CLAUDEOPS_HOST, stamp="")
    return adopted


def hosts() -> list[str]:
    """Return the hosts that have a file."""
    return list(MemoryFile.objects.order_by("host").values_list("host", flat=True).distinct())


def edit(file: MemoryFile, text: str, *, by: str, seen: str, at: datetime | None = None) -> MemoryFile:
    """Commit `text` as the whole file, in the name of the person `by`. `seen` is the SHA-256 of what they edited.

    Raises Conflict when the file changed since, and Unusable for a text with a credential or a repository that cannot
    be written. An unchanged text changes nothing.
    """
    when, row = to_utc(at), _of_this_host(file)
    if find_credentials(text):
        raise Unusable("The text holds what looks like a credential; nothing was saved.", "Take it out.")
    with _alone(row):
        now = _ready(row, when, may_begin=True)
        if find_credentials(now.working_text):  # the person saw a mask in its place, and would write that
            raise Unusable(
                "MEMORY.md holds what looks like a credential, which is not shown; nothing was saved.",
                "Take it out of the file in its repository first.",
            )
        row = MemoryFile.objects.get(pk=row.pk)
        if row.sha256 != seen:
            raise Conflict("MEMORY.md was changed since you opened it; nothing was saved.", current=row)
        wanted = parse(text.replace("\r\n", "\n").replace("\r", "\n"))
        change = Change(
            lambda old: _with_ends(wanted, old),
            _message(f"Edit {now.spot.path}", [("Edited-by", by)]),
            _person(by),
            by=by,
        )
        _commit(row, now, change, when)
        return _read(row.pk, when)[0]


def revert(file: MemoryFile, sha: str, *, by: str, at: datetime | None = None, settles: bool = True) -> MemoryFile:
    """Commit what undoes the commit `sha`, in the name of the person `by`; reverting it again changes nothing.

    The proposal that it promoted is rejected, unless `settles` is False. Raises Conflict when later changes touch the
    same lines, and MemoriesError for a repository that cannot be written or a commit that is not the file's.
    """
    when, row = to_utc(at), _of_this_host(file)
    with _alone(row):
        seen = _ready(row, when)
        commit = row.commits.filter(sha=sha).select_related("proposal").first()
        if commit is None:
            raise Unusable(f"MEMORY.md has no commit {sha[:12]!r}.", "List them: manage.py memory-file log")
        if _is_reverted(commit):
            return _read(row.pk, when)[0]
        repository, path = seen.spot.repository, seen.spot.path
        after = git.blob_at(repository, sha, path)
        before = git.blob_at(repository, git.parent(repository, sha), path)
        texts = [parse(decode(one.data)) if one else Document() for one in (before, after)]
        lines = [("Reverts", sha), ("Reverted-by", by)]
        rejected = commit.proposal_id if settles and commit.kind == CommitKind.PROMOTION else None
        change = Change(
            lambda now: _undone(now, *texts),
            _message(f"Revert {sha[:7]}: {commit.subject}", lines),
            _person(by),
            reverts=sha,
            rejects=rejected,
            by=by,
        )
        _commit(row, seen, change, when)
        return _read(row.pk, when)[0]


def is_reverted(file: MemoryFile, sha: str) -> bool:
    """Whether a later commit of the file, as it was last read, undid the commit `sha`."""
    commit = file.commits.filter(sha=sha).first()
    return commit is not None and _is_reverted(commit)


def log(file: MemoryFile, *, most: int = 100) -> list[MemoryFileCommit]:
    """Return the commits of the file as they were last read, the latest first."""
    return list(file.commits.select_related("proposal")[:most])


def blame(file: MemoryFile) -> list[tuple[str, MemoryFileCommit | None]]:
    """Return each line of the file with the commit that it is from; None for one that is not committed."""
    commits = file.commits.in_bulk({pk for pk in file.blame if pk})
    lines = [text for text, _ in parse(file.text).lines]
    return [(text, commits.get(pk)) for text, pk in zip(lines, [*file.blame, *[None] * len(lines)], strict=False)]


# Reading.


@contextmanager
def _alone(file: MemoryFile, *, wait: bool = True) -> Iterator[bool]:
    """Let no other process of this host work on the file; the lock ends with its process."""
    path = Path(settings.CLAUDEOPS_DATA_DIR) / "locks" / f"memory-file-{file.pk}"
    with file_lock(path, wait=wait) as taken:
        yield taken


def _of_this_host(file: MemoryFile) -> MemoryFile:
    if file.host != settings.CLAUDEOPS_HOST:
        raise Unusable(f"The repository of {file} is on the host {file.host}.", "Do it there.")
    return file


def _ready(row: MemoryFile, at: datetime, *, may_begin: bool = False) -> Seen:
    """Read the file, and return it as one that may be written. Raises MemoriesError with why it may not."""
    place = place_of(row.project)
    if place.is_ours and find_spot(place) is None:
        git.init(place.folder)
    row, seen = _read(row.pk, at)
    gone = seen is not None and seen.working is None and may_begin
    if seen is None or (row.problem and not gone):
        raise Unusable(row.problem or f"{place.folder} is in no git repository.", "Run: git init")
    check_writable(seen.spot)
    return seen


def _read(pk: int, at: datetime) -> tuple[MemoryFile, Seen | None]:
    row = MemoryFile.objects.select_related("project").get(pk=pk)
    try:
        spot = find_spot(place_of(row.project))
        if spot is None:
            _without_repository(row, at)
            return row, None
        _complete(row, spot, at)
        seen = _look(row, spot)
        if seen.is_edited and spot.is_ours and not _has_new_credential(seen):
            by_hand = Change(lambda _: Document(), _message(f"Edit {spot.path} by hand", []), _person(BY_HAND))
            _commit_as_it_is(row, seen, by_hand, at)
            seen = _look(row, spot)
        _save(row, seen, at)
    except (MemoriesError, OSError) as error:
        _say(row, f"{error} {getattr(error, 'fix', '')}".strip(), at)
        return row, None
    return row, seen


def _look(row: MemoryFile, spot: Spot) -> Seen:
    """Return the file as it is, on the branch that is followed. Raises GitError and Unusable for any other state."""
    repository = spot.repository
    if doing := git.in_progress(repository):
        raise Unusable(f"The repository is in the middle of {doing}.", "Promotions wait until it is finished.")
    head = git.head(repository)
    if len(head.branch) > LONGEST_BRANCH:
        raise Unusable(f"The name of the branch has more than {LONGEST_BRANCH} characters.", "Rename it.")
    if not head.branch:
        raise Unusable("The repository has a detached HEAD.", f"Check out the branch {row.branch or 'main'}.")
    if row.branch and head.branch != row.branch and git.branch_exists(repository, row.branch):
        raise Unusable(
            f"The branch {head.branch} is checked out; MEMORY.md is kept on {row.branch}.",
            f"Check out {row.branch}; promotions wait.",
        )
    if git.is_filtered(repository, spot.path):
        raise Unusable("MEMORY.md goes through a filter of .gitattributes, which is not run.", "Exempt the file.")
    return Seen(spot, head, git.blob_at(repository, head.commit, spot.path), read_file(spot))


def _without_repository(row: MemoryFile, at: datetime) -> None:
    place = place_of(row.project)
    if not place.is_ours:
        _say(row, f"{place.folder} is in no git repository on {row.host}. Run: git init", at)
    elif row.commit:
        _say(row, f"The repository {place.folder} is gone. Restore it from a backup, or run: memory-file init", at)
    else:
        _store(row, stamp="none", read_at=at)


def _has_new_credential(seen: Seen) -> bool:
    """Whether an edit by hand added a credential: it is not made permanent by a commit."""
    known = {text for text, _ in parse(seen.committed_text).lines}
    return any(find_credentials(text) for text, _ in parse(seen.working_text).lines if text not in known)


def _save(row: MemoryFile, seen: Seen, at: datetime, **columns: Any) -> None:
    """Store what the repository holds, its new commits, and what an edit means for proposals, in one transaction."""
    text, repository, path = mask(seen.working_text), seen.spot.repository, seen.spot.path
    commits, is_whole = list[git.Commit](), False
    if seen.head.commit and seen.head.commit != row.commit:
        is_whole = not (row.commit and git.is_ancestor(repository, row.commit, seen.head.commit))
        commits = git.log(repository, seen.head.commit, path, since="" if is_whole else row.commit)
    blamed = list[str]()
    if seen.committed and (commits or text != row.text):
        blamed = git.blame(repository, seen.head.commit, path)
    problem = _problem_of(seen)
    mark = stamp(seen.spot)
    with transaction.atomic():
        if is_whole:
            row.commits.exclude(sha__in=[one.sha for one in commits]).delete()
        _store_commits(row, commits)
        if blamed or not seen.committed:
            columns["blame"] = _blame_of(row, seen, text, blamed)
        if row.read_at is not None:
            _find_conflicts(row, parse(row.text), parse(text), at)
        _store(
            row,
            repository=str(repository.root),
            path=path,
            branch=seen.head.branch,
            commit=seen.head.commit,
            text=text,
            sha256=hashlib.sha256(seen.working).hexdigest() if seen.working is not None else "",
            entries=len(parse(text).entries),
            stamp=mark,
            read_at=at,
            problem=problem,
            problem_since=(row.problem_since or at) if problem else None,
            **columns,
        )
    if row.entries >= WARN_AT:
        _propose_removals(row, at)


def _problem_of(seen: Seen) -> str:
    head = seen.head.commit
    if seen.working is None and git.has_history(seen.spot.repository, head, seen.spot.path):
        return "MEMORY.md was deleted, and stays so; promotions wait. To begin a new one: manage.py memory-file init"
    if seen.is_edited and seen.spot.is_ours and _has_new_credential(seen):
        return "MEMORY.md holds what looks like a credential, and is not committed. Take it out of the file."
    return ""


def _store_commits(row: MemoryFile, commits: Sequence[git.Commit]) -> None:
    uuids = {uuid for one in commits for uuid in one.trailers.get("Proposal", []) if UUID.fullmatch(uuid)}
    known = {str(uuid): pk for uuid, pk in row.proposals.filter(uuid__in=uuids).values_list("uuid", "pk")}
    MemoryFileCommit.objects.bulk_create(
        [
            MemoryFileCommit(
                file=row,
                sha=one.sha,
                at=one.at,
                kind=kind_of(one),
                author=fold(one.author)[:200],
                is_ours=one.is_ours and one.author == git.NAME,
                subject=fold(one.subject)[:500],
                body=one.body.replace("\0", "")[:LONGEST_BODY],
                added=one.added,
                removed=one.removed,
                proposal_id=next((known[uuid] for uuid in one.trailers.get("Proposal", []) if uuid in known), None),
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


def _blame_of(row: MemoryFile, seen: Seen, text: str, blamed: Sequence[str]) -> list[int | None]:
    """Return for each line of `text` the number of its commit's row; None for what is not committed."""
    rows = dict(row.commits.filter(sha__in=set(blamed)).values_list("sha", "pk"))
    lines, found = parse(text).lines, [line for line, _ in parse(seen.committed_text).lines]
    of: list[int | None] = [None] * len(lines)
    matcher = difflib.SequenceMatcher(None, found, [line for line, _ in lines], autojunk=False)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            if block.a + step < len(blamed):
                of[block.b + step] = rows.get(blamed[block.a + step])
    return of


def _say(row: MemoryFile, problem: str, at: datetime) -> None:
    _store(row, problem=problem[:500], problem_since=row.problem_since or at, stamp="")


def _store(row: MemoryFile, **columns: Any) -> None:
    MemoryFile.objects.filter(pk=row.pk).update(**columns)
    for name, value in columns.items():
        setattr(row, name, value)


# What an edit means for proposals.


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
            _conflict(one, before, after, at)


def _conflict(proposal: Proposal, before: Document, after: Document, at: datetime) -> None:
    theirs, line = document.became(before, after, proposal.target, proposal.section)
    conflict = {"base": proposal.target, "theirs": theirs, "ours": proposal.text, "line": line}
    reason = "The entry was changed meanwhile." if theirs else "The entry was removed meanwhile."
    try:
        proposals.review(proposal.pk, reason=reason, conflict=conflict, at=at)
    except Conflict:  # it waits for a person already, who gets both texts
        Proposal.objects.filter(pk=proposal.pk, state=ProposalState.WAITING).update(conflict=conflict)


def _propose_removals(row: MemoryFile, at: datetime) -> None:
    """Propose to remove what was recalled least, the oldest first; once for each entry. A person decides."""
    entries = parse(row.text).entries
    used = dict(
        row.proposals.filter(state=ProposalState.PROMOTED)
        .exclude(evidence__memory=None)
        .values_list("text", "evidence__memory__recall_count")
        .order_by("evidence__memory__recall_count")
    )
    ours = set(row.proposals.filter(state=ProposalState.PROMOTED).values_list("text", flat=True))
    ranked = sorted(
        (one for one in entries if one.section in SECTIONS),
        key=lambda one: (one.text not in ours, used.get(one.text) or 0, str(one.date or ""), one.line),
    )
    for entry in ranked[: min(len(entries) - WARN_AT + 1, MOST_PRUNED)]:
        words = f"prune {row.pk} {entry.section} {entry.text}"
        proposals.propose(
            row,
            ProposalKind.REMOVE,
            entry.section,
            text="",
            target=entry.text,
            evidence=[],
            confidence=None,
            by=SYSTEM,
            key=hashlib.sha256(words.encode()).hexdigest(),
            tier=Tier.PERSON,
            at=at,
        )


# Writing.


def _promote_all(row: MemoryFile, at: datetime) -> Promoted:
    done: list[int] = []
    approved = row.proposals.filter(state=ProposalState.APPROVED).order_by("decided_at", "pk")
    try:
        seen = _ready(row, at)
    except (MemoriesError, OSError) as error:
        words = f"{error} {getattr(error, 'fix', '')}".strip()
        row.refresh_from_db()
        if not row.problem:
            _say(row, words, at)
        left = approved.exclude(problem=words[:500])
        count = left.update(problem=words)
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
            if _promote(row, seen, proposal, at):
                done.append(proposal.pk)
        except (MemoriesError, OSError) as error:
            words = f"{error} {getattr(error, 'fix', '')}".strip()
            Proposal.objects.filter(pk=proposal.pk, state=ProposalState.APPROVED).update(problem=words)
            waiting.append(f"proposal {proposal.pk}: {words}")
            if isinstance(error, Full):
                _propose_removals(row, at)
        again, fresh = _read(row.pk, at)
        if fresh is None or again.problem:
            break
        seen = fresh
    return Promoted(tuple(done), tuple(waiting))


def _promote(row: MemoryFile, seen: Seen, proposal: Proposal, at: datetime) -> bool:
    """Commit one proposal; False for one that was not, because of a conflict or because nothing is left to do."""
    for commit in row.commits.filter(proposal=proposal, kind=CommitKind.PROMOTION):
        if not _is_reverted(commit):
            proposals.mark_promoted(proposal.pk, commit.sha, at=at)
            return True
    working = parse(seen.working_text)
    change = Change(_edit_of(proposal, working, at), _promotion_message(proposal), proposal=proposal.pk)
    try:
        change.edit(working)
    except Missing:
        if proposal.kind == ProposalKind.REMOVE and proposal.conflict:
            _reject(proposal, SYSTEM, "The entry is gone already.", at)
        else:
            _conflict(proposal, parse(seen.committed_text), working, at)
        return False
    _commit(row, seen, change, at)
    return True


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


def _commit(row: MemoryFile, seen: Seen, change: Change, at: datetime) -> None:
    """Make the change in the commit, the index and the working tree. Raises MemoriesError; then nothing was done."""
    committed = render(change.edit(parse(seen.committed_text)))
    working = render(change.edit(parse(seen.working_text)))
    if committed == seen.committed_text and working == seen.working_text and seen.committed:
        return
    _write(row, seen, change, committed.encode(), working.encode(), at)


def _commit_as_it_is(row: MemoryFile, seen: Seen, change: Change, at: datetime) -> None:
    """Commit the working tree's file, or that it is gone, as it is."""
    _write(row, seen, change, seen.working, seen.working, at)


def _write(
    row: MemoryFile, seen: Seen, change: Change, committed: bytes | None, working: bytes | None, at: datetime
) -> None:
    check_writable(seen.spot)
    repository, path = seen.spot.repository, seen.spot.path
    mode = seen.committed.mode if seen.committed else "100644"
    new = git.write_blob(repository, committed) if committed is not None else ""
    staged = git.blob_in_index(repository, path)
    index = _staged(seen, staged, change, new)
    commit = git.make_commit(
        repository,
        seen.head.commit,
        path,
        (mode, new) if new else None,
        change.message,
        author=change.author,
        at=at,
    )
    pending = {
        "commit": commit,
        "branch": seen.head.branch,
        "mode": staged.mode if staged else mode,
        "index": index,
        "index_before": staged.sha if staged else "",
        "before": git.write_blob(repository, seen.working) if seen.working is not None else "",
        "after": git.write_blob(repository, working) if working is not None else "",
        "proposal": change.proposal,
        "rejects": change.rejects,
        "by": change.by,
    }
    _store(row, pending=pending)
    subject = change.message.partition("\n")[0]
    try:
        git.move_branch(repository, seen.head.branch, commit, seen.head.commit, f"claudeops: {subject}")
    except GitError:
        _store(row, pending={})
        raise
    _complete(row, seen.spot, at)


def _staged(seen: Seen, staged: Blob | None, change: Change, new: str) -> str:
    """Return the object that the index is to have: what a person staged of the file stays, with the change in it."""
    if staged is None or (seen.committed and staged.sha == seen.committed.sha):
        return new
    try:
        text = render(change.edit(parse(decode(staged.data))))
    except MemoriesError:
        return staged.sha
    return git.write_blob(seen.spot.repository, text.encode())


def _complete(row: MemoryFile, spot: Spot, at: datetime) -> None:
    """Complete the change that is noted in the row, wherever it was broken off; nothing the second time."""
    pending: dict[str, Any] = row.pending
    if not pending:
        return
    repository, commit = spot.repository, str(pending["commit"])
    tip = git.tip(repository, str(pending["branch"]))
    if not tip or not git.is_ancestor(repository, commit, tip):
        _store(row, pending={})  # the branch was not moved: it never happened
        return
    head = git.head(repository)
    if head.branch == pending["branch"] and not git.in_progress(repository):
        _complete_index(spot, pending)
        _complete_file(spot, pending)
    with transaction.atomic():
        _settle(pending, at)
        _store(row, pending={})


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
        merged = document.merge(base, parse(decode(now or b"")), parse(decode(after)))
        if now is None or merged.clashes:
            return
        after = render(merged.document).encode()
    write_file(spot, after)


def _settle(pending: dict[str, Any], at: datetime) -> None:
    """Note on the proposals what a commit did to them."""
    if pending["proposal"]:
        try:
            proposals.mark_promoted(pending["proposal"], pending["commit"], at=at)
        except MemoriesError as error:  # a person took the approval back meanwhile; the commit can be reverted
            logger.warning("commit %s: %s", pending["commit"], error)
        key = f"promote {pending['commit']}"
        telemetry.record(
            "memory.promote.completed", component="curate", source="promote", key=key[:64], at=at, promoted=1
        )
    if pending["rejects"]:
        proposal = Proposal.objects.filter(pk=pending["rejects"]).first()
        if proposal is not None:
            _reject(proposal, pending["by"], "Its commit was reverted.", at)


def _reject(proposal: Proposal, by: str, reason: str, at: datetime) -> None:
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


def _undone(now: Document, before: Document, after: Document) -> Document:
    """Return `now` without what made `before` to `after`. Raises Conflict for what later edits touched, too."""
    made = document.difference(before, after)
    merged = document.merge(after, now, before)
    wanted = document.difference(after, before)
    if not merged.clashes and document.keeps_others(now, merged.document, made.added, wanted.added):
        return merged.document
    try:
        for entry in made.added:
            now = document.remove(now, entry.text, section=entry.section)
        for entry in made.removed:
            now = document.put_back(now, entry)
    except Misfit as error:
        raise Conflict(f"A later change touches the same lines: {error}", "Edit the file instead.") from None
    return now


def _is_reverted(commit: MemoryFileCommit) -> bool:
    later = MemoryFileCommit.objects.filter(file=commit.file_id, kind=CommitKind.REVERT)
    return later.filter(body__contains=f"Reverts: {commit.sha}").exists()


def _with_ends(wanted: Document, old: Document) -> Document:
    """Return a text with the line ends and the byte order mark that the file had."""
    end = old.line_end
    lines = [(text, end if had else "") for text, had in wanted.lines]
    if old.lines and old.lines[0][0].startswith("\ufeff") and lines and not lines[0][0].startswith("\ufeff"):
        lines[0] = (f"\ufeff{lines[0][0]}", lines[0][1])
    return Document(tuple(lines))


def _promotion_message(proposal: Proposal) -> str:
    verb, section = VERBS[ProposalKind(proposal.kind)], SECTIONS.get(proposal.section, proposal.section)
    lines = [("Proposal", str(proposal.uuid)), ("Kind", proposal.kind)]
    for one in proposal.evidence.all():
        session = f" (session {one.session_id})" if one.session_id else ""
        lines.append(("Evidence", f"memory {one.memory_id or one.memory_uuid}{session}"))
    lines += [("Trust", proposal.trust), ("Approved-by", proposal.decided_by or SYSTEM)]
    return _message(f"{verb} {section}: {proposal.text or proposal.target}", lines)


def _message(subject: str, lines: Sequence[tuple[str, str]]) -> str:
    """Return a message of a commit: one line, and trailers; nothing in either can open another line."""
    first = fold(mask(fold(subject)))
    first = first if len(first) <= LONGEST_SUBJECT else f"{first[: LONGEST_SUBJECT - 1]}…"
    trailers = "".join(f"{name}: {fold(mask(value))[:200]}\n" for name, value in lines)
    return f"{first}\n\n{trailers}" if trailers else f"{first}\n"


def _person(name: str) -> tuple[str, str]:
    slug = "".join(one if one.isalnum() and one.isascii() else "-" for one in name.partition(" ")[0]) or "operator"
    return name, f"{slug}@localhost"
