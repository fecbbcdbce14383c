"""`memory rebuild --from-git`, `memory-file`, and what `doctor` says of the files."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from claudeops.features import doctor
from memories.curate import files
from memories.models import Memory, MemoryChange, MemoryFile, Project, Proposal, ProposalState, Source, Trust
from tests.memories.curate.repositories import approved, messages, promote
from tests.support.commands import document, run
from tests.support.factories import ProjectFactory

pytestmark = [pytest.mark.django_db, pytest.mark.processes]

LONG = "The restic prune of the repository in the cellar takes three hours on the first Sunday of each month"
TODAY = datetime.now(UTC).date()


@pytest.fixture
def lost(data):
    """A repository with a promotion and a line by hand, and an empty database."""
    file = files.file_of(None)
    proposal = approved(file, LONG)
    promote(file)
    path = data / "MEMORY.md"
    path.write_text(path.read_text() + "\n## Ada's own\n\n- (2026-03-01) Ask Ada before a prune\n- ***\n")
    files.read(file)
    approved(files.file_of(ProjectFactory(slug="shop")), "The shop is one Django project", section="projects")
    files.promote_due()
    for model in (Proposal, MemoryFile, Memory, Project):
        model.objects.all().delete()
    return str(proposal.uuid)


def test_an_empty_database_gets_back_files_commits_proposals_and_memories(lost):
    code, found = document("memory", "rebuild", "--from-git")
    assert (code, [one["file"] for one in found["result"]]) == (0, ["MEMORY.md", "MEMORY.md of shop"])
    assert (found["result"][0]["commits"], found["result"][0]["proposals"], found["result"][0]["memories"]) == (2, 1, 2)
    proposal = Proposal.objects.get(uuid=lost)
    assert (proposal.state, proposal.text, proposal.section, proposal.decided_by, proposal.trust) == (
        ProposalState.PROMOTED,
        LONG,
        "operations",
        "ada",
        Trust.SESSION,
    )
    assert proposal.commits.get().sha == proposal.commit
    memory = Memory.objects.get(observation=LONG)
    assert (memory.taxonomy, memory.category, memory.trust, memory.source, memory.project) == (
        "knowledge",
        "operations",
        Trust.SESSION,
        Source.LEARNING,
        None,
    )
    assert memory.created_at.date() == TODAY
    by_hand = Memory.objects.get(observation="Ask Ada before a prune")
    assert (by_hand.trust, by_hand.source, str(by_hand.created_at.date())) == (
        Trust.OPERATOR,
        Source.HUMAN,
        "2026-03-01",
    )
    assert Memory.objects.get(observation="The shop is one Django project").project.slug == "shop"
    assert MemoryChange.objects.count() == 3


def test_a_second_rebuild_changes_nothing(lost):
    run("memory", "rebuild", "--from-git")
    counts = [model.objects.count() for model in (Memory, Proposal, MemoryFile, MemoryChange)]
    code, found = document("memory", "rebuild", "--from-git")
    assert (code, [one["memories"] for one in found["result"]]) == (0, [0, 0])
    assert counts == [model.objects.count() for model in (Memory, Proposal, MemoryFile, MemoryChange)]


def test_a_dry_run_stores_nothing(lost):
    code, found = document("memory", "rebuild", "--from-git", "--dry-run")
    assert (code, found["result"][0]["memories"]) == (0, 2)
    assert not (Memory.objects.exists() or Proposal.objects.exists() or Project.objects.exists())


def test_a_promotion_of_unknown_trust_is_trusted_least(data):
    file = files.file_of(None)
    approved(file, LONG, trust="")
    promote(file)
    Proposal.objects.all().delete()
    MemoryFile.objects.all().delete()
    run("memory", "rebuild", "--from-git")
    assert Memory.objects.get().trust == Trust.EXTERNAL


def test_the_command_makes_shows_logs_and_blames_the_file(data):
    code, found = document("memory-file", "init")
    assert (code, found["result"]["branch"]) == (0, "main")
    approved(files.file_of(None), LONG)
    code, found = document("memory-file", "sync")
    assert (code, len(found["result"]["committed"]), found["result"]["entries"]) == (0, 1, 1)
    assert LONG in run("memory-file", "show")[1]
    code, found = document("memory-file", "log")
    assert [one["kind"] for one in found["result"]] == ["promotion", "first"]
    assert "claudeops" in run("memory-file", "blame")[1]
    code, found = document("memory-file", "revert", found["result"][0]["sha"][:7], "--by", "ada")
    assert (code, found["result"]["entries"]) == (0, 0)
    assert messages(data)[0].startswith("Revert ")
    code, found = document("memory-file", "revert", "abc")
    assert (code, found["error"]["code"]) == (1, "commit_not_found")


def test_the_command_knows_projects(data):
    ProjectFactory(slug="shop")
    code, found = document("memory-file", "init", "--project", "shop")
    assert (code, found["result"]["path"]) == (0, "projects/shop/MEMORY.md")
    assert document("memory-file", "show", "--project", "none")[1]["error"]["code"] == "project_not_found"


def findings():
    return [(one.level, one.text) for one in doctor._memory_files(datetime.now(UTC))]


def test_doctor_says_what_is_wrong_with_the_files(data, monkeypatch):
    assert findings() == [("ok", "no file yet")]
    file = files.file_of(None)
    approved(file)
    promote(file)
    assert findings() == [("ok", "1 file, none needs a person")]
    (data / "MEMORY.md").unlink()
    approved(file, "Later")
    promote(file)
    (found,) = findings()
    assert found[0] == "warning"
    assert "was deleted" in found[1]
    assert "1 promotion waits since" in found[1]
    files.init(None)
    MemoryFile.objects.update(entries=185, problem="")
    assert findings() == [("warning", "MEMORY.md: 185 of 200 entries")]
    monkeypatch.setenv("PATH", "/nowhere")
    files.git._program.cache_clear()
    try:
        assert findings()[0] == ("error", "The program git was not found on this host.")
    finally:
        files.git._program.cache_clear()
