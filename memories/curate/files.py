"""The MEMORY.md files: take over what people wrote, commit what was approved, edit and revert.

The repository is the truth and the row its copy. One process of the file's host works on a file at a time.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.conf import settings

from claudeops.lib.domain_error import DomainError
from claudeops.lib.secrets import find as find_credentials
from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file import git
from claudeops.lib.tracked_file.disk import Unusable
from memories.capture.text import fold
from memories.curate import document
from memories.curate.commits import Change, commit_change, is_undone, message, person, with_line_ends, without
from memories.curate.document import Document, parse
from memories.curate.promotion import Promoted, promote_due
from memories.curate.reading import read_row, ready
from memories.curate.state import alone, of_this_host
from memories.curate.working_tree import Place, decode, find_spot, place_of, stamp
from memories.errors import Conflict
from memories.lifecycle import vouched
from memories.models import CommitKind, MemoryFile, MemoryFileCommit, Project, to_utc

__all__ = [
    "Place",
    "Promoted",
    "Unusable",
    "adopt",
    "blame",
    "edit",
    "file_of",
    "hosts",
    "init",
    "is_reverted",
    "keep_here",
    "log",
    "place_of",
    "promote_due",
    "read",
    "refresh",
    "revert",
]


def file_of(project: Project | None) -> MemoryFile:
    """Return the row of a project's file (None: of the global one), made when it is missing; no git is run."""
    place = place_of(project)
    row, _ = MemoryFile.objects.get_or_create(
        project=project,
        defaults={"host": settings.CLAUDEOPS_HOST, "repository": str(place.folder), "path": place.path},
    )
    return row


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
    except (DomainError, OSError):
        pass  # the reading says what is wrong
    with alone(file, wait=False) as mine:
        return read_row(file.pk, to_utc(at))[0] if mine else file


def read(file: MemoryFile, *, at: datetime | None = None) -> MemoryFile:
    """Return the row with what is in the repository now: what people edited or committed is taken over.

    Whatever state the repository is in, nothing is raised: `problem` says it, and the text stays that of the last
    reading. On another host than the file's, the row is returned as it is stored.
    """
    if file.host != settings.CLAUDEOPS_HOST:
        return MemoryFile.objects.select_related("project").get(pk=file.pk)
    with alone(file):
        return read_row(file.pk, to_utc(at))[0]


def init(project: Project | None, *, at: datetime | None = None) -> MemoryFile:
    """Make the file, on this host, where there is none: the repository too, in the data folder. Raises DomainError.

    In a repository of a person's it must be there; the file is committed as a first version.
    """
    when, row = to_utc(at), file_of(project)
    if row.host != settings.CLAUDEOPS_HOST:
        MemoryFile.objects.filter(pk=row.pk).update(host=settings.CLAUDEOPS_HOST, stamp="", pending={})
    row_text = row.text
    with alone(row):
        snapshot = ready(row, when, may_begin=True)
        if snapshot.working is None:
            # A repository that was lost begins with the text that the database has.
            text = f"{document.TITLE}\n" if snapshot.head.commit or not row_text else row_text
            commit_change(row, snapshot, Change(lambda _: parse(text), f"Begin {snapshot.spot.path}\n"), when)
        return read_row(row.pk, when)[0]


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
    when, row = to_utc(at), of_this_host(file)
    if find_credentials(text):
        raise Unusable("The text holds what looks like a credential; nothing was saved.", "Take it out.")
    wanted = parse(text.replace("\r\n", "\n").replace("\r", "\n"))
    if wanted.conflict_line is not None:
        raise Unusable(
            f"A merge conflict begins in line {wanted.conflict_line + 1:,}; nothing was saved.", "Resolve it."
        )
    with alone(row):
        now = ready(row, when, may_begin=True)
        if find_credentials(now.working_text):  # the person saw a mask in its place, and would write that
            raise Unusable(
                "MEMORY.md holds what looks like a credential, which is not shown; nothing was saved.",
                "Take it out of the file in its repository first.",
            )
        row = MemoryFile.objects.get(pk=row.pk)
        if row.sha256 != seen:
            raise Conflict("MEMORY.md was changed since you opened it; nothing was saved.", current=row)
        change = Change(
            lambda old: with_line_ends(wanted, old),
            message(f"Edit {now.spot.path}", [("Edited-by", by)]),
            person(by),
            by=by,
        )
        commit_change(row, now, change, when)
        return _decided(read_row(row.pk, when)[0], now.working_text, by, when)


def _decided(row: MemoryFile, before: str, by: str, at: datetime) -> MemoryFile:
    """Keep that a person stands behind the entries that their change brought, and no more behind those it took out."""
    difference = document.difference(parse(before), parse(row.text))
    vouched.withdraw([mask(fold(entry.text)) for entry in difference.removed], row.project_id)
    vouched.vouch([mask(fold(entry.text)) for entry in difference.added], row.project_id, by=by, at=at)
    return row


def revert(file: MemoryFile, sha: str, *, by: str, at: datetime | None = None, settles: bool = True) -> MemoryFile:
    """Commit what undoes the commit `sha`, in the name of the person `by`; reverting it again changes nothing.

    The proposal that it promoted is rejected, unless `settles` is False. Raises Conflict when later changes touch the
    same lines, and DomainError for a repository that cannot be written or a commit that is not the file's.
    """
    when, row = to_utc(at), of_this_host(file)
    with alone(row):
        snapshot = ready(row, when)
        commit = row.commits.filter(sha=sha).select_related("proposal").first()
        if commit is None:
            raise Unusable(f"MEMORY.md has no commit {sha[:12]!r}.", "List them: manage.py memory-file log")
        if is_undone(commit):
            return read_row(row.pk, when)[0]
        repository, path = snapshot.spot.repository, snapshot.spot.path
        after = git.blob_at(repository, sha, path)
        before = git.blob_at(repository, git.parent(repository, sha), path)
        texts = [parse(decode(one.data)) if one else Document() for one in (before, after)]
        lines = [("Reverts", sha), ("Reverted-by", by)]
        rejected = commit.proposal_id if settles and commit.kind == CommitKind.PROMOTION else None
        change = Change(
            lambda now: without(now, *texts),
            message(f"Revert {sha[:7]}: {commit.subject}", lines),
            person(by),
            rejects=rejected,
            by=by,
        )
        commit_change(row, snapshot, change, when)
        return _decided(read_row(row.pk, when)[0], snapshot.working_text, by, when)


def is_reverted(file: MemoryFile, sha: str) -> bool:
    """Whether a later commit of the file, as it was last read, undid the commit `sha`."""
    commit = file.commits.filter(sha=sha).first()
    return commit is not None and is_undone(commit)


def log(file: MemoryFile, *, most: int = 100) -> list[MemoryFileCommit]:
    """Return the commits of the file as they were last read, the latest first."""
    return list(file.commits.select_related("proposal")[:most])


def blame(file: MemoryFile) -> list[tuple[str, MemoryFileCommit | None]]:
    """Return each line of the file with the commit that it is from; None for one that is not committed."""
    commits = file.commits.in_bulk({pk for pk in file.blame if pk})
    lines = [text for text, _ in parse(file.text).lines]
    return [(text, commits.get(pk)) for text, pk in zip(lines, [*file.blame, *[None] * len(lines)], strict=False)]
