"""Whose word a commit is: its author's, or nobody's; and that what was found about it first is kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connection
from django.utils import timezone

from memories import committers
from memories.committers import NAMES_AGENT, NOBODY_KNOWS, NOT_TRUSTED, Commit, Look, people, why_nobodys
from memories.models import Project, SeenCommit
from sessions_app.models import PromptReceipt
from tests.support.committers import trust_commits

ADA = "ada@example.org"
AT_WORK = "session 7 was at work"


def commit(email: str = ADA, *, name: str = "Ada", sha: str = "a" * 40, **more: str) -> Commit:
    return Commit(sha, name, email, **more)


def test_whose_word_a_commit_is(subtests) -> None:
    project = Project(slug="shop", trusted_authors="Ada@Example.org\r\nbob@example.org\n")
    trailer = "Note it\n\n{}: Claude <noreply@anthropic.com>\n"
    for about, stated, agents, why in [
        ("a trusted author", commit(), "", ""),
        ("the second one", commit("BOB@example.ORG", name="Bob"), "", ""),
        ("a trusted author while an agent is at work", commit(), AT_WORK, AT_WORK),
        ("another author", commit("eve@example.org", name="Ada"), "", NOT_TRUSTED),
        ("a part of a trusted address", commit("a@example.org"), "", NOT_TRUSTED),
        ("no address", commit(""), "", NOT_TRUSTED),
        ("two addresses", commit(f"{ADA} bob@example.org"), "", NOT_TRUSTED),
        ("a signer", commit("eve@example.org", name="Claude", signer=ADA), AT_WORK, ""),
        ("a signer beside an agent", commit(body=trailer.format("Co-Authored-By"), signer=ADA), AT_WORK, ""),
        ("an agent's name", commit(name="Claude Code"), "", NAMES_AGENT),
        ("a bot's name", commit(name="renovate[bot]"), "", NAMES_AGENT),
        ("our own name", commit(name="claudeops"), "", NAMES_AGENT),
        ("an agent's address", commit("noreply@anthropic.com"), "", NAMES_AGENT),
        ("an agent commits", commit(committer="GitHub Copilot"), "", NAMES_AGENT),
        ("an agent is a co-author", commit(body=trailer.format("Co-Authored-By")), "", NAMES_AGENT),
        ("in small letters", commit(body=trailer.format("co-authored-by")), "", NAMES_AGENT),
        ("it assisted", commit(body=trailer.format("Assisted-by")), "", NAMES_AGENT),
        ("it generated", commit(body=trailer.format("Generated-by")), "", NAMES_AGENT),
        ("a person is a co-author", commit(body="Note it\n\nCo-authored-by: Bob <bob@example.org>"), "", ""),
        ("a text about an agent", commit(body="Tell how claude reads the file"), "", ""),
        ("a name with an agent's in it", commit(name="Claudette Botha"), "", ""),
    ]:
        with subtests.test(about):
            assert why_nobodys(stated, project, agents) == why
    assert why_nobodys(commit(), None, "") == NOT_TRUSTED, "without a project nobody is trusted"
    assert why_nobodys(commit(), Project(slug="new"), "") == NOT_TRUSTED, "at first nobody is trusted"
    assert why_nobodys(commit(""), Project(slug="new"), "") == NOT_TRUSTED


@pytest.mark.parametrize(
    "stated",
    [
        commit(name="ClaudeCode"),
        commit(name="claude_code"),
        commit(body="Note it\n\n🤖 Generated with [Claude Code](https://claude.com/claude-code)\n"),
        commit(body="Note it\n\nSigned-off-by: Claude <noreply@anthropic.com>\n"),
    ],
    ids=["one word", "an underscore", "the footer of Claude Code", "signed off"],
)
def test_agents_sign_in_other_ways_too(stated: Commit) -> None:
    assert why_nobodys(stated, Project(slug="shop", trusted_authors=ADA), "") == NAMES_AGENT


@pytest.fixture
def shop(db: None) -> Project:
    project = Project.objects.create(slug="shop", path="/srv/shop")
    trust_commits(project, ADA)
    return project


def test_a_commit_that_came_while_an_agent_was_at_work_stays_nobody_s_and_one_of_before_stays_a_person_s(
    shop: Project,
) -> None:
    first, now = commit(sha="1" * 40), timezone.now()
    assert people([first], Look(shop, None, now)) == {first.sha: "Ada"}
    session = PromptReceipt.objects.create(cli_session_id="s-1", project=shop)
    second, third = commit(sha="2" * 40), commit(sha="3" * 40)
    during = Look(shop, now, timezone.now())
    assert people([first, second], during) == {first.sha: "Ada"}, "the first one was there before the agent"
    session.ended_at = now - timedelta(days=2)
    session.heard_at = session.at = session.ended_at
    session.save()
    later = Look(shop, timezone.now(), timezone.now() + timedelta(days=1))
    assert people([first, second, third], later) == {first.sha: "Ada", third.sha: "Ada"}
    assert SeenCommit.objects.get(sha=second.sha).agents == "session s-1 of the CLI was at work"
    assert SeenCommit.objects.get(sha=second.sha).at == during.at


def test_another_project_sees_the_same_commit_for_itself(shop: Project) -> None:
    clone = Project.objects.create(slug="clone", path="/srv/clone")
    trust_commits(clone, ADA)
    PromptReceipt.objects.create(cli_session_id="s-1", project=shop)
    now = timezone.now()
    assert people([commit()], Look(shop, now, now)) == {}
    assert people([commit()], Look(clone, now, now)) == {commit().sha: "Ada"}
    assert SeenCommit.objects.count() == 2


def test_a_signer_s_name_stands_for_the_commit_whoever_is_its_author(shop: Project) -> None:
    signed = commit("eve@example.org", name="Eve", signer=ADA)
    assert people([signed], Look(shop, None, timezone.now())) == {signed.sha: ADA}


def test_without_anybody_who_knows_the_agents_no_commit_is_a_person_s(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committers, "_at_work", [])
    now = timezone.now()
    assert committers.at_work(shop, now, now) == NOBODY_KNOWS
    assert people([commit()], Look(shop, None, now)) == {}
    assert SeenCommit.objects.get().agents == NOBODY_KNOWS
    committers.know_agents_by(lambda project, since, until: "")
    assert people([commit(), commit(sha="b" * 40)], Look(shop, now, now)) == {"b" * 40: "Ada"}


@pytest.mark.django_db(transaction=True)
def test_two_looks_at_once_keep_one_row() -> None:
    shop = Project.objects.create(slug="shop", path="/srv/shop")
    trust_commits(shop, ADA)
    both, now = Barrier(2), timezone.now()
    shas = [f"{number:040x}" for number in range(20)]

    def look(_: int) -> dict[str, str]:
        both.wait(timeout=30)
        try:
            return people([commit(sha=sha) for sha in shas], Look(shop, None, now))
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(look, range(2)))
    assert found == [dict.fromkeys(shas, "Ada")] * 2
    assert SeenCommit.objects.count() == len(shas)
