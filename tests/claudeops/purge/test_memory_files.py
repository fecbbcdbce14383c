"""MEMORY.md loses what is forgotten by a commit without a text, and the receipt's command takes it from the history."""

from __future__ import annotations

import subprocess

import pytest
from django.utils import timezone

from claudeops.features.purge.memory_files import without
from claudeops.features.purge.needles import Needles
from memories.curate import files
from memories.models import MemoryFile, MemoryFileCommit, ProposalState
from sessions_app.models import Purge
from tests.claudeops.purge.house import forms
from tests.memories.curate.repositories import git, make, status
from tests.support.commands import run
from tests.support.factories import MemoryFactory, ProposalEvidenceFactory, ProposalFactory

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "The code of the door is kept under the blue flower pot, behind the shed of the neighbours"
KEPT = "The restic prune takes three hours"


def test_entries_go_and_quotations_are_marked():
    text = f"# Memory\r\n\r\n{TEXT[:30]} and {TEXT}\r\n\r\n## Operations\r\n- (2026-11-01) {TEXT}\r\n- {KEPT}\r\n"
    found, count = without(text, Needles([TEXT]))
    assert found == f"# Memory\r\n\r\n{TEXT[:30]} and [purged]\r\n\r\n## Operations\r\n- {KEPT}\r\n" and count == 2
    assert without(found, Needles([TEXT])) == (found, 0)


def promoted(text: str, memory=None) -> MemoryFile:
    row = files.init(None)
    proposal = ProposalFactory(
        file=row,
        text=text,
        state=ProposalState.APPROVED,
        section="operations",
        decided_by="ann",
        decided_at=timezone.now(),
    )
    if memory:
        ProposalEvidenceFactory(proposal=proposal, memory=memory, text=memory.observation)
    files.promote_due()
    row.refresh_from_db()
    assert text in row.text
    return row


def objects(folder) -> bytes:
    """Everything that git's objects hold."""
    names = git(folder, "cat-file", "--batch-check", "--batch-all-objects").splitlines()
    return "\n".join(git(folder, "cat-file", "-p", name.split()[0]) for name in names).encode()


def test_an_entry_is_removed_by_a_commit_and_the_command_rewrites_the_history(own_data_folder):
    memory = MemoryFactory(observation=TEXT)
    promoted(KEPT)
    row = promoted(TEXT, memory)
    assert run("memory", "purge", memory.pk)[1].count("MEMORY.md, entries") == 1
    code, out, _ = run("memory", "purge", memory.pk, "--yes", "--by", "ann")
    assert code == 0 and "Git's history still holds it" in out and "flower" not in out
    row = files.read(row)
    folder = own_data_folder / "memory"
    assert (folder / "MEMORY.md").read_text() == row.text and KEPT in row.text and TEXT not in row.text
    assert status(folder) == "" and git(folder, "log", "-1", "--format=%an %s") == "ann Edit MEMORY.md"
    assert not any("door" in commit.subject for commit in MemoryFileCommit.objects.all())
    [command] = Purge.objects.get().receipt["history"]
    assert not any(form in command.encode() for form in forms(TEXT)) and TEXT[:20].encode() in objects(folder)
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert b"door" not in objects(folder) and KEPT in (folder / "MEMORY.md").read_text()
    assert len(git(folder, "log", "--format=%s").splitlines()) >= 3 and status(folder) == ""


def test_a_file_in_a_persons_repository_is_committed_too_and_one_that_cannot_be_is_named(settings, tmp_path):
    path = make(tmp_path / "repo", f"# Memory\n\n## Operations\n- (2026-11-01) {TEXT}\n- (2026-11-02) {KEPT}\n")
    settings.CLAUDEOPS_MEMORY_FILE = str(path)
    files.init(None)
    memory = MemoryFactory(observation=TEXT)
    git(path.parent, "checkout", "--quiet", "--detach")
    code, out, _ = run("memory", "purge", memory.pk, "--yes")
    assert code == 0 and "A memory file could not be changed" in out and "detached" in out
    assert TEXT in path.read_text()
    git(path.parent, "checkout", "--quiet", "main")
    assert run("memory", "purge", "--query", TEXT, "--yes")[0] == 0
    assert path.read_text() == f"# Memory\n\n## Operations\n- (2026-11-02) {KEPT}\n" and status(path.parent) == ""
