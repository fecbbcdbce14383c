"""Who wrote the lines of a file, by git. A line that is not committed is nobody's word: its author is "file".

So is one whose commit is nobody's word (`memories.committers`).

Git runs with an environment of its own, no hooks, no configuration of the user or the machine, no prompt and a time
limit. It reads commits only: for a file of the working tree it would start filters that the repository's own
configuration names, which an agent may have written.
"""

from __future__ import annotations

import codecs
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from secrets import token_hex

from claudeops.lib.secrets import mask
from memories import committers
from memories.capture.text import fold
from memories.committers import Look
from memories.files.document import Document, lines_of

FILE = "file"
"""The author of a line that no commit has, and of every line without git: whoever could write the file."""
BY_GIT = "git:"
SECONDS = 10.0
LONGEST_NAME = 100
ADDRESS = re.compile(r"^([0-9a-f]{40,64}) \d+ \d+ \d+\nauthor .*\nauthor-mail <(.*)>$", re.MULTILINE)
SAFE = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"),
    *("-c", "log.showSignature=false", "-c", "core.pager=cat"),
)
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": "none",  # a partial clone may not fetch what it lacks
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
}
MOST_DIFFERENT = 2_000
"""Lines that differ from the commit, on either side, beyond which they all count as not committed."""


@dataclass(frozen=True, slots=True)
class Authors:
    """The author of each line, by its number from 0, and of the last change of the file, such as a removed line.

    `stated` are the e-mail addresses of the authors that git states, whosever word the lines are.
    """

    lines: dict[int, str] = field(default_factory=dict)
    last: str = FILE
    stated: dict[int, str] = field(default_factory=dict)

    def of(self, start: int, end: int) -> str:
        """Return the author of an entry: "file" when any of its lines is not committed, else its last line's."""
        authors = [self.lines.get(number, FILE) for number in range(start, end)]
        return FILE if FILE in authors or not authors else authors[-1]


def is_person(author: str) -> bool:
    """Whether the author is a person whose word needs no gate: one who committed."""
    return author.startswith(BY_GIT)


def authors_of(path: Path, document: Document, look: Look) -> Authors:
    """Return who wrote the lines of `document`, which is the file at `path`, found by a `look` at its project.

    Without git, a repository or an answer in time: nobody.
    """
    folder, name = path.parent, path.name
    committed = _git(folder, "cat-file", "blob", f"HEAD:./{name}")
    blame = (
        _git(folder, "blame", "--porcelain", "--no-textconv", "--ignore-revs-file=", "HEAD", "--", name)
        if committed
        else None
    )
    if not committed or not blame:
        return Authors()
    blamed = blame.decode("utf-8", "replace")
    commits = _commits_of_lines(committed, blamed)
    people = _people(folder, {*commits} - {""}, look)
    old, new = _texts(committed), [text for text, _ in document.lines]
    if len(commits) != len(old):
        return Authors()
    same, addresses = _same_lines(old, new), dict(ADDRESS.findall(blamed))
    lines = {here: people.get(commits[there], FILE) for there, here in same}
    stated = {here: fold(mask(addresses.get(commits[there], "")))[:LONGEST_NAME] for there, here in same}
    latest = _text(folder, "log", "-1", "--format=%H", "HEAD", "--", name).strip() if old == new else ""
    return Authors(lines, _people(folder, {latest} - {""}, look).get(latest, FILE), stated)


def deleted_by(root: Path, name: str, look: Look) -> str:
    """Return the person who deleted the file `name` below `root` by a commit; "file" before the commit; "" for neither.

    A program deletes nothing for a person, and what git was told to ignore was not deleted, but is no longer kept.
    """
    only = f":(literal){name}"
    if _git(root, "cat-file", "-e", f"HEAD:./{name}") is not None:
        return FILE if _git(root, "ls-files", "--", only) == b"" else ""
    commit = _text(root, "log", "-1", "--format=%H", "HEAD", "--", only).strip()
    if not commit or _git(root, "check-ignore", "-q", "--", name) is not None:
        return ""
    return _people(root, {commit}, look).get(commit, "")


def _commits_of_lines(committed: bytes, blame: str) -> list[str]:
    """Return the commit of each line as a document has them: git knows no carriage return alone as a line's end."""
    by_row: dict[int, str] = {}
    for line in blame.split("\n"):
        if row_of := re.match(r"([0-9a-f]{40,64}) \d+ (\d+)", line):
            by_row[int(row_of[2]) - 1] = row_of[1]
    commits: list[str] = []
    for row, content in enumerate(committed.removeprefix(codecs.BOM_UTF8).split(b"\n")):
        commits += [by_row.get(row, "")] * len(_texts(content + b"\n"))
    return commits[:-1] if committed.endswith(b"\n") else commits


def _texts(data: bytes) -> list[str]:
    return [text for text, _ in lines_of(data.decode("utf-8-sig", "replace"))]


def _same_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of the lines that both have, in order."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    pairs = [(place, place) for place in range(start)]
    middle = (old[start : len(old) - end], new[start : len(new) - end])
    if max(map(len, middle)) <= MOST_DIFFERENT:
        for block in SequenceMatcher(None, *middle, autojunk=False).get_matching_blocks():
            pairs += [(start + block.a + step, start + block.b + step) for step in range(block.size)]
    return pairs + [(len(old) - 1 - step, len(new) - 1 - step) for step in reversed(range(end))]


def _people(folder: Path, commits: Iterable[str], look: Look) -> dict[str, str]:
    """Return the author of each commit that is a person's word."""
    wanted = sorted(commits)
    if not wanted:
        return {}
    mark = token_hex(8)  # no message holds it
    form = f"{mark}%H%x00%an%x00%ae%x00%cn <%ce>%x00%B%x00"
    with committers.signers_of(look.project) as signers:
        form += "%G?%x00%GS" if signers else "%x00"
        settings = committers.signature_settings(signers) if signers else {}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        output = _text(folder, *options, "log", "--no-walk=unsorted", f"--format={form}", *wanted)
    cut_off = _shallow(folder)
    found = []
    for record in output.split(mark)[1:]:
        parts = record.strip("\n").split("\x00")
        if len(parts) == 7 and parts[0] not in cut_off:
            sha, name, email, committer, body, status, signer = parts
            found.append(committers.Commit(sha, name, email, committer, body, signer if status == "G" else ""))
    people = committers.people(found, look)
    return {commit: BY_GIT + (fold(mask(name))[:LONGEST_NAME] or "unnamed") for commit, name in people.items()}


def _shallow(folder: Path) -> set[str]:
    """Return the commits before which the history was cut off: git takes all older lines for theirs."""
    path = _text(folder, "rev-parse", "--git-path", "shallow").strip()
    try:
        return set((folder / path).read_text(encoding="ascii").split()) if path else set()
    except (OSError, UnicodeDecodeError):
        return set()


def _text(folder: Path, *arguments: str) -> str:
    return (_git(folder, *arguments) or b"").decode("utf-8", "replace")


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Return what git prints; None when it fails, is missing or takes too long."""
    try:
        process = subprocess.run(
            ["git", *SAFE, *arguments],
            cwd=folder,
            env=ENVIRONMENT,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout if process.returncode == 0 else None
