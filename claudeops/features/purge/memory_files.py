"""Remove lines of agents' memory files, and entries of MEMORY.md by a commit that names no text.

Agents' files go before their memories: no sync takes the lines in again. What rewrites git's history is only said.
"""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from claudeops.features.purge.needles import Needles
from claudeops.lib.domain_error import DomainError
from claudeops.lib.tracked_file import disk, git
from claudeops.lib.tracked_file.disk import Unusable
from memories.curate import document, files
from memories.files import storage
from memories.files.document import Edits
from memories.models import AgentFile, MemoryFile

REWRITE = (
    'import hashlib,os,sys;p=sys.argv[1];i=p=="-";'
    'b=sys.stdin.buffer.read() if i else open(p,"rb").read() if os.path.exists(p) else b"";'
    'n=b"".join((b"[purged]\\n" if i else b"") if hashlib.sha256(l.strip()).hexdigest() in sys.argv[2:] else l '
    'for l in b.splitlines(True));i and sys.stdout.buffer.write(n);i or n!=b and open(p,"wb").write(n)'
)
"""Python that leaves the lines with these SHA-256 out of a file, or marks them in a message from standard input."""


@dataclass(slots=True)
class Files:
    """How many entries and lines were removed, the files that could not be changed with the reason, and commands."""

    count: int = 0
    left: dict[str, str] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)


def remove_lines(needles: Needles, *, write: bool) -> Files:
    """Remove the lines of agents' files that state a text; without `write` only count."""
    report = Files()
    for file in AgentFile.objects.select_related("project").order_by("pk") if needles else ():
        if not file.project.path:
            continue
        name = storage.relative_path(file.project, file.agent)
        try:
            with storage.lock_of(file.project_id, file.agent):
                report.count += _without_lines(file, needles, write=write)
        except Unusable as error:
            if needles.are_in(file.text):  # a file that never was, or is of another host, is no news
                report.left[f"{file.project.slug}: {name}"] = str(error)
    return report


def _without_lines(file: AgentFile, needles: Needles, *, write: bool) -> int:
    path = storage.location(file.project, file.agent)
    stored, document = storage.read_document(path)
    gone = frozenset(entry for entry in document.entries if needles.are_in(entry.text))
    if not gone or not write:
        return len(gone)
    after = document.edited(Edits(remove=gone))
    stored = disk.write(path, after.to_bytes())
    file.entries.filter(text__in={entry.text for entry in gone}).delete()
    # seen_change None: the next sync compares all of it.
    AgentFile.objects.filter(pk=file.pk).update(
        text=after.to_bytes().decode(),
        sha256=stored.sha256,
        size=stored.size,
        modified_ns=stored.modified_ns,
        seen_change=None,
    )
    return len(gone)


def without(text: str, needles: Needles) -> tuple[str, int]:
    """Return a file without the entries that state a text, with marks in the place of other quotations; how many."""
    parsed = document.parse(text)
    gone = {
        line
        for entry in parsed.entries
        if needles.are_in("".join(part for pair in parsed.lines[entry.line : entry.below] for part in pair))
        for line in range(entry.line, entry.below)
    }
    entries = sum(entry.line in gone for entry in parsed.entries)
    marked, more = needles.removed(parsed.without(gone).text)
    return marked, entries + more


def remove(needles: Needles, *, by: str, write: bool) -> Files:
    """Commit each file of this host without the texts, in the name of `by`; without `write` only count."""
    report = Files()
    for row in MemoryFile.objects.select_related("project").order_by("pk") if needles else ():
        name = f"{row} on {row.host}"
        try:
            if write:
                row = files.read(row)
            text, count = without(row.text, needles)
            report.count += count
            if count and write:
                files.edit(row, text, by=by, seen=row.sha256)
            if row.host == settings.CLAUDEOPS_HOST and (command := _rewriting(row, needles)):
                report.history.append(command)
        except DomainError as error:
            report.left[name] = f"{error} {error.fix}".strip()
    return report


def _rewriting(row: MemoryFile, needles: Needles) -> str:
    """Return the command that rewrites the history of a file's repository; "" when it holds none of the texts."""
    spot = git.find_repository(Path(row.repository))
    if spot is None or not Path(row.repository).is_dir():
        return ""
    shown = git.git(spot, "log", "--all", "--full-history", "-p", "--no-ext-diff", "--no-textconv", "--format=%B")
    lines = set()
    for line in shown.splitlines():
        if needles.spans(line.decode(errors="surrogateescape")):  # of a message, or of a file behind a sign
            signed = line.startswith((b"+", b"-", b" "))
            lines |= {hashlib.sha256(part.strip()).hexdigest() for part in (line, line[signed:])}
    if not lines:
        return ""
    path = (Path(row.repository) / row.path).resolve()
    inside = path.relative_to(spot.root.resolve()).as_posix()
    hashes = " ".join(sorted(lines))
    code = shlex.quote(REWRITE)
    tree, message = (f"python3 -c {code} {shlex.quote(name)} {hashes}" for name in (inside, "-"))
    at = f"git -C {shlex.quote(str(spot.root))}"
    return (
        f"FILTER_BRANCH_SQUELCH_WARNING=1 {at} filter-branch --force --tree-filter {shlex.quote(tree)} "
        f"--msg-filter {shlex.quote(message)} -- --all"
        f" && {at} for-each-ref --format='%(refname)' refs/original | xargs -r -n1 {at} update-ref -d"
        f" && {at} reflog expire --expire=now --all && {at} gc --quiet --prune=now"
    )
