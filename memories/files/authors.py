"""Who wrote the lines of a file, by git. A line that is not committed is nobody's word: its author is "file".

Git runs with an environment of its own: no hooks, no configuration of the user or the machine, no prompt, a time limit.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from claudeops.lib.secrets import mask
from memories.capture.text import fold

FILE = "file"
"""The author of a line that no commit has, and of every line without git: whoever could write the file."""
BY_GIT = "git:"
SECONDS = 10.0
LONGEST_NAME = 100
NOT_COMMITTED = "0" * 40
AGENTS = re.compile(
    r"\b(?:claude|anthropic|copilot|codex|cursor|gemini|aider|devin|claudeops|bot)\b|\[bot\]", re.IGNORECASE
)
"""Names of programs that write commits. A commit of theirs, or with one as co-author, counts as not committed."""

SAFE = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"),
    *("-c", "core.attributesFile=/dev/null", "-c", "diff.external=", "-c", "protocol.allow=never"),
)
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}


@dataclass(frozen=True, slots=True)
class Authors:
    """The author of each line, by its number from 0, and of the last change of the file, such as a removed line."""

    lines: dict[int, str] = field(default_factory=dict)
    last: str = FILE

    def of(self, start: int, end: int) -> str:
        """Return the author of an entry: "file" when any of its lines is not committed, else its last line's."""
        found = [self.lines.get(number, FILE) for number in range(start, end)]
        return FILE if FILE in found or not found else found[-1]


def is_person(author: str) -> bool:
    """Whether the author is a person whose word needs no gate: one who committed."""
    return author.startswith(BY_GIT)


def authors_of(path: Path) -> Authors:
    """Return who wrote the lines of the file at `path`. Without git, a repository or an answer in time: nobody."""
    said = _git(path.parent, "blame", "--porcelain", "--", path.name)
    if not said:
        return Authors()
    rows: dict[int, str] = {}
    for line in said.split("\n"):
        if found := re.match(r"([0-9a-f]{40}) \d+ (\d+)", line):
            rows[int(found[2]) - 1] = found[1]
    commits = _people(path.parent, set(rows.values()) - {NOT_COMMITTED})
    lines = {number: commits.get(commit, FILE) for number, commit in rows.items()}
    clean = _git(path.parent, "status", "--porcelain", "--", path.name) == ""
    latest = _git(path.parent, "log", "-1", "--format=%H", "--", path.name) if clean else None
    last = _people(path.parent, [latest.strip()]).get(latest.strip(), FILE) if latest else FILE
    return Authors(lines, last)


def _people(folder: Path, commits: Iterable[str]) -> dict[str, str]:
    """Return the author of each commit that a person made alone."""
    wanted = sorted(commits)
    if not wanted:
        return {}
    said = _git(folder, "log", "--no-walk=unsorted", "--format=%H%x00%an%x00%ae%x00%cn%x00%B%x01", *wanted)
    found = {}
    for record in (said or "").split("\x01"):
        parts = record.strip("\n").split("\x00")
        if len(parts) != 5:
            continue
        commit, name, mail, committer, body = parts
        others = re.findall(r"^(?:co-authored-by|generated[- ]by|assisted-by)\s*:(.*)$", body, re.I | re.M)
        if not any(AGENTS.search(text) for text in (name, mail, committer, *others)):
            found[commit] = BY_GIT + (fold(mask(name))[:LONGEST_NAME] or "unnamed")
    return found


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git prints; None when it fails, is missing or takes too long."""
    try:
        done = subprocess.run(
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
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
