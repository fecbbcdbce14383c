"""Real repositories of git for tests of MEMORY.md, and the git of the person who has them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from django.utils import timezone

from memories.curate import files
from memories.models import MemoryFile, Proposal, ProposalKind, ProposalState, Trust
from tests.support.factories import ProposalFactory

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/dev/null",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


def git(folder: Path, *arguments: str, fails: bool = False) -> str:
    """Run a person's git and return what it prints."""
    run = subprocess.run(
        ["git", *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=60
    )
    assert fails == bool(run.returncode), run.stdout + run.stderr
    return run.stdout.strip()


def make(folder: Path, text: str | None = None) -> Path:
    """Make a person's repository, with a file beside MEMORY.md, and return the path of MEMORY.md."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "README.md").write_text("Readme\n")
    if text is not None:
        (folder / "MEMORY.md").write_bytes(text.encode())
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Begin")
    return folder / "MEMORY.md"


def approved(file: MemoryFile, text: str = "The restic prune takes three hours", **more: object) -> Proposal:
    given = {"kind": ProposalKind.ADD, "section": "operations", "trust": Trust.SESSION, "decided_by": "ada"} | more
    return ProposalFactory(file=file, text=text, state=ProposalState.APPROVED, decided_at=timezone.now(), **given)


def status(folder: Path) -> str:
    return git(folder, "status", "--porcelain")


def messages(folder: Path) -> list[str]:
    """The subjects of all commits, the latest first."""
    return git(folder, "log", "--format=%s").splitlines()


def promote(file: MemoryFile) -> MemoryFile:
    files.promote_due()
    file.refresh_from_db()
    return file
