"""Decide whose word a commit is: its author's, or nobody's. Both memory files of a repository ask here.

A name in a commit proves nothing, and neither does its date: whoever has a shell writes both. So a commit is its
author's word when its signature verifies against the signers that the project allows, or when the project trusts the
author and no agent was at work in its folder from the last look at the repository to the one that found the commit.
What was found then is kept (`SeenCommit`): a commit of an agent does not become a person's when the agent has ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from django.utils import timezone

from claudeops.lib.tracked_file import git
from memories.models import Project, SeenCommit

AGENTS = re.compile(
    r"(?<![a-z])(?:claude(?:[ _-]?code|ops)?|anthropic|copilot|codex|cursor|gemini|aider|devin|bot)(?![a-z])",
    re.IGNORECASE,
)
"""Names of programs that write commits. A commit of theirs, or with one as co-author, is no person's."""
_OTHERS = re.compile(
    r"^\W{0,4}(?:(?:co-authored|signed-off|assisted|generated)[- ]by\s*:|generated with\b)(.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_ENDS = re.compile(r"\bvalid-before=\"?(\d{8})")
CUT_OFF = "the history before it is not there"
NOBODY_KNOWS = "nobody knows which agents were at work"
NOT_TRUSTED = "the project does not trust its author"
NAMES_AGENT = "it names an agent"

AtWork = Callable[[Project | None, datetime, datetime], str]
_at_work: list[AtWork] = []


def know_agents_by(function: AtWork) -> None:
    """Let `function` say which agent may have written in a project's folder between two times (UTC), "" for none."""
    _at_work[:] = [function]


def at_work(project: Project | None, since: datetime, until: datetime) -> str:
    """Say which agent may have written in a project's folder between two times (UTC); "" when none was at work."""
    return next((why for one in _at_work if (why := one(project, since, until))), "") if _at_work else NOBODY_KNOWS


class Look(NamedTuple):
    """A look at a project's repository at `at` (UTC), of which the one before was at `since` (None: the first)."""

    project: Project
    since: datetime | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as git states it. `signer` is who signed it by a key that the project allows, "" for nobody."""

    sha: str
    name: str
    email: str
    committer: str = ""
    body: str = ""
    signer: str = ""


def of_git(commit: git.Commit) -> Commit:
    committer = f"{commit.committer} <{commit.committer_email}>"
    body = f"{commit.subject}\n{commit.body}"
    return Commit(commit.sha, commit.author, commit.author_email, committer, body, commit.signer)


def why_nobodys(commit: Commit, project: Project | None, agents: str) -> str:
    """Say why a commit is nobody's word; "" when it is its author's. `agents` is who was at work when it came."""
    if commit.signer:
        return ""
    if any(
        AGENTS.search(text) for text in (commit.name, commit.email, commit.committer, *_OTHERS.findall(commit.body))
    ):
        return NAMES_AGENT
    if project is None or commit.email.casefold() not in project.trusted_authors.casefold().split():
        return NOT_TRUSTED
    return agents


@contextmanager
def signers_of(project: Project | None) -> Iterator[str]:
    """Yield the path of a file with the signers that a project allows now, "" where it allows none.

    A key that has ended allows nothing: git would ask whether it held at the commit's own date, which proves nothing.
    """
    lines = project.allowed_signers.splitlines() if project else []
    today = f"{timezone.now():%Y%m%d}"
    lines = [line for line in lines if line.strip() and not ((end := _ENDS.search(line)) and end[1] <= today)]
    if not lines:
        yield ""
        return
    with NamedTemporaryFile("w", suffix=".allowed_signers", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))
        file.flush()
        yield file.name


def people(commits: Iterable[Commit], look: Look) -> dict[str, str]:
    """Return the names of the persons whose word the commits are, by the commit; the others are left out."""
    rows = {one.sha: one for one in commits}
    seen = seen_with(rows, look)
    return {
        sha: one.signer or one.name
        for sha, one in rows.items()
        if not why_nobodys(one, look.project, seen.get(sha, NOBODY_KNOWS))
    }


def seen_with(shas: Iterable[str], look: Look) -> dict[str, str]:
    """Return who was at work when each commit came, and keep it of those that are seen for the first time."""
    wanted = list(shas)
    rows = SeenCommit.objects.filter(project=look.project, sha__in=wanted)
    known = dict(rows.values_list("sha", "agents"))
    if new := [sha for sha in wanted if sha not in known]:
        agents = at_work(look.project, look.since or look.project.created_at, look.at)[:200]
        SeenCommit.objects.bulk_create(
            (SeenCommit(project=look.project, sha=sha, agents=agents, at=look.at) for sha in new), ignore_conflicts=True
        )
        known = dict(rows.all().values_list("sha", "agents"))
    return known
