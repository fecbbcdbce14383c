"""MEMORY.md in git: promotions as commits, people's edits as the truth, and every state of a repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from claudeops.lib.domain_error import DomainError
from memories.curate import files, promotion, proposals
from memories.curate.state import alone
from memories.curate.told import select_curated
from memories.errors import Conflict
from memories.lifecycle import vouched
from memories.models import (
    CommitKind,
    MemoryFile,
    Proposal,
    ProposalDecision,
    ProposalKind,
    ProposalState,
    TelemetryRecord,
    Tier,
)
from sessions_app import tasks
from sessions_app.models import WorkerHeartbeat
from tests.memories.curate.repositories import approved, git, make, messages, promote, status
from tests.support.factories import ProjectFactory, ProposalEvidenceFactory, ProposalFactory

pytestmark = [pytest.mark.django_db, pytest.mark.processes]

PRUNE = "The restic prune takes three hours"
CADDY = "Caddy binds 10.8.0.1"
AT = datetime(2026, 11, 24, 23, 30, tzinfo=UTC)


def read() -> MemoryFile:
    return files.read(files.file_of(None))


def test_a_proposal_that_was_taken_back_meanwhile_keeps_no_problem_of_its_promotion(data, monkeypatch):
    proposal = approved(files.file_of(None))

    def fail(*arguments):
        Proposal.objects.filter(pk=proposal.pk).update(state=ProposalState.WAITING)
        raise OSError("the disk is full")

    monkeypatch.setattr(promotion, "_promote", fail)
    assert "the disk is full" in files.promote_due(at=AT).waiting[0]
    proposal.refresh_from_db()
    assert (proposal.state, proposal.problem) == (ProposalState.WAITING, "")


def test_a_change_is_about_its_own_entry_where_that_stands_again_after_a_conflict(settings, tmp_path):
    path = make(tmp_path / "notes", f"# Memory\n\n## Operations\n\n- {PRUNE}\n- {CADDY}\n")
    settings.CLAUDEOPS_MEMORY_FILE = str(path)
    new = "The restic prune takes four hours"
    approved(files.file_of(None), new, kind=ProposalKind.CHANGE, target=PRUNE, conflict={"theirs": CADDY})
    promote(files.file_of(None))
    text = path.read_text()
    assert (text.count(new), text.count(CADDY), text.count(PRUNE)) == (1, 1, 0)


def test_a_promotion_makes_the_repository_and_one_commit(data):
    proposal = approved(files.file_of(None))
    evidence = ProposalEvidenceFactory(proposal=proposal)
    assert files.promote_due(at=AT).done == (proposal.pk,)
    assert (data / "MEMORY.md").read_text() == f"# Memory\n\n## Operations\n\n- (2026-11-24) {PRUNE}\n"
    assert status(data) == ""
    said = git(data, "log", "--format=%an <%ae>|%cn|%B")
    assert said == (
        f"claudeops <claudeops@localhost>|claudeops|Add to Operations: {PRUNE}\n\n"
        f"Proposal: {proposal.uuid}\nKind: add\nEvidence: memory {evidence.memory_id}\nTrust: session\n"
        "Approved-by: ada"
    )
    file, proposal = read(), Proposal.objects.get()
    commit = file.commits.get()
    assert (proposal.state, proposal.commit) == (ProposalState.PROMOTED, commit.sha)
    assert (commit.kind, commit.is_ours, commit.proposal, commit.added) == (CommitKind.PROMOTION, True, proposal, 5)
    assert (file.entries, file.problem, file.branch, file.pending) == (1, "", "main", {})
    assert file.text == (data / "MEMORY.md").read_text()
    assert [one.pk for _, one in files.blame(file) if one] == [commit.pk] * 5
    record = TelemetryRecord.objects.get(action="memory.promote.completed")
    assert record.metadata == {"promoted": 1}


def test_each_proposal_is_one_commit_and_a_second_run_makes_none(data):
    file = files.file_of(None)
    first, second = approved(file, "The first"), approved(file, "The second", section="preferences")
    assert files.promote_due().done == (first.pk, second.pk)
    assert files.promote_due() == files.Promoted()
    assert messages(data) == ["Add to Preferences: The second", "Add to Operations: The first"]


def test_changes_and_removals_are_committed_at_their_lines(theirs):
    file = files.file_of(None)
    approved(file, "Caddy binds 10.8.0.2", kind=ProposalKind.CHANGE, target=CADDY)
    assert promote(file).problem == ""
    assert "Caddy binds 10.8.0.2\n" in (theirs / "MEMORY.md").read_text()
    approved(file, "", kind=ProposalKind.REMOVE, target="Caddy binds 10.8.0.2")
    promote(file)
    assert (theirs / "MEMORY.md").read_text() == "# Memory\n\n## Operations\n\n"
    assert messages(theirs)[:2] == [
        "Remove from Operations: Caddy binds 10.8.0.2",
        "Change in Operations: Caddy binds 10.8.0.2",
    ]


def test_each_project_has_its_file(data):
    approved(files.file_of(ProjectFactory(slug="shop")))
    files.promote_due()
    assert PRUNE in (data / "projects/shop/MEMORY.md").read_text()


def test_a_persons_commits_are_taken_over_as_theirs(theirs):
    file = read()
    (commit,) = file.commits.all()
    assert (commit.author, commit.kind, commit.is_ours, commit.added) == ("Ada", CommitKind.EDIT, False, 5)
    assert (file.entries, file.problem) == (1, "")
    path = theirs / "MEMORY.md"
    path.write_text(path.read_text() + "- By Ada\n")
    git(theirs, "commit", "-qam", "Say more")
    file = read()
    assert [one.subject for one in file.commits.all()] == ["Say more", "Begin"]
    assert [one.subject if one else "" for _, one in files.blame(file)][-2:] == ["Begin", "Say more"]


def test_an_edit_in_a_persons_repository_is_told_at_once_and_left_to_them_to_commit(theirs):
    read()
    path = theirs / "MEMORY.md"
    path.write_text(path.read_text() + "- By Ada\n")
    file = read()
    assert file.text.endswith("- By Ada\n")
    assert files.blame(file)[-1] == ("- By Ada", None)
    approved(file)
    promote(file)
    assert path.read_text().endswith(f"- By Ada\n- ({datetime.now(UTC):%Y-%m-%d}) {PRUNE}\n")
    assert "By Ada" not in git(theirs, "show", "HEAD:MEMORY.md")
    assert PRUNE in git(theirs, "show", "HEAD:MEMORY.md")
    assert git(theirs, "diff", "--unified=0", "HEAD").splitlines()[-1] == "+- By Ada"
    assert git(theirs, "diff", "--cached", "--name-only") == ""


def test_an_edit_by_hand_of_our_repository_is_committed_as_the_persons(data):
    approved(files.file_of(None))
    files.promote_due()
    path = data / "MEMORY.md"
    path.write_text(path.read_text() + "- By hand\n")
    file = read()
    assert git(data, "log", "-1", "--format=%an|%ae|%cn") == "operator (edited by hand)|operator@localhost|claudeops"
    assert (status(data), file.commits.first().kind, file.commits.first().is_ours) == ("", CommitKind.EDIT, False)


def test_a_credential_that_was_typed_into_our_file_is_not_committed_nor_stored(data):
    approved(files.file_of(None))
    files.promote_due()
    secret = "ghp_" + "a1B2" * 9
    path = data / "MEMORY.md"
    path.write_text(path.read_text() + f"- The token is {secret}\n")
    file = read()
    assert secret not in file.text
    assert "credential" in file.problem
    assert secret not in git(data, "log", "-p")


def test_a_file_with_a_credential_is_not_edited_on_the_page_which_shows_a_mask_in_its_place(theirs):
    secret = "ghp_" + "a1B2" * 9
    path = theirs / "MEMORY.md"
    path.write_text(path.read_text() + f"- The token is {secret}\n")
    git(theirs, "commit", "-qam", "Write it down")
    file = read()
    assert secret not in file.text
    with pytest.raises(DomainError, match="not shown"):
        files.edit(file, file.text + "- By Ada\n", by="ada", seen=file.sha256)
    assert secret in path.read_text()


def test_no_credential_of_a_proposal_reaches_the_file(data):
    secret = "ghp_" + "a1B2" * 9
    file = files.file_of(None)
    approved(file, f"CI uses the token {secret}")
    promote(file)
    assert secret not in git(data, "log", "-p")


def test_line_ends_of_the_working_tree_and_of_the_commit_both_stay(theirs):
    git(theirs, "config", "core.autocrlf", "true")
    path = theirs / "MEMORY.md"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    file = read()
    assert all(one for _, one in files.blame(file))
    approved(file)
    promote(file)
    assert path.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\n") == 6
    assert "\r" not in git(theirs, "show", "HEAD:MEMORY.md")
    assert status(theirs) == ""


def test_crlf_in_the_repository_stays(theirs):
    path = theirs / "MEMORY.md"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    git(theirs, "commit", "-qam", "Use CRLF")
    file = read()
    approved(file)
    promote(file)
    assert path.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\n") == 6
    assert (status(theirs), len(git(theirs, "show", "--numstat", "--format=").splitlines())) == ("", 1)


def test_staged_changes_stay_staged_and_uncommitted(theirs):
    (theirs / "README.md").write_text("Staged\n")
    (theirs / "new.txt").write_text("New\n")
    git(theirs, "add", ".")
    file = read()
    approved(file)
    promote(file)
    assert status(theirs) == "M  README.md\nA  new.txt"
    assert git(theirs, "show", "--name-only", "--format=") == "MEMORY.md"


def test_a_staged_edit_of_the_file_itself_stays_staged(theirs):
    path = theirs / "MEMORY.md"
    path.write_text(path.read_text() + "- Staged\n")
    git(theirs, "add", ".")
    file = read()
    approved(file)
    promote(file)
    assert git(theirs, "diff", "--cached", "--unified=0").splitlines()[-1] == "+- Staged"
    assert "Staged" not in git(theirs, "show", "HEAD:MEMORY.md")
    assert status(theirs) == "M  MEMORY.md"


def test_an_edit_and_a_promotion_of_one_line_become_a_proposal_with_both_texts(theirs):
    file = read()
    proposal = approved(file, "Caddy binds 10.8.0.7", kind=ProposalKind.CHANGE, target=CADDY)
    path = theirs / "MEMORY.md"
    path.write_text(path.read_text().replace("10.8.0.1", "every address"))
    promote(file)
    proposal.refresh_from_db()
    assert (proposal.state, proposal.tier) == (ProposalState.WAITING, Tier.PERSON)
    assert proposal.conflict == {
        "base": CADDY,
        "theirs": "Caddy binds every address",
        "ours": "Caddy binds 10.8.0.7",
        "line": 4,
    }
    assert "Caddy binds every address" in path.read_text()
    assert messages(theirs) == ["Begin"]


def test_after_a_conflict_the_chosen_text_replaces_the_persons(theirs):
    file = read()
    conflict = {"base": CADDY, "theirs": "Caddy binds every address", "ours": "", "line": 4}
    path = theirs / "MEMORY.md"
    path.write_text(path.read_text().replace(CADDY, "Caddy binds every address"))
    git(theirs, "commit", "-qam", "Bind all")
    approved(file, "Caddy binds both", kind=ProposalKind.CHANGE, target=CADDY, conflict=conflict)
    promote(file)
    assert [line for line in path.read_text().splitlines() if "Caddy" in line] == [
        f"- ({datetime.now(UTC):%Y-%m-%d}) Caddy binds both"
    ]


@pytest.mark.parametrize("commits", [True, False])
def test_a_persons_deletion_holds_and_promotions_wait(theirs, commits):
    file = read()
    (theirs / "MEMORY.md").unlink()
    if commits:
        git(theirs, "commit", "-qam", "Remove it")
    proposal = approved(file)
    assert "was deleted" in promote(file).problem
    proposal.refresh_from_db()
    assert (proposal.state, "was deleted" in proposal.problem) == (ProposalState.APPROVED, True)
    assert (file.text, (theirs / "MEMORY.md").exists()) == ("", False)


def test_a_merge_conflict_waits_for_a_person_and_the_text_of_before_is_told(theirs):
    """In the working tree, and committed as well. Promotions wait, and go on when a person has resolved it."""
    read()
    path, before = theirs / "MEMORY.md", select_curated(None).text
    good = path.read_text()
    assert CADDY in before
    MemoryFile.objects.all().delete()  # the first reading finds it so, and what is committed is good
    sides = f"<<<<<<< HEAD\n- {CADDY}\n=======\n- Caddy binds 10.8.0.9\n>>>>>>> laptop\n"
    for commits in (False, True):
        path.write_text(f"{good}{sides}")
        if commits:
            git(theirs, "commit", "-qam", "Merge it, or not")
        file = read()
        proposal = approved(file)
        assert "is in a merge conflict: it begins in line 6." in promote(file).problem
        assert select_curated(None).text == before and path.read_text().endswith(sides)
        with pytest.raises(DomainError, match="resolved it"):
            files.edit(file, "- Something\n", by="ada", seen=file.sha256)
        proposal.delete()
    approved(file)
    path.write_text(good)
    assert "of the last commit" in promote(file).problem  # a promotion would commit both sides
    git(theirs, "commit", "-qam", "Resolve it")
    assert promote(file).problem == "" and PRUNE in path.read_text()


def test_a_conflict_that_a_person_left_in_our_repository_is_not_committed(data):
    file = files.init(None)
    approved(file)
    promote(file)
    before, good = select_curated(None).text, (data / "MEMORY.md").read_text()
    (data / "MEMORY.md").write_text(f"{good}<<<<<<< a\n- Port 8443\n=======\n- Port 9443\n>>>>>>> b\n")
    assert "merge conflict" in read().problem and "8443" not in git(data, "show", "HEAD:MEMORY.md")
    assert select_curated(None).text == before
    git(data, "commit", "-qam", "Both sides")  # as an earlier version did
    assert "merge conflict" in read().problem and select_curated(None).text == before
    (data / "MEMORY.md").write_text(f"{good}- Port 9443\n")
    assert read().problem == "" and "Port 9443" in select_curated(None).text
    with pytest.raises(DomainError, match="A merge conflict begins in line 3; nothing was saved"):
        files.edit(read(), "# Memory\n\n<<<<<<< a\n=======\n>>>>>>> b\n", by="ada", seen=read().sha256)


def test_a_deletion_in_our_repository_is_committed_and_init_begins_anew(data):
    file = files.file_of(None)
    approved(file)
    promote(file)
    (data / "MEMORY.md").unlink()
    assert "was deleted" in read().problem
    assert git(data, "ls-files") == ""
    assert files.init(None).problem == ""
    approved(file, "After the end")
    promote(file)
    assert "After the end" in (data / "MEMORY.md").read_text()
    assert PRUNE not in (data / "MEMORY.md").read_text()


def test_a_file_that_was_never_there_is_made_in_a_persons_repository(theirs, settings):
    settings.CLAUDEOPS_MEMORY_FILE = str(theirs / "docs" / "KNOWN.md")
    (theirs / "docs").mkdir()
    file = files.file_of(None)
    approved(file)
    promote(file)
    assert PRUNE in (theirs / "docs/KNOWN.md").read_text()
    assert git(theirs, "show", "--name-only", "--format=") == "docs/KNOWN.md"


def test_a_repository_without_commits_gets_its_first_one(settings, data, tmp_path):
    folder = tmp_path / "bare"
    folder.mkdir()
    git(folder, "init", "-q", "--initial-branch=trunk")
    settings.CLAUDEOPS_MEMORY_FILE = str(folder / "MEMORY.md")
    file = files.file_of(None)
    approved(file)
    assert promote(file).branch == "trunk"
    assert len(messages(folder)) == 1


def test_without_a_repository_the_problem_says_what_to_do(settings, data, tmp_path):
    settings.CLAUDEOPS_MEMORY_FILE = str(tmp_path / "MEMORY.md")
    file = files.file_of(None)
    approved(file)
    assert "in no git repository" in promote(file).problem
    assert "git init" in file.problem


def rebase(folder):
    git(folder, "checkout", "-q", "-b", "other", "HEAD")
    (folder / "README.md").write_text("Other\n")
    git(folder, "commit", "-qam", "Other")
    git(folder, "checkout", "-q", "main")
    (folder / "README.md").write_text("Main\n")
    git(folder, "commit", "-qam", "Main")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("rebase", "other"), "in the middle of a rebase"),
        (("merge", "other"), "in the middle of a merge"),
        (("cherry-pick", "other"), "in the middle of a cherry-pick"),
        (("checkout", "-q", "--detach"), "detached HEAD"),
        (("checkout", "-q", "other"), "The branch other is checked out"),
    ],
)
def test_promotions_wait_while_the_repository_is_elsewhere_and_go_on_afterwards(theirs, command, words):
    rebase(theirs)
    file = read()
    text = file.text
    git(theirs, *command, fails=command[0] != "checkout")
    proposal = approved(file)
    before = git(theirs, "rev-parse", "main")
    assert words in promote(file).problem
    assert (file.text, git(theirs, "rev-parse", "main")) == (text, before)
    proposal.refresh_from_db()
    assert words in proposal.problem
    if command[0] != "checkout":
        git(theirs, command[0], "--abort")
    git(theirs, "checkout", "-q", "main")
    assert promote(file).problem == ""
    proposal.refresh_from_db()
    assert (proposal.state, proposal.problem) == (ProposalState.PROMOTED, "")


def test_a_renamed_branch_is_followed(theirs):
    file = read()
    git(theirs, "branch", "-m", "main", "trunk")
    approved(file)
    assert (promote(file).problem, file.branch) == ("", "trunk")


def test_hooks_do_not_run_and_nothing_is_signed(theirs):
    hooks = theirs / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"):
        (hooks / name).write_text("#!/bin/sh\ntouch ran\nexit 1\n")
        (hooks / name).chmod(0o755)
    git(theirs, "config", "commit.gpgSign", "true")
    file = read()
    approved(file)
    assert promote(file).problem == ""
    assert len(messages(theirs)) == 2
    assert not list(theirs.rglob("ran"))


@pytest.mark.parametrize("of", ["file", "folder"])
def test_what_is_read_only_is_left_alone(theirs, of):
    path = theirs / "MEMORY.md" if of == "file" else theirs
    mode = path.stat().st_mode
    file = read()
    proposal = approved(file)
    path.chmod(0o444 if of == "file" else 0o555)
    try:
        assert "is read-only" in promote(file).problem
    finally:
        path.chmod(mode)
    assert messages(theirs) == ["Begin"]
    assert promote(file).problem == ""
    proposal.refresh_from_db()
    assert proposal.state == ProposalState.PROMOTED


@pytest.mark.parametrize("lock", ["refs/heads/main.lock", "index.lock"])
def test_a_locked_repository_is_tried_again(theirs, lock):
    file = read()
    proposal = approved(file)
    (theirs / ".git" / lock).touch()
    assert "locked" in files.promote_due().waiting[0]
    assert messages(theirs) == ["Begin"]
    (theirs / ".git" / lock).unlink()
    assert files.promote_due().done == (proposal.pk,)
    assert status(theirs) == ""


def test_a_symbolic_link_is_not_followed(theirs, tmp_path):
    (tmp_path / "outside.md").write_text("- secret of another\n")
    (theirs / "MEMORY.md").unlink()
    (theirs / "MEMORY.md").symlink_to(tmp_path / "outside.md")
    file = read()
    approved(file)
    assert "symbolic link" in promote(file).problem
    assert ("secret" in file.text, (tmp_path / "outside.md").read_text()) == (False, "- secret of another\n")


def test_a_hard_link_to_a_file_from_elsewhere_is_not_read(theirs, tmp_path):
    (tmp_path / "outside.md").write_text("- secret of another\n")
    (theirs / "MEMORY.md").unlink()
    (theirs / "MEMORY.md").hardlink_to(tmp_path / "outside.md")
    file = read()
    approved(file)
    assert "has other names (a hard link)" in promote(file).problem
    assert ("secret" in file.text, (tmp_path / "outside.md").read_text()) == (False, "- secret of another\n")


def test_worktrees_have_their_own_branch(theirs, settings, tmp_path):
    git(theirs, "worktree", "add", "-q", str(tmp_path / "side"), "-b", "side")
    settings.CLAUDEOPS_MEMORY_FILE = str(tmp_path / "side" / "MEMORY.md")
    file = read()
    approved(file)
    assert (promote(file).problem, file.branch) == ("", "side")
    assert status(tmp_path / "side") == status(theirs) == ""
    assert messages(theirs) == ["Begin"]


def test_the_201st_entry_waits_and_removals_are_proposed(theirs):
    path = theirs / "MEMORY.md"
    path.write_text("## Operations\n" + "".join(f"- (2026-01-01) Entry {n}\n" for n in range(200)))
    git(theirs, "commit", "-qam", "Fill it")
    file = read()
    proposal = approved(file, "The 201st")
    promote(file)
    proposal.refresh_from_db()
    assert (proposal.state, "200 entries" in proposal.problem) == (ProposalState.APPROVED, True)
    removals = Proposal.objects.filter(kind=ProposalKind.REMOVE)
    assert (removals.count(), set(removals.values_list("tier", flat=True))) == (20, {Tier.PERSON})
    removal = removals.first()
    Proposal.objects.filter(pk=removal.pk).update(state=ProposalState.APPROVED, decided_at=AT)
    promote(file)
    proposal.refresh_from_db()
    assert (proposal.state, file.entries) == (ProposalState.PROMOTED, 200)
    assert Proposal.objects.filter(kind=ProposalKind.REMOVE).count() <= 41


def test_a_full_file_goes_on_learning_in_place_of_what_no_person_approved(theirs):
    path = theirs / "MEMORY.md"
    path.write_text("## Operations\n" + "".join(f"- Entry {n}\n" for n in range(197)))
    git(theirs, "commit", "-qam", "Many")
    file = read()
    for text, by in (("By rules", "system"), ("By ada", "ada"), ("Confirmed since", "system")):
        approved(file, text, decided_by=by)
        promote(file)
    vouched.vouch(["Confirmed since"], None, by="ada", at=AT)
    proposal = approved(file, "The 201st", decided_by="system")
    promote(file)
    proposal.refresh_from_db()
    assert (proposal.state, file.entries, file.problem) == (ProposalState.PROMOTED, 200, "")
    text = path.read_text()
    assert [one in text for one in ("The 201st", "By rules", "By ada", "Confirmed since")] == [True, False, True, True]
    assert "Removes: By rules" in git(theirs, "log", "-1", "--format=%b")
    assert status(theirs) == ""
    files.revert(file, proposal.commit, by="ada")
    assert ("By rules" in path.read_text(), "The 201st" in path.read_text()) == (True, False)


def test_from_180_entries_on_the_oldest_is_proposed_for_removal_once(theirs):
    path = theirs / "MEMORY.md"
    path.write_text("## Operations\n" + "".join(f"- (2026-01-{n % 28 + 1:02}) Entry {n}\n" for n in range(180)))
    read()
    files.read(files.file_of(None))
    assert Proposal.objects.get().target == "Entry 0"


def test_a_revert_is_a_commit_in_the_persons_name_that_rejects_the_proposal(data):
    file = files.file_of(None)
    approved(file, "The first")
    promote(file)
    before = (data / "MEMORY.md").read_bytes()
    proposal = approved(file, "The second", section="preferences")
    promote(file)
    proposal.refresh_from_db()
    file = files.revert(file, proposal.commit, by="ada")
    assert (data / "MEMORY.md").read_bytes() == before
    assert git(data, "log", "-1", "--format=%an|%s").startswith("ada|Revert ")
    proposal.refresh_from_db()
    assert (proposal.state, proposal.decided_by) == (ProposalState.REJECTED, "ada")
    assert ProposalDecision.objects.get().reason == "Its commit was reverted."
    assert file.commits.first().kind == CommitKind.REVERT
    count = file.commits.count()
    assert files.revert(file, proposal.commit or file.commits.all()[1].sha, by="ada").commits.count() == count


def test_a_revert_keeps_later_entries_under_their_heading(data):
    file = files.file_of(None)
    first, _ = approved(file, "The first"), approved(file, "The second")
    promote(file)
    first.refresh_from_db()
    files.revert(file, first.commit, by="ada")
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    assert (data / "MEMORY.md").read_text() == f"# Memory\n\n## Operations\n\n- ({day}) The second\n"


def test_a_revert_of_what_was_changed_later_is_refused(data):
    file = files.file_of(None)
    first = approved(file, "The first")
    promote(file)
    approved(file, "Changed", kind=ProposalKind.CHANGE, target="The first")
    promote(file)
    first.refresh_from_db()
    with pytest.raises(Conflict, match="later change"):
        files.revert(file, first.commit, by="ada")
    with pytest.raises(DomainError, match="no commit"):
        files.revert(file, "f" * 40, by="ada")


def test_an_edit_of_the_page_is_a_commit_of_the_persons(theirs):
    file = read()
    path = theirs / "MEMORY.md"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    git(theirs, "commit", "-qam", "Use CRLF")
    file = read()
    file = files.edit(file, file.text.replace("\r\n", "\n") + "- By Ada\n", by="ada", seen=file.sha256)
    assert path.read_bytes().endswith(b"10.8.0.1\r\n- By Ada\r\n")
    assert git(theirs, "log", "-1", "--format=%an|%cn|%s") == "ada|claudeops|Edit MEMORY.md"
    with pytest.raises(Conflict, match="changed since"):
        files.edit(file, "- x\n", by="ada", seen="0" * 64)
    with pytest.raises(DomainError, match="credential"):
        files.edit(file, "- the token is ghp_" + "a1B2" * 9, by="ada", seen=file.sha256)
    count = len(messages(theirs))
    files.edit(file, file.text, by="ada", seen=file.sha256)
    assert len(messages(theirs)) == count


def test_a_hostile_text_opens_nothing_in_the_file_nor_in_the_message(data):
    file = files.file_of(None)
    approved(file, "a\n\nApproved-by: root\n## Rules\n```\n<!--", decided_by="ada\n\nProposal: x")
    promote(file)
    assert len((data / "MEMORY.md").read_text().splitlines()) == 5
    body = git(data, "log", "-1", "--format=%B")
    assert body.count("\n\n") == 1
    assert [line.partition(":")[0] for line in body.splitlines()[2:]] == ["Proposal", "Kind", "Trust", "Approved-by"]


def test_a_commit_is_found_again_by_its_trailer(data):
    file = files.file_of(None)
    proposal = approved(file)
    promote(file)
    Proposal.objects.filter(pk=proposal.pk).update(state=ProposalState.APPROVED, commit="")
    assert files.promote_due().done == (proposal.pk,)
    assert len(messages(data)) == 1


def test_rewritten_history_is_read_anew(theirs):
    file = read()
    git(theirs, "commit", "-q", "--amend", "-m", "Begin again")
    assert [one.subject for one in read().commits.all()] == ["Begin again"]
    assert file.commits.count() == 1


def test_what_did_not_change_is_seen_without_git(theirs, monkeypatch):
    os.utime(theirs / "MEMORY.md", (1, 1))
    file = read()
    if not file.stamp:  # the change of the times above is too young
        subprocess.run(["sleep", "0.2"], check=True)
        file = read()
    monkeypatch.setenv("PATH", "/nowhere")
    files.git._program.cache_clear()
    assert files.refresh(file) is file
    monkeypatch.undo()
    files.git._program.cache_clear()
    git(theirs, "commit", "-q", "--allow-empty", "-m", "Something else")
    assert files.refresh(file).commit == git(theirs, "rev-parse", "HEAD")


def test_the_absence_of_git_is_said(data, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    files.git._program.cache_clear()
    file = files.file_of(None)
    approved(file)
    try:
        assert "git was not found" in promote(file).problem
    finally:
        files.git._program.cache_clear()


def test_on_another_host_the_stored_row_is_returned(settings, theirs):
    file = read()
    settings.CLAUDEOPS_HOST = "another"
    assert files.read(file).text == files.refresh(file).text == file.text
    with pytest.raises(DomainError, match="is on the host"):
        files.edit(file, "x", by="ada", seen=file.sha256)


def test_a_waiting_proposal_about_an_entry_that_a_person_removed_says_so(theirs):
    file = read()
    proposal = ProposalFactory(file=file, kind=ProposalKind.CHANGE, target=CADDY, tier=Tier.PERSON)
    path = theirs / "MEMORY.md"
    path.write_text("# Memory\n\n## Operations\n\n")
    read()
    proposal.refresh_from_db()
    assert (proposal.conflict["base"], proposal.conflict["theirs"]) == (CADDY, "")


def test_taking_back_a_promotion_reverts_its_commit_and_the_proposal_waits(data):
    file = files.file_of(None)
    proposal = ProposalFactory(file=file, tier=Tier.PERSON)
    proposals.approve(proposal.pk, by="ada")
    promote(file)
    assert proposals.undo(proposal.pk, by="ada").state == ProposalState.WAITING
    assert proposal.text not in (data / "MEMORY.md").read_text()
    assert proposals.approve(proposal.pk, by="ada").state == ProposalState.APPROVED
    assert files.promote_due().done == (proposal.pk,)
    assert [one.partition(" ")[0] for one in messages(data)] == ["Add", "Revert", "Add"]


def test_a_repository_that_was_lost_begins_with_the_text_of_the_database(data):
    file = files.file_of(None)
    approved(file)
    text = promote(file).text
    shutil.rmtree(data)
    assert "is gone" in read().problem
    assert files.init(None).text == text == (data / "MEMORY.md").read_text()
    assert len(messages(data)) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_a_repository_of_another_user_is_read_and_written(theirs):
    for path in (theirs, *theirs.rglob("*")):
        os.lchown(path, 12345, 12345)
    file = read()
    approved(file)
    assert promote(file).problem == ""
    assert PRUNE in (theirs / "MEMORY.md").read_text()
    assert (theirs / "MEMORY.md").stat().st_uid == 12345


def test_a_submodule_is_read_and_written(settings, theirs, tmp_path):
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(theirs), "sub")
    settings.CLAUDEOPS_MEMORY_FILE = str(outer / "sub" / "MEMORY.md")
    file = read()
    approved(file)
    assert promote(file).problem == ""
    assert (status(outer / "sub"), len(messages(outer / "sub"))) == ("", 2)


def test_while_another_process_works_on_the_file_the_row_is_returned(theirs, settings):
    file = read()
    path = theirs / "MEMORY.md"
    path.write_text(path.read_text() + "- New\n")
    with alone(file):
        assert "New" not in files.refresh(file).text
    assert "New" in files.refresh(file).text


def test_reading_and_promoting_take_the_same_queries_for_ten_and_twenty_entries(theirs):
    file = read()
    path = theirs / "MEMORY.md"
    counts = []
    for number in (5, 10, 20):
        path.write_text("## Operations\n" + "".join(f"- Entry {one}\n" for one in range(number)))
        git(theirs, "commit", "-qam", f"{number}")
        with CaptureQueriesContext(connection) as found:
            files.read(file)
        counts.append(len(found))
    assert counts[1] == counts[2]


def test_a_host_that_was_renamed_keeps_its_files_and_no_other_takes_them(data, settings, tmp_path):
    file = files.file_of(None)
    approved(file, "The first")
    promote(file)
    proposal = approved(file, "The second")
    MemoryFile.objects.update(host="old-name")
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "elsewhere"
    settings.CLAUDEOPS_CURATE = True
    tasks.keep_memory_files()
    assert MemoryFile.objects.get().host == "old-name"
    settings.CLAUDEOPS_DATA_DIR = data.parent
    tasks.keep_memory_files()
    assert MemoryFile.objects.get().host == settings.CLAUDEOPS_HOST
    proposal.refresh_from_db()
    assert proposal.state == ProposalState.PROMOTED


def test_a_file_of_a_host_with_a_worker_is_left_to_it(data, settings):
    file = files.file_of(None)
    approved(file)
    MemoryFile.objects.update(host="other")
    settings.CLAUDEOPS_CURATE = True
    WorkerHeartbeat.objects.create(host="other", cluster="default", pid=1, beat_at=timezone.now())
    tasks.keep_memory_files()
    assert [row.key for row in OrmQ.objects.all()] == ["default@other"]
    assert not data.exists()


def test_the_schedule_does_nothing_when_curation_is_off(data, settings):
    settings.CLAUDEOPS_CURATE = False
    approved(files.file_of(None))
    tasks.keep_memory_files()
    assert not data.exists()
