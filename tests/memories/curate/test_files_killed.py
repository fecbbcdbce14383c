"""Promotions that are killed between any two steps, or run twice at once: one commit each, nothing lost."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.db import connections

from memories.curate import files
from memories.models import MemoryFile, Proposal, ProposalState, TelemetryRecord
from tests.memories.curate.repositories import approved, git, make, messages, status
from tests.support import processes
from tests.support.thorough import one_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

PROMOTE = "from memories.curate import files; files.promote_due()"
GIT, TREE = "claudeops.lib.tracked_file.git", "claudeops.lib.tracked_file.disk"
COMMITS, READING, PROMOTION = "memories.curate.commits", "memories.curate.reading", "memories.curate.promotion"
POINTS = [
    ("return", GIT, "init", 1),
    ("call", GIT, "write_blob", 1),
    ("return", GIT, "make_commit", 1),
    ("call", GIT, "move_branch", 1),
    ("return", GIT, "move_branch", 1),
    ("call", GIT, "stage", 1),
    ("return", GIT, "stage", 1),
    ("call", TREE, "write", 1),
    ("return", TREE, "write", 1),
    ("call", "memories.curate.proposals", "mark_promoted", 1),
    ("return", COMMITS, "_settle", 1),
    ("return", COMMITS, "complete", 2),
    ("call", READING, "_save", 2),
    ("return", READING, "_store_commits", 1),
    ("return", PROMOTION, "_promote", 1),
    ("call", GIT, "move_branch", 2),
    ("return", GIT, "move_branch", 2),
    ("return", PROMOTION, "_promote", 2),
]


@pytest.mark.parametrize(("event", "module", "function", "nth"), one_of(POINTS))
def test_killed_anywhere_each_proposal_is_one_commit(data, event, module, function, nth):
    file = files.file_of(None)
    approved(file, "The first")
    approved(file, "The second")
    processes.killed(PROMOTE, event, module, function, nth=nth)
    files.keep_here()
    assert sorted(messages(data)) == ["Add to Operations: The first", "Add to Operations: The second"]
    assert [line for line in (data / "MEMORY.md").read_text().splitlines() if line.startswith("- ")] == [
        line for line in git(data, "show", "HEAD:MEMORY.md").splitlines() if line.startswith("- ")
    ]
    assert ((data / "MEMORY.md").read_text().count("The "), status(data)) == (2, "")
    assert set(Proposal.objects.values_list("state", flat=True)) == {ProposalState.PROMOTED}
    assert set(Proposal.objects.values_list("commit", flat=True)) == set(git(data, "log", "--format=%H").split())
    row = MemoryFile.objects.get()
    assert (row.pending, row.entries, row.commits.count(), row.problem) == ({}, 2, 2, "")
    assert TelemetryRecord.objects.filter(action="memory.promote.completed").count() == 2


@pytest.mark.parametrize("point", [("return", GIT, "move_branch", 1), ("call", TREE, "write", 1)])
def test_an_edit_between_a_kill_and_the_next_run_is_kept(settings, data, tmp_path, point):
    event, module, function, nth = point
    path = make(tmp_path / "notes", "# Memory\n\n## Operations\n\n- (2026-10-01) Known\n")
    settings.CLAUDEOPS_MEMORY_FILE = str(path)
    approved(files.file_of(None), "The first")
    more = {"CLAUDEOPS_MEMORY_FILE": str(path)}
    processes.killed(PROMOTE, event, module, function, nth=nth, more=more)
    path.write_text(path.read_text() + "\n## Ada's own\n\n- Mine\n")
    files.promote_due()
    text = path.read_text()
    assert (text.count("The first"), text.count("- Mine"), len(messages(path.parent))) == (1, 1, 2)
    assert "Mine" not in git(path.parent, "show", "HEAD:MEMORY.md")


def test_a_merge_that_began_between_a_kill_and_the_next_run_is_left_alone(settings, data, tmp_path):
    path = make(tmp_path / "notes", "# Memory\n\n## Operations\n\n- (2026-10-01) Known\n")
    settings.CLAUDEOPS_MEMORY_FILE = str(path)
    approved(files.file_of(None), "The first")
    more = {"CLAUDEOPS_MEMORY_FILE": str(path)}
    processes.killed(PROMOTE, "return", GIT, "move_branch", nth=1, more=more)
    (path.parent / ".git" / "MERGE_HEAD").write_text(git(path.parent, "rev-parse", "HEAD~1") + "\n")
    before = path.read_text(), git(path.parent, "ls-files", "--stage")
    files.promote_due()
    assert (path.read_text(), git(path.parent, "ls-files", "--stage")) == before
    assert git(path.parent, "show", "HEAD:MEMORY.md").count("The first") == 1


def test_two_processes_at_once_commit_each_proposal_once(data):
    file = files.file_of(None)
    for number in range(6):
        approved(file, f"Entry {number}")
    connections.close_all()
    running = [processes.call(PROMOTE) for _ in range(2)]
    for one in running:
        out, err = one.communicate(timeout=120)
        assert one.returncode == 0, out + err
    assert sorted(messages(data)) == [f"Add to Operations: Entry {number}" for number in range(6)]
    assert set(Proposal.objects.values_list("state", flat=True)) == {ProposalState.PROMOTED}
    assert status(data) == ""


def test_a_running_gc_loses_nothing(data):
    """With git's own age for pruning. With `--prune=now` a gc may delete the objects of a commit that is being made."""
    file = files.file_of(None)
    approved(file, "Entry 0")
    files.promote_due()
    for number in range(1, 4):
        approved(file, f"Entry {number}")
    promoting = processes.call(PROMOTE)
    while promoting.poll() is None:
        git(data, "gc", "--quiet")
    promoting.communicate()
    files.promote_due()
    assert len(messages(data)) == 4
    assert git(data, "fsck", "--no-dangling") == ""
    assert MemoryFile.objects.get().host == settings.CLAUDEOPS_HOST
