"""The feed: what happened in one order, nothing lost or twice whatever has the same time; equal rows are one entry."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claudeops.features.overview import feed
from claudeops.workers import runs
from memories.exchange.import_export import import_lines
from memories.lifecycle import merge, verbs
from memories.models import MemoryChange
from memories.store import Provenance, Statement, remember
from sessions_app.models import Event, Session, Status, WorkerRun
from tests.claudeops.front import HTMX
from tests.support.factories import AgentFactory, EventFactory, MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def change(at: datetime, kind: str = "created", **fields) -> MemoryChange:
    return MemoryChange.objects.create(memory=MemoryFactory(), kind=kind, at=at, **fields)


def keys(**options) -> list[str]:
    return [group.place.key for group in feed.page(**options).groups]


def newest(**options) -> list[feed.Entry]:
    return feed.entries(feed.page(**options).groups)


def said(**options) -> list[tuple[str, str]]:
    """The keys of the entries, and how many rows each stands for."""
    return [(entry.key, entry.shown) for entry in newest(**options)]


def shown(**options) -> dict[str, str]:
    """The rows of the change token of a browser that shows the feed."""
    return dict.fromkeys(keys(**options), "")


def pages(most: int, **options) -> list[list[str]]:
    """Every page from the newest to the oldest, each asked for from where the one before ends."""
    found, before = [], None
    while True:
        page = feed.page(before=before, most=most, **options)
        found.append([f"{group.place.key}*{group.count}" for group in page.groups])
        if page.further is None:
            return found
        before = feed.read_place(str(page.further))


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


def test_what_happened_stands_in_one_order_the_newest_first():
    session = SessionFactory(started_at=AT, ended_at=AT + 3 * SECOND)
    event = EventFactory(session=session, created_at=AT + 1 * SECOND)
    learned = change(AT + 2 * SECOND)
    assert keys() == [f"d{session.pk}", f"m{learned.pk}", f"e{event.pk}"]


def test_of_what_has_the_same_time_each_has_its_place():
    sessions = SessionFactory.create_batch(2, started_at=AT, ended_at=AT)
    events = EventFactory.create_batch(3, session=None, created_at=AT)
    changes = [change(AT, actor=f"anna-{n}") for n in range(2)]
    runs = SessionFactory.create_batch(2, status=Status.RUNNING, started_at=AT)
    expected = [
        *(f"d{row.pk}" for row in reversed(sessions)),
        *(f"m{row.pk}" for row in reversed(changes)),
        *(f"e{row.pk}" for row in reversed(events)),
        *(f"s{row.pk}" for row in reversed(runs)),
    ]
    assert keys() == expected
    for most in (1, 2, 3, 4, 7):
        assert [key.partition("*")[0] for page in pages(most) for key in page] == expected


def test_a_session_that_waits_is_no_news_one_that_runs_has_begun_and_one_that_ended_has_ended():
    SessionFactory(status=Status.QUEUED)
    session = SessionFactory(status=Status.RUNNING, started_at=AT)
    assert keys() == [f"s{session.pk}"]
    Session.objects.update(status=Status.COMPLETED, ended_at=AT + SECOND)
    assert f"s{session.pk}" not in keys()
    assert f"d{session.pk}" in keys()


def test_what_time_takes_is_not_in_it_and_what_anybody_does_is():
    memory = MemoryFactory()
    for kind in ("decayed", "expired"):
        change(AT, kind)
    assert keys() == []
    verbs.edit(memory, by="operator", observation="Said better")
    provenance = Provenance(source="run", actor="agent:watch", tier=1, agent="watch", channel="text")
    remember(Statement("timing", "Takes 40 seconds to come up again", "caddy"), provenance)
    other = MemoryFactory()
    merge.delete(other, by="operator", reason="wrong")
    told = {(entry.row.kind, entry.observation) for entry in newest()}
    assert told == {
        ("edited", "Said better"),
        ("created", "Takes 40 seconds to come up again"),
        ("deleted", other.observation),
    }


@pytest.mark.parametrize("kind", ["begun", "ended", "event", "memory"])
def test_an_entry_names_its_kind_and_row(kind):
    session, runs = SessionFactory(started_at=AT, ended_at=AT + SECOND), SessionFactory(status="running", started_at=AT)
    event, learned = EventFactory(session=session, created_at=AT), change(AT)
    rows = {"begun": runs, "ended": session, "event": event, "memory": learned}
    entry = next(entry for entry in newest() if entry.kind == kind)
    assert entry.row == rows[kind]


def test_news_are_the_entries_a_browser_lacks_each_behind_its_neighbour():
    old = EventFactory(session=None, created_at=AT)
    seen = shown()
    newer = EventFactory(session=None, created_at=AT + SECOND)
    older = EventFactory(session=None, created_at=AT - SECOND)
    same = EventFactory(session=None, created_at=AT)
    news = feed.changes(seen, newest())
    assert [(entry.key, behind) for entry, behind in news.new] == [
        (f"e{newer.pk}", None),
        (f"e{same.pk}", f"e{newer.pk}"),
        (f"e{older.pk}", f"e{old.pk}"),
    ]
    assert news.gone == []


def test_an_entry_that_was_written_first_and_arrives_last_is_told():
    """Two writers: the lower number, of an earlier time, is committed when the higher one was seen already."""
    late = EventFactory(session=None, created_at=AT)
    Event.objects.filter(pk=late.pk).delete()
    EventFactory(session=None, created_at=AT + SECOND)
    seen = shown()
    late.save(force_insert=True)
    assert [entry.key for entry, _ in feed.changes(seen, newest()).new] == [f"e{late.pk}"]


def test_what_was_deleted_or_pushed_off_leaves_the_page(monkeypatch):
    first, second = (EventFactory(session=None, created_at=AT + n * SECOND) for n in range(2))
    seen = shown(most=2)
    third = EventFactory(session=None, created_at=AT + 9 * SECOND)
    second.delete()
    news = feed.changes(seen, newest(most=1))
    assert [entry.key for entry, _ in news.new] == [f"e{third.pk}"]
    assert sorted(news.gone) == sorted([f"e{first.pk}", next(iter(seen))])


def test_a_browser_that_polls_while_all_is_written_shows_each_entry_once():
    told: list[str] = []
    for step in range(12):
        at = AT + (step // 4) * SECOND  # four writes at each moment
        EventFactory(session=None, created_at=at)
        if step % 3 == 0:
            change(at, actor=f"anna-{step}")
        if step % 4 == 3:
            SessionFactory(started_at=at, ended_at=at)
        if step % 2:
            news = feed.changes(dict.fromkeys(told, ""), newest())
            for entry, behind in news.new:
                assert entry.key not in told
                told.insert(told.index(behind) + 1 if behind else 0, entry.key)
            assert news.gone == []
    assert told == keys()
    assert len(told) == 12 + 4 + 3


@pytest.mark.parametrize(
    "text", ["", "x", "~e1", "2026-03-10~e1", "2026-03-10T12:00:00+00:00~z1", "now~e1", "2026-03-10T12:00:00+00:00~e0"]
)
def test_a_place_that_is_none_is_refused(signed_in, text):
    with pytest.raises(ValueError):
        feed.read_place(text)
    assert signed_in.get("/feed", {"before": text}).status_code == 400


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_feeds_page_leads_to_older_entries_until_there_are_none(signed_in):
    EventFactory.create_batch(230, session=None, created_at=AT)
    found, url = [], "/feed"
    while url:
        html = signed_in.get(url).content.decode()
        found += re.findall(r'<li id="feed-(e\d+)"', html)
        older = re.search(r'href="(\?before=[^"]+)" rel="next"', html)
        url = "/feed" + older.group(1) if older else ""
    assert len(found) == len(set(found)) == 230


def test_each_kind_of_entry_is_told_in_words_that_lead_to_it(signed_in):
    session = SessionFactory(
        agent=AgentFactory(slug="watch"), started_at=AT, ended_at=AT, status=Status.FAILED, status_reason="It <broke>."
    )
    EventFactory(session=session, level="critical", service="caddy", message="Down & out")
    learned = change(AT, actor="agent:watch", after={"observation": "Takes 60s"})
    gone = change(AT, "deleted", before={"observation": "Was known once"}, actor="operator")
    MemoryChange.objects.filter(pk=gone.pk).update(memory=None)
    html = " ".join(signed_in.get("/feed").content.decode().split())
    for words in (
        "watch failed: It &lt;broke&gt;.",
        "Down &amp; out",
        "by agent:watch",
        "Was known once",
        "by operator",
    ):
        assert words in html
    for url in (f"/sessions/{session.pk}", f"/events?session={session.pk}", f"/memories/{learned.memory_id}"):
        assert f'href="{url}"' in html
        assert signed_in.get(url).status_code == 200


def test_an_empty_feed_says_what_comes_and_how(signed_in):
    html = signed_in.get("/feed").content.decode()
    assert "Nothing has happened yet." in html
    assert 'href="/sessions"' in html


def test_its_queries_are_the_same_with_twice_the_rows(signed_in):
    def queries(rows: int) -> int:
        for n in range(rows):
            EventFactory(session=SessionFactory(started_at=AT, ended_at=AT))
            change(AT, actor=f"anna-{n}")
            WorkerRun.objects.create(host=f"nas-{n}", pid=1, queues="default", started_at=AT, ended_at=AT)
        with CaptureQueriesContext(connection) as captured:
            signed_in.get("/feed")
        return len(captured)

    assert queries(5) == queries(10)


def test_it_is_read_from_indexes_and_nothing_is_sorted_but_equals():
    """The plan of each source; ended sessions alone are sorted, among those of the same moment."""
    Session.objects.bulk_create(
        Session(started_at=at, ended_at=at, status=Status.COMPLETED) for at in (AT + n * SECOND for n in range(200))
    )
    Event.objects.bulk_create(Event(message="x", fingerprint=str(n), created_at=AT + n * SECOND) for n in range(600))
    memory = MemoryFactory()
    MemoryChange.objects.bulk_create(
        MemoryChange(memory=memory, memory_uuid=memory.uuid, kind="decayed", at=AT + n * SECOND) for n in range(600)
    )
    change(AT)
    times = [AT + n * SECOND for n in range(200)]
    WorkerRun.objects.bulk_create(WorkerRun(host="nas", pid=1, started_at=at, ended_at=at) for at in times)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    indexes = {"e": "events_created", "m": "memory_changes_said", "d": "sessions_ended"}
    indexes |= {"w": "worker_runs_started", "x": "worker_runs_ended"}
    for place in (None, feed.Place(AT + 50 * SECOND, 3, 1, "e")):
        for letter, index in indexes.items():
            source = feed.SOURCES[letter]
            rows = feed._ordered(source, feed._older(source, place))[: feed.READ]
            plan = rows.explain()
            if connection.vendor == "sqlite" or letter in "em":  # PostgreSQL reads a few rows of sessions as they lie
                assert index in plan, plan


# -- equal rows are one entry ------------------------------------------------------------------------------------------


def test_what_one_action_does_to_many_memories_is_one_entry_whatever_happens_meanwhile():
    changes = [change(AT + n * timedelta(seconds=20), "approved", actor="anna") for n in range(4)]
    event = EventFactory(session=None, created_at=AT + 30 * SECOND)
    other = change(AT + 30 * SECOND, "approved", actor="ben")
    later = change(AT + timedelta(minutes=3), "approved", actor="anna")
    assert said() == [
        (f"m{later.pk}", "1"),
        (f"m{changes[-1].pk}", "4"),
        (f"m{other.pk}", "1"),
        (f"e{event.pk}", "1"),
    ]


def test_an_import_is_said_with_its_number(signed_in):
    lines = [json.dumps({"category": "timing", "observation": f"Restart {n} takes {n} s"}) for n in range(306)]
    import_lines(lines, by="operator")
    older = EventFactory(session=None, created_at=AT)
    html = " ".join(signed_in.get("/feed").content.decode().split())
    assert "operator imported 306 memories" in html
    assert f"feed-e{older.pk}" in html
    link = unescape(re.search(r'href="(/feed\?group=[^"]+)"', html)[1])
    rows, url = [], link
    while url:
        page = signed_in.get(url).content.decode()
        rows += re.findall(r'<li id="feed-(m\d+)"', page)
        older_page = re.search(r'href="(\?[^"]+)" rel="next"', page)
        url = "/feed" + unescape(older_page[1]) if older_page else ""
    assert len(rows) == len(set(rows)) == 306


def test_an_action_on_more_than_is_read_does_not_hide_what_was_before(monkeypatch):
    source = replace(feed.SOURCES["m"], most=100)
    monkeypatch.setitem(feed.SOURCES, "m", source)
    older = change(AT - timedelta(hours=1), "edited", actor="ben")
    memory = MemoryFactory()
    MemoryChange.objects.bulk_create(
        MemoryChange(memory=memory, memory_uuid=memory.uuid, kind="approved", actor="anna", at=AT) for _ in range(250)
    )
    first, second = newest()
    assert (first.shown, second.key) == ("100+", f"m{older.pk}")
    assert [key for page in pages(1) for key in page][-1] == f"m{older.pk}*1"


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 300)), max_size=25), st.integers(1, 4))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_every_row_is_in_one_entry_of_one_page(db, rows, most):
    with transaction.atomic():
        for who, second in rows:
            at = AT + second * SECOND
            if who == 3:
                EventFactory(session=None, message="The same", created_at=at)
            else:
                change(at, actor=f"anna-{who}")
        found = [key for page in pages(most) for key in page]
        assert len(found) == len(set(found))
        assert sum(int(key.partition("*")[2]) for key in found) == len(rows)
        assert found == [key for page in pages(100) for key in page]
        transaction.set_rollback(True)


def test_equal_ends_of_sessions_and_equal_events_are_one_entry_and_others_are_not():
    agent, hour = AgentFactory(), timedelta(hours=1)
    same = [SessionFactory(agent=agent, ended_at=AT + n * hour, summary="All is well") for n in range(3)]
    other = SessionFactory(agent=agent, ended_at=AT + 3 * hour, summary="Nextcloud is slow")
    events = [EventFactory(session=None, message="It is slow", created_at=AT + n * hour) for n in range(2)]
    warning = EventFactory(session=None, message="It is slow", level="warning", created_at=AT + hour)
    assert said() == [
        (f"d{other.pk}", "1"),
        (f"d{same[-1].pk}", "3"),
        (f"e{warning.pk}", "1"),
        (f"e{events[-1].pk}", "2"),
    ]


def test_an_entry_that_grows_at_its_older_end_is_sent_anew(signed_in):
    head = EventFactory(session=None, message="It is slow", created_at=AT)
    known = {entry.key: entry.mark for entry in newest()}
    EventFactory(session=None, message="It is slow", created_at=AT - SECOND)
    news = feed.changes(known, newest())
    assert ([entry.key for entry in news.changed], news.new, news.gone) == ([f"e{head.pk}"], [], [])
    assert newest()[0].mark == "2"


def test_a_worker_that_restarted_is_told_with_the_loss_before(signed_in):
    killed = runs.started(host="nas", pid=10**6, queues=["default", "sessions"], at=AT)
    WorkerRun.objects.filter(pk=killed).update(pid=2**30)  # no such process
    again = runs.started(host="nas", pid=os.getpid(), queues=["default", "sessions"], at=AT + SECOND)
    assert keys(name="workers") == [f"x{killed}", f"w{again}", f"w{killed}"]
    html = " ".join(signed_in.get("/feed?feed=workers").content.decode().split())
    for words in ("Worker on nas was lost", "Worker on nas restarted", "Worker on nas started", "default, sessions"):
        assert words in html


def test_memories_that_faded_are_told_with_their_number(signed_in):
    memories = MemoryFactory.create_batch(3)
    for memory in memories:
        after = {"confidence": 0.29, "active": memory is memories[2]}
        MemoryChange.objects.create(memory=memory, memory_uuid=memory.uuid, kind="decayed", at=AT, after=after)
    html = " ".join(signed_in.get("/feed").content.decode().split())
    assert "2 memories faded" in html
    link = re.search(r'href="(/feed\?group=[^"]+)">2 memories', html)
    opened = " ".join(signed_in.get(unescape(link[1])).content.decode().split())
    assert [memory.observation in opened for memory in memories] == [True, True, False]


@pytest.mark.parametrize(
    ("name", "letters"), [("sessions", "sd"), ("events", "e"), ("memories", "m"), ("workers", "wx")]
)
def test_a_chip_shows_its_kind_alone_and_stands_in_the_address(signed_in, name, letters):
    session = SessionFactory(started_at=AT, ended_at=AT + SECOND)
    SessionFactory(status="running", started_at=AT)
    EventFactory(session=session, created_at=AT)
    change(AT)
    WorkerRun.objects.create(host="nas", pid=1, queues="default", started_at=AT, ended_at=AT + SECOND, ending="lost")
    for address in ("/", "/feed"):
        html = signed_in.get(f"{address}?feed={name}").content.decode()
        assert {key[0] for key in re.findall(r'<li id="feed-(\w+)"', html)} == set(letters)
        assert re.search(rf'id="feed-only-{name}" href="\?feed={name}" aria-current="true"', html)
        every = signed_in.get(f"{address}?feed=nonsense").content.decode()
        assert {key[0] for key in re.findall(r'<li id="feed-(\w+)"', every)} == set("sdemwx")


def test_the_poll_of_a_chip_brings_its_kind_alone(signed_in):
    event = EventFactory(session=None, created_at=AT)
    html = signed_in.get("/?feed=events").content.decode()
    poll = unescape(re.search(r'hx-get="(/overview/fragment[^"]+)"', html)[1])
    assert poll.endswith("&feed=events")
    another = EventFactory(session=None, created_at=AT + SECOND)
    change(AT + SECOND)
    answer = signed_in.get(poll, headers=HTMX).content.decode()
    assert re.findall(r'<li id="feed-(\w+)"', answer) == [f"e{another.pk}"]
    assert "afterbegin:#feed-entries" in answer
    assert f"feed-e{event.pk}" not in answer


def test_an_entry_that_is_gone_or_is_none_is_not_found(signed_in):
    place = feed.Place(AT, 4, 99, "m")
    assert signed_in.get("/feed", {"group": str(place)}).status_code == 404
    assert signed_in.get("/feed", {"group": "x"}).status_code == 400
    running = SessionFactory(status="running", started_at=AT)
    assert signed_in.get("/feed", {"group": f"{AT.isoformat()}~s{running.pk}"}).status_code == 404
