"""Whether a memory helped: which sessions are about a service, and how the two groups are compared."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.models import Injected, ServiceCheck, Status, Trigger
from sessions_app.queries import failures, helped
from sessions_app.queries.failures import sessions_about
from sessions_app.queries.helped import ENDED, FEWEST, Run, compare
from tests.memories.people import signed_in
from tests.support.factories import CooldownActionFactory, EventFactory, MemoryFactory, SessionFactory

NOW = timezone.now()
SINCE = NOW - timedelta(days=90)


# -- pure ---------------------------------------------------------------------------------------------------------


RUNS = st.lists(st.builds(Run, st.sampled_from(Status.values), st.integers(0, 10**9), st.booleans()), max_size=60)


@given(RUNS)
def test_every_ended_session_is_in_one_group_and_no_other(runs):
    told, others = compare(runs)
    ended = [run for run in runs if run.status in ENDED]
    assert told.sessions == sum(run.told for run in ended)
    assert told.sessions + others.sessions == len(ended)
    for group in (told, others):
        assert 0 <= group.completed <= group.sessions
        assert 0 <= group.percent <= 100
        assert group.median_ms is None or group.completed >= FEWEST


def runs(status, count, told, took=60_000):
    return [Run(status, took, told) for _ in range(count)]


def outcome(told, others):
    return helped.Helped("jellyfin", *compare([*told, *others]), since=SINCE, cut=False)


def test_below_five_in_either_group_nothing_is_claimed():
    few = outcome(runs("completed", 4, True), runs("completed", 12, False))
    assert not few.enough
    assert few.time == ""
    assert outcome(runs("completed", 5, True), runs("failed", 5, False)).enough


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        (60_000, 101_000, "Completed ones that were told it took 41 s less, by the median."),
        (200_000, 80_000, "Completed ones that were told it took 2 min more, by the median."),
        (60_000, 60_400, "Completed ones took as long, by the median."),
    ],
)
def test_the_durations_of_completed_sessions_are_compared_by_their_medians(mine, theirs, said):
    told = runs("completed", 6, True, mine) + runs("failed", 3, True, 1)
    assert outcome(told, runs("completed", 5, False, theirs)).time == said


def test_a_stopped_session_is_no_outcome():
    found = outcome(runs("completed", 5, True) + runs("stopped", 9, True), runs("completed", 5, False))
    assert found.told.sessions == 5


# -- which sessions -----------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_session_is_about_a_service_by_its_events_checks_remediations_and_memories():
    ours = [
        EventFactory(service="jellyfin").session,
        ServiceCheck.objects.create(session=SessionFactory(), service="jellyfin", status="up", healthy=True).session,
        CooldownActionFactory(service="jellyfin").session,
        MemoryFactory(service="jellyfin", session=SessionFactory()).session,
        MemoryFactory(service="jellyfin", session=SessionFactory(), active=False).session,
    ]
    EventFactory(service="caddy")
    EventFactory(service="jellyfin", created_at=NOW - timedelta(days=91))
    EventFactory(service="jellyfin", session=None)
    MemoryFactory(service="jellyfin")
    told = SessionFactory()
    Injected.objects.create(session=told, memory_id=MemoryFactory(service="jellyfin").pk)
    found = sessions_about("jellyfin", since=SINCE)
    assert found.sessions == {session.pk for session in ours}
    assert (found.since, found.cut) == (SINCE, False)


@pytest.mark.django_db
def test_of_a_busy_service_a_shorter_time_is_looked_at_for_every_kind(monkeypatch):
    monkeypatch.setattr(failures, "ROWS", 3)
    for days in (1, 2, 3, 4):
        EventFactory(service="jellyfin", created_at=NOW - timedelta(days=days))
    old = CooldownActionFactory(service="jellyfin", created_at=NOW - timedelta(days=10))
    found = sessions_about("jellyfin", since=SINCE)
    assert found.cut
    assert found.since == NOW - timedelta(days=3)
    assert len(found.sessions) == 3
    assert old.session_id not in found.sessions


@pytest.mark.django_db
def test_at_most_so_many_sessions_are_compared_the_latest(monkeypatch):
    monkeypatch.setattr(failures, "MOST", 2)
    events = [EventFactory(service="jellyfin", created_at=NOW - timedelta(days=days)) for days in (9, 5, 1)]
    found = sessions_about("jellyfin", since=SINCE)
    assert found.sessions == {event.session_id for event in events[1:]}
    assert (found.since, found.cut) == (NOW - timedelta(days=5), True)


# -- the page -----------------------------------------------------------------------------------------------------


def about_jellyfin(count, status=Status.COMPLETED, **given):
    return [
        EventFactory(service="jellyfin", session=SessionFactory(status=status, **given)).session for _ in range(count)
    ]


@pytest.mark.django_db
def test_the_page_compares_the_sessions_that_were_told_it_with_the_others():
    memory = MemoryFactory(service="jellyfin")
    told = about_jellyfin(11, duration_ms=60_000) + about_jellyfin(1, Status.FAILED)
    Injected.objects.bulk_create(Injected(session=session, memory_id=memory.pk) for session in told)
    about_jellyfin(6, duration_ms=101_000)
    about_jellyfin(2, Status.ESCALATED)
    about_jellyfin(3, trigger=Trigger.IMPORT)
    about_jellyfin(3, dry_run=True)
    html = signed_in("viewer").get(f"/memories/{memory.pk}").content.decode()
    panel = html.partition('id="helped"')[2].partition("</section>")[0]
    text = " ".join(re.sub(r"<[^>]+>", " ", panel).split())
    assert "Told, 12 sessions 92 % completed" in text
    assert "Not told, 8 sessions 75 % completed" in text
    assert "Completed sessions about jellyfin in 90 days. Completed ones that were told it took 41 s less" in text
    assert "A comparison, not a proof" in text


@pytest.mark.django_db
def test_with_few_sessions_the_page_says_that_there_are_too_few_and_without_a_service_nothing():
    memory = MemoryFactory(service="jellyfin")
    told = about_jellyfin(3)
    Injected.objects.bulk_create(Injected(session=session, memory_id=memory.pk) for session in told)
    about_jellyfin(12)
    client = signed_in("viewer")
    html = client.get(f"/memories/{memory.pk}").content.decode()
    assert "Too few to say: 3 sessions told it, 12 not." in html
    assert 'class="mini"' not in html
    assert 'id="helped"' not in client.get(f"/memories/{MemoryFactory(service=None).pk}").content.decode()


@pytest.mark.django_db
def test_it_takes_as_many_queries_for_many_sessions_as_for_few():
    memory = MemoryFactory(service="jellyfin")

    def queries(sessions):
        about_jellyfin(sessions)
        with CaptureQueriesContext(connection) as captured:
            helped.helped(memory.pk, "jellyfin", at=NOW + timedelta(minutes=1))
        return len(captured)

    assert queries(1) == queries(20) == 7
