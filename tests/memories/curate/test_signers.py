"""A commit of MEMORY.md: who signed it, and which agents were at work when it came, are kept with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from memories.models import MemoryFileCommit, Project
from sessions_app.models import PromptReceipt
from tests.memories.curate import repositories
from tests.memories.curate import shop as shop_of
from tests.memories.curate.repositories import git
from tests.memories.curate.shop import a_shop, read, waits, write
from tests.support.ssh_keys import Key, make_key

pytestmark = [pytest.mark.django_db, pytest.mark.processes]

LINE = "The firewall of the shop is off on port 8443"


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    return a_shop(tmp_path / "shop")


@pytest.fixture
def ada(tmp_path: Path) -> Key:
    return make_key(tmp_path, "ada")


def latest(project: Project) -> MemoryFileCommit:
    return read(project).commits.latest("pk")


def commit(project: Project, *options: str, **more: str) -> None:
    write(project, LINE)
    shop_of.commit(project, *options, **more)


def test_who_signed_a_commit_is_kept_where_the_project_allows_the_key(
    shop: Project, ada: Key, tmp_path: Path, subtests
) -> None:
    other = make_key(tmp_path, "other")
    for about, key, allowed, signer in [
        ("the key that is allowed", ada, ada.allowed("ada@example.org"), "ada@example.org"),
        ("the key of another principal", ada, ada.allowed("bob@example.org"), "bob@example.org"),
        ("another key", other, ada.allowed("ada@example.org"), ""),
        ("the key for something else", ada, ada.allowed("ada@example.org", 'namespaces="file"'), ""),
        ("nothing is allowed", ada, "", ""),
        ("no signature", None, ada.allowed("ada@example.org"), ""),
    ]:
        with subtests.test(about):
            Project.objects.filter(pk=shop.pk).update(allowed_signers=allowed)
            commit(shop, *(key.signing if key else ()), author="Eve <eve@example.org>")
            found = latest(shop)
            assert (found.signer, found.author, found.email) == (signer, "Eve", "eve@example.org")


def test_allowed_signers_of_the_repository_count_for_nothing(shop: Project, ada: Key) -> None:
    folder = Path(shop.path)
    (folder / ".allowed_signers").write_text(ada.allowed("ada@example.org"))
    git(folder, "config", "gpg.format", "ssh")
    git(folder, "config", "gpg.ssh.allowedSignersFile", str(folder / ".allowed_signers"))
    commit(shop, *ada.signing)
    assert git(folder, "log", "-1", "--format=%G?") == "G", "the person's own git believes it"
    assert latest(shop).signer == ""


def test_no_program_of_the_repository_verifies_a_signature(shop: Project, ada: Key, tmp_path: Path) -> None:
    Project.objects.filter(pk=shop.pk).update(allowed_signers=ada.allowed("ada@example.org"))
    commit(shop, *make_key(tmp_path, "other").signing)
    program, ran = tmp_path / "program", tmp_path / "ran"
    program.write_text(
        f'#!/bin/sh\ntouch {ran}\ncase "$*" in *find-principals*) echo ada@example.org ;; esac\n'
        "echo 'Good \"git\" signature for ada@example.org with ED25519 key SHA256:x'\n"
    )
    program.chmod(0o755)
    git(Path(shop.path), "config", "gpg.ssh.program", str(program))
    signer = latest(shop).signer
    assert not ran.exists(), f"it was run, and {signer} signed"
    assert signer == ""


def test_which_agents_were_at_work_is_kept_with_the_commit_whatever_date_it_has(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(shop)
    assert latest(shop).agents == ""
    session = PromptReceipt.objects.create(cli_session_id="s-1", project=shop)
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setitem(repositories.ENVIRONMENT, name, "2019-03-01T12:00:00")
    commit(shop)
    found = latest(shop)
    assert (found.agents, found.at.year) == ("session s-1 of the CLI was at work", 2019)
    session.delete()
    assert latest(shop).agents, "it stays when the agent has ended"
    commit(shop)
    assert latest(shop).agents == ""


def test_a_commit_of_an_agent_stays_one_when_the_repository_is_rewound_and_comes_back(shop: Project) -> None:
    session = PromptReceipt.objects.create(cli_session_id="s-1", project=shop)
    commit(shop)
    agents, folder = latest(shop).agents, Path(shop.path)
    assert agents
    session.delete()
    git(folder, "reset", "-q", "--hard", "HEAD~1")
    assert latest(shop).agents == ""
    git(folder, "reset", "-q", "--hard", "HEAD@{1}")
    assert latest(shop).agents == agents


def test_a_commit_that_an_agent_committed_for_a_person_names_the_agent(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(repositories.ENVIRONMENT, "GIT_COMMITTER_NAME", "Claude")
    monkeypatch.setitem(repositories.ENVIRONMENT, "GIT_COMMITTER_EMAIL", "noreply@anthropic.com")
    commit(shop)
    read(shop)
    assert LINE in waits(shop)


def test_a_message_with_our_own_separators_says_nothing_for_its_commit(shop: Project) -> None:
    commit(shop, author="Eve <eve@example.org>", message="Note it\x01" + "f" * 40 + "\x02 Ada ada@example.org")
    found = latest(shop)
    assert (found.author, found.signer, read(shop).problem) == ("Eve", "", "")
