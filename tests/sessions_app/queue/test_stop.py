"""queue.request_stop: a waiting session ends at once, a running one is told to."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sessions_app import queue
from sessions_app.errors import InvalidSession, SessionNotFound
from sessions_app.models import Session, Status
from tests.sessions_app.queue.support import AT, snapshot, woken
from tests.support.factories import AgentFactory, SessionFactory

pytestmark = pytest.mark.django_db


def test_a_queued_session_is_stopped_at_once_and_says_by_whom():
    session, other = SessionFactory(status=Status.QUEUED, hold_reason="It waits."), SessionFactory(status=Status.QUEUED)
    before = Session.objects.filter(pk=other.pk).values("status", "status_reason", "ended_at").get()
    words = queue.request_stop(session.pk, by="operator", at=AT)
    assert words == f"Session {session.pk} was queued and is now stopped."
    session.refresh_from_db()
    assert (session.status, session.status_reason, session.ended_at, session.hold_reason) == (
        Status.STOPPED,
        "Stopped by operator before it started.",
        AT,
        "",
    )
    assert Session.objects.filter(pk=other.pk).values("status", "status_reason", "ended_at").get() == before


def test_who_waited_behind_a_stopped_session_is_woken():
    agent = AgentFactory()
    first, second = [SessionFactory(status=Status.QUEUED, agent=agent, queued_at=AT) for _ in range(2)]
    queue.dispatch(at=AT)
    queue.request_stop(first.pk, by="operator", at=AT)
    assert woken() == [first.pk, second.pk]


def test_a_running_session_is_told_to_stop_and_goes_on_until_its_follower_acts():
    session, other = SessionFactory(status=Status.RUNNING), SessionFactory(status=Status.RUNNING)
    before = snapshot([other])
    assert "is stopping" in queue.request_stop(session.pk, by="operator", at=AT)
    session.refresh_from_db()
    assert (session.status, session.stop_requested_at, session.stop_requested_by, session.ended_at) == (
        Status.RUNNING,
        AT,
        "operator",
        None,
    )
    assert snapshot([other]) == before


def test_who_asked_first_stays_on_the_row():
    session = SessionFactory(status=Status.RUNNING)
    queue.request_stop(session.pk, by="operator", at=AT)
    words = queue.request_stop(session.pk, by="stranger", at=AT + timedelta(minutes=1))
    assert words == f"Session {session.pk} is stopping already, requested by operator."
    session.refresh_from_db()
    assert (session.stop_requested_at, session.stop_requested_by) == (AT, "operator")


@pytest.mark.parametrize("status", [s for s in Status if s not in (Status.QUEUED, Status.RUNNING)])
def test_an_ended_session_is_refused_and_stays_as_it_is(status):
    session = SessionFactory(status=status)
    before = snapshot([session])
    with pytest.raises(InvalidSession, match="has already ended"):
        queue.request_stop(session.pk, by="operator", at=AT)
    assert snapshot([session]) == before


def test_a_session_that_is_not_there_is_named():
    with pytest.raises(SessionNotFound, match="There is no session 4711"):
        queue.request_stop(4711, by="operator")
