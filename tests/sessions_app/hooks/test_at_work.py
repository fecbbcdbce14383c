"""Which agent may have written in a project's folder between two looks: ours by their rows, others by their hooks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memories.committers import at_work as known_at_work
from memories.models import Project
from sessions_app.hooks import proof
from sessions_app.hooks.door import answer
from sessions_app.hooks.proof import UNWATCHED, at_work
from sessions_app.models import PromptReceipt, Runner, Session, Status
from sessions_app.runner.agent_hooks import hook_token
from tests.support.committers import trust_commits
from tests.support.factories import ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db

UNTIL = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
SINCE = UNTIL - timedelta(hours=1)
"""The last look and the one that found a commit."""


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


@pytest.fixture
def shop() -> Project:
    """A project from whose folder hooks were heard long ago."""
    project = ProjectFactory(slug="shop", path="/srv/app")
    trust_commits(project)
    return project


@pytest.fixture
def hook(secret, client):
    """Let a developer's CLI call a hook at a time, through the door."""

    def called(event: str, at: datetime, *, session: str = "s-1", cwd: str = "/srv/app", token: str = secret) -> None:
        body = f'{{"session_id": "{session}", "hook_event_name": "{event}", "cwd": "{cwd}", "prompt": "go on"}}'
        reply = answer(event, token, body.encode, at=at)
        assert reply.error is None, reply.error

    return called


def seen(project: Project | None) -> bool:
    why = at_work(project, SINCE, UNTIL)
    assert why != UNWATCHED
    assert known_at_work(project, SINCE, UNTIL) == why, "the rule of commits asks the same"
    return bool(why)


def test_our_sessions(shop, subtests) -> None:
    here, other = {"project": shop}, {"project": ProjectFactory(path="/srv/other")}
    running = {"status": Status.RUNNING, "started_at": UNTIL - minutes(10)}
    long_ago = {"status": Status.RUNNING, "started_at": UNTIL - timedelta(days=9)}
    ended = {"status": Status.COMPLETED, "started_at": SINCE - timedelta(hours=3)}
    for about, fields, expected in [
        ("it runs", here | running, True),
        ("it has run for days", here | long_ago, True),
        ("it began after the look", here | running | {"started_at": UNTIL + minutes(1)}, False),
        ("it began with the look", here | running | {"started_at": UNTIL}, True),
        ("it ended between the looks", here | ended | {"ended_at": SINCE + minutes(1)}, True),
        ("it failed between the looks", here | ended | {"ended_at": UNTIL, "status": Status.FAILED}, True),
        ("it ended four minutes before", here | ended | {"ended_at": SINCE - minutes(4)}, True),
        ("it ended five minutes before", here | ended | {"ended_at": SINCE - minutes(5)}, True),
        ("it ended six minutes before", here | ended | {"ended_at": SINCE - minutes(6)}, False),
        ("it ended after both looks", here | ended | {"ended_at": UNTIL + minutes(9)}, True),
        ("it is queued", here | {"status": Status.QUEUED}, False),
        ("a replay runs nothing", here | running | {"runner": Runner.REPLAY}, False),
        ("it runs in another project", other | running, False),
        ("it runs in no project, so anywhere", {"project": None} | running, True),
        ("it ended in no project", {"project": None} | ended | {"ended_at": SINCE + minutes(1)}, True),
        ("it ended in no project long ago", {"project": None} | ended | {"ended_at": SINCE - minutes(6)}, False),
    ]:
        with subtests.test(about):
            session = SessionFactory(**fields)
            assert seen(shop) == expected
            if expected:
                assert at_work(shop, SINCE, UNTIL) == f"session {session.pk} was at work"
            Session.objects.all().delete()


def test_sessions_of_a_developer_s_cli_by_their_hooks(shop, hook, subtests) -> None:
    ProjectFactory(path="/srv/other")
    start, prompt, end = proof.START, proof.PROMPT, proof.END
    for about, calls, expected in [
        ("it began", [(start, SINCE + minutes(1))], True),
        ("it began before the last look", [(start, SINCE - timedelta(hours=9))], True),
        ("only its prompt was heard", [(prompt, SINCE + minutes(1))], True),
        ("it began after both looks", [(start, UNTIL + minutes(1))], False),
        ("it ended between them", [(start, SINCE - minutes(30)), (end, SINCE + minutes(1))], True),
        ("it ended four minutes before", [(start, SINCE - minutes(30)), (end, SINCE - minutes(4))], True),
        ("it ended six minutes before", [(start, SINCE - minutes(30)), (end, SINCE - minutes(6))], False),
        ("its end alone", [(end, SINCE + minutes(1))], False),
        (
            "it ended and was resumed",
            [(start, SINCE - minutes(30)), (end, SINCE - minutes(20)), (start, SINCE - minutes(10))],
            True,
        ),
        (
            "it was resumed and ended again",
            [
                *[(start, SINCE - minutes(60)), (end, SINCE - minutes(50))],
                *[(start, SINCE - minutes(40)), (end, SINCE - minutes(30))],
            ],
            False,
        ),
        (
            "a prompt reopens it, too",
            [(start, SINCE - minutes(30)), (end, SINCE - minutes(20)), (prompt, SINCE - minutes(10))],
            True,
        ),
        ("it is silent for a day less a minute", [(start, SINCE - timedelta(hours=24) + minutes(1))], True),
        ("it is silent for more than a day", [(start, SINCE - timedelta(hours=24) - minutes(1))], False),
        (
            "it began days ago and is not silent",
            [(start, SINCE - timedelta(days=4)), (prompt, SINCE - timedelta(hours=2))],
            True,
        ),
    ]:
        with subtests.test(about):
            kept = set(PromptReceipt.objects.values_list("pk", flat=True))
            for event, at in calls:
                hook(event, at)
            assert seen(shop) == expected
            if expected:
                assert at_work(shop, SINCE, UNTIL) == "session s-1 of the CLI was at work"
                assert at_work(None, SINCE, UNTIL), "where it is asked of no project, each counts"
            PromptReceipt.objects.exclude(pk__in=kept).delete()
    hook(start, SINCE + minutes(1), cwd="/srv/other")
    assert not seen(shop)
    hook(start, SINCE + minutes(1), session="s-2", cwd="/srv/app/deep/down")
    assert seen(shop)


def test_a_session_of_ours_is_known_by_its_row_and_leaves_no_receipt(shop, hook) -> None:
    ours = SessionFactory(project=shop, status=Status.RUNNING, started_at=SINCE)
    before = PromptReceipt.objects.count()
    for event in (proof.START, proof.PROMPT, proof.END):
        hook(event, SINCE + minutes(1), token=hook_token(ours))
    assert PromptReceipt.objects.count() == before
    assert at_work(shop, SINCE, UNTIL) == f"session {ours.pk} was at work"


def test_where_no_hook_was_ever_heard_nobody_knows(hook) -> None:
    shop = ProjectFactory(path="/srv/app")
    ProjectFactory(path="/srv/other")
    assert at_work(shop, SINCE, UNTIL) == at_work(None, SINCE, UNTIL) == UNWATCHED
    hook(proof.START, SINCE - timedelta(days=9), cwd="/srv/other")
    hook(proof.END, SINCE - timedelta(days=8), cwd="/srv/other")
    assert at_work(shop, SINCE, UNTIL) == UNWATCHED, "what is heard from another folder says nothing of this one"
    assert at_work(None, SINCE, UNTIL) == ""
    hook(proof.START, SINCE - timedelta(days=9), session="s-2")
    hook(proof.END, SINCE - timedelta(days=8), session="s-2")
    assert at_work(shop, SINCE, UNTIL) == ""
    SessionFactory(project=shop, status=Status.RUNNING, started_at=SINCE)
    PromptReceipt.objects.all().delete()
    assert "was at work" in at_work(shop, SINCE, UNTIL), "ours are known without a hook"


def test_a_developer_s_session_in_no_project_may_have_written_anywhere(shop, hook) -> None:
    hook(proof.START, SINCE + minutes(1), cwd="/home/ada")
    assert seen(shop)


@pytest.mark.parametrize("began_in", ["/srv/other", "/home/ada"])
def test_a_session_that_goes_into_the_folder_is_at_work_there(shop, hook, began_in: str) -> None:
    ProjectFactory(path="/srv/other")
    hook(proof.START, SINCE + minutes(1), cwd=began_in)
    hook(proof.PROMPT, SINCE + minutes(2), cwd="/srv/app")
    assert seen(shop)
