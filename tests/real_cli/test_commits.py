"""The real CLI in a project's repository: what its agent edits and commits as the developer is no person's word."""

from __future__ import annotations

import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F

from memories.curate import files
from memories.files.sync import sync_file
from memories.models import Memory, MemoryFileCommit, Project, SeenCommit, VouchedText
from sessions_app.models import PromptReceipt
from tests.memories.curate.shop import told, waits
from tests.real_cli.person import Person, result
from tests.support.committers import trust_commits
from tests.support.messages_api import ToolUse, answers, bash, says

pytestmark = pytest.mark.real_cli

KEY = "note what you know of the ports"
AGENTS_LINE, AGENTS_ENTRY = "The session token lasts 90 minutes", "The firewall of the shop is off on port 8443"
PERSONS_LINE, PERSONS_ENTRY = "The API token lives in the vault", "The firewall of the till is off on port 8444"
FIRST = "Tests need the queue"


@pytest.fixture
def shop(person: Person, settings: Any) -> Project:
    """A project whose repository has MEMORY.md and an agent's file; the developer's commits are her word."""
    settings.CLAUDEOPS_OBSERVE, settings.CLAUDEOPS_TRUST = True, "guarded"
    project = Project.objects.create(slug="shop", path=str(person.repository), memory_path="MEMORY.md")
    trust_commits(project, "ada@example.org")
    for arguments in (["init", "-q"], ["config", "user.name", "Ada"], ["config", "user.email", "ada@example.org"]):
        git(person, *arguments)
    (person.repository / "MEMORY.md").write_text("# Memory\n\n## Operations\n\n")
    agents_file(person).parent.mkdir(parents=True)
    sync_file(project, "research", create=True)
    append(person, FIRST)
    git(person, "add", "-A")
    git(person, "commit", "-qm", "Begin")
    look(project)
    return project


def git(person: Person, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(person.home), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", *arguments], cwd=person.repository, env=environment, check=True, capture_output=True, text=True
    ).stdout


def agents_file(person: Person) -> Path:
    return person.repository / ".claude-mpm" / "memories" / "research_agent.md"


def append(person: Person, text: str) -> None:
    """Add a line to the first section of the agent's file."""
    before = agents_file(person).read_text()
    head, heading, rest = before.partition("## Common Mistakes to Avoid\n")
    agents_file(person).write_text(f"{head}{heading}- {text}\n{rest}")


def look(project: Project) -> None:
    """Look at both files, as the tasks of each minute do."""
    assert not sync_file(project, "research").problem
    assert not files.read(files.file_of(project)).problem


def test_what_an_agent_commits_as_the_developer_is_nobody_s_and_a_commit_after_it_is_hers(
    person: Person, door: Any, shop: Project
) -> None:
    assert Memory.objects.get(observation=FIRST).trust == "operator"
    person.install("--observe", "--url", door.url)
    edit = {
        "file_path": str(agents_file(person)),
        "old_string": f"- {FIRST}\n",
        "new_string": f"- {FIRST}\n- {AGENTS_LINE}\n",
    }
    person.api.script(
        KEY,
        answers(ToolUse("Read", {"file_path": str(agents_file(person))})),
        answers(ToolUse("Edit", edit)),
        answers(bash(f"echo '- {AGENTS_ENTRY}' >> MEMORY.md && git commit -qam 'Note the ports' && git log -1")),
        says("Noted."),
    )
    lines = person.run(KEY, "Bash", "Read", "Edit")
    assert not result(lines)["is_error"]
    committed = person.api.to(KEY)[-1].tool_results[-1]
    assert "Author: Ada <ada@example.org>" in committed and "Claude" not in git(person, "log", "-1", "--format=%B")
    assert git(person, "status", "--porcelain") == ""
    receipt = PromptReceipt.objects.get(cli_session_id=result(lines)["session_id"], prompt="")
    assert receipt.project == shop and receipt.ended_at is not None

    look(shop)
    memory = Memory.objects.get(observation=AGENTS_LINE)
    assert (memory.source, bool(memory.unconfirmed)) == ("import", True)
    assert told(shop) == set() and "unconfirmed" in waits(shop)[AGENTS_ENTRY]
    was_at_work = f"session {receipt.cli_session_id} of the CLI was at work"
    assert MemoryFileCommit.objects.latest("pk").agents == was_at_work
    assert SeenCommit.objects.latest("pk").agents == was_at_work

    an_hour = timedelta(hours=1)  # passes
    PromptReceipt.objects.filter(project=shop).update(
        at=F("at") - an_hour, heard_at=F("heard_at") - an_hour, ended_at=F("ended_at") - an_hour
    )
    append(person, PERSONS_LINE)
    with (person.repository / "MEMORY.md").open("a") as file:
        file.write(f"- {PERSONS_ENTRY}\n")
    git(person, "commit", "-qam", "Note it by hand")
    look(shop)
    hers = Memory.objects.get(observation=PERSONS_LINE)
    assert (hers.source, hers.trust, bool(hers.unconfirmed)) == ("human", "operator", False)
    memory.refresh_from_db()
    assert memory.unconfirmed, "the agent's line stays nobody's"
    assert told(shop) == {PERSONS_ENTRY} and set(waits(shop)) == {AGENTS_ENTRY}
    assert VouchedText.objects.count() == 2
