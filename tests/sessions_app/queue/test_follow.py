"""Retry and continue: a new session linked to the old one, once however often it is pressed."""

from __future__ import annotations

import pytest
from django.utils import timezone

from sessions_app import queue
from sessions_app.errors import InvalidBrief, InvalidSession
from sessions_app.models import TASK_TEXT, Runner, Session, Status, Trigger
from tests.sessions_app.queue.support import wakeups
from tests.support.factories import ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def old():
    return SessionFactory(
        status=Status.FAILED,
        project=ProjectFactory(),
        tier=1,
        task="Fix the login.",
        brief={"title": "Login", "write_scope": ["src/**"], "note": "of before"},
        cli_session_id="0b8d",
        started_at=timezone.now(),
        ingest_state={"reading": {"exposure": "outside", "sources": ["logs: jellyfin"]}},
    )


@pytest.mark.parametrize(("ask", "kind"), [(queue.request_retry, "retry"), (queue.request_continue, "continue")])
def test_the_new_session_is_linked_and_asked_the_same_with_the_operators_words(old, ask, kind):
    made = ask(old, by="ops", note=" Look at the cookie. ")
    assert (made.parent, made.follows_as, made.status, made.trigger) == (old, kind, Status.QUEUED, Trigger.MANUAL)
    assert (made.task, made.project, made.agent) == (old.task, old.project, old.agent)
    assert made.brief == {"title": "Login", "write_scope": ["src/**"], "note": "Look at the cookie."}
    assert made.exposed_to == ["logs: jellyfin"]
    assert wakeups() == [("sessions", made.pk)]


@pytest.mark.parametrize("ask", [queue.request_retry, queue.request_continue])
def test_pressed_twice_it_is_one_session(old, ask):
    assert ask(old, by="ops", note="Again.") == ask(old, by="ops", note="Again.") == ask(old, by="ops")
    assert Session.objects.exclude(pk=old.pk).count() == 1


def test_other_words_for_an_open_retry_are_not_lost_silently(old):
    made = queue.request_retry(old, by="ops", note="Again.")
    with pytest.raises(InvalidSession, match="has other words"):
        queue.request_retry(old, by="ops", note="Otherwise.")
    made.refresh_from_db()
    assert made.brief["note"] == "Again."


def test_after_the_retry_has_ended_there_may_be_another(old):
    first = queue.request_retry(old, by="ops", note="Again.")
    Session.objects.filter(pk=first.pk).update(status=Status.FAILED)
    assert queue.request_retry(old, by="ops", note="Otherwise.") != first


@pytest.mark.parametrize("ask", [queue.request_retry, queue.request_continue])
@pytest.mark.parametrize(
    ("fields", "why"),
    [({"status": Status.RUNNING}, "has not ended"), ({"trigger": Trigger.IMPORT}, "imported log")],
)
def test_an_open_or_imported_session_is_refused(old, ask, fields, why):
    Session.objects.filter(pk=old.pk).update(**fields)
    old.refresh_from_db()
    with pytest.raises(InvalidSession, match=why):
        ask(old, by="ops")
    assert Session.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"runner": Runner.REPLAY, "replay_stream": "a.jsonl"}, "recorded stream"),
        ({"started_at": None}, "never started"),
    ],
)
def test_what_has_no_conversation_can_be_retried_and_not_continued(old, fields, why):
    Session.objects.filter(pk=old.pk).update(**fields)
    old.refresh_from_db()
    with pytest.raises(InvalidSession, match=why) as caught:
        queue.request_continue(old, by="ops")
    assert caught.value.fix == "Retry it instead."
    assert queue.request_retry(old, by="ops").follows_as == "retry"


def test_the_retry_of_an_alert_still_has_its_text_from_outside(old):
    Session.objects.filter(pk=old.pk).update(trigger=Trigger.ALERT, ingest_state={"before": [TASK_TEXT]})
    old.refresh_from_db()
    assert queue.request_retry(old, by="ops").exposed_before == [TASK_TEXT]


def test_words_too_long_to_arrive_whole_are_refused(old):
    with pytest.raises(InvalidBrief, match="note"):
        queue.request_retry(old, by="ops", note="x" * 20_001)


def test_a_bad_glob_is_refused_and_nothing_is_queued():
    with pytest.raises(InvalidBrief, match="write_scope"):
        queue.request_session(agent=None, trigger="manual", by="ops", brief={"write_scope": ["/etc/**"]})
    assert not Session.objects.exists()
