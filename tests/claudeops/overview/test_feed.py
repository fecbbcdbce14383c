"""The feed: what happened in one order, nothing lost or twice whatever has the same time, and nothing of time's own."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from claudeops.overview import feed
from memories.lifecycle import merge, verbs
from memories.models import MemoryChange
from memories.store import Provenance, Statement, remember
from sessions_app.models import Event, Session, Status
from tests.factories import AgentFactory, EventFactory, MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def change(at: datetime, kind: str = "created", **fields) -> MemoryChange:
    return MemoryChange.objects.create(memory=MemoryFactory(), kind=kind, at=at, **fields)


def keys(**options) -> list[str]:
    return [place.key for place in feed.places(**options)]


def shown(**options) -> dict[str, str]:
    """The rows of the change token of a browser that shows the feed."""
    return dict.fromkeys(keys(**options), "")


def pages(most: int) -> list[list[str]]:
    """Every page from the newest to the oldest, each asked for from the last place of the one before."""
    found, before = [], None
    while places := feed.places(before=before, most=most):
        found.append([place.key for place in places])
        before = feed.read_place(str(places[-1]))
    return found


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


def test_what_happened_stands_in_one_order_the_newest_first():
    session = SessionFactory(started_at=AT, ended_at=AT + 3 * SECOND)
    event = EventFactory(session=session, created_at=AT + 1 * SECOND)
    learned = change(AT + 2 * SECOND)
    assert keys() == [f"d{session.pk}", f"m{learned.pk}", f"e{event.pk}", f"s{session.pk}"]


def test_of_what_has_the_same_time_each_has_its_place():
    sessions = SessionFactory.create_batch(2, started_at=AT, ended_at=AT)
    events = EventFactory.create_batch(3, session=None, created_at=AT)
    changes = [change(AT) for _ in range(2)]
    expected = [
        *(f"d{row.pk}" for row in reversed(sessions)),
        *(f"m{row.pk}" for row in reversed(changes)),
        *(f"e{row.pk}" for row in reversed(events)),
        *(f"s{row.pk}" for row in reversed(sessions)),
    ]
    assert keys() == expected
    for most in (1, 2, 3, 4, 7):
        assert [key for page in pages(most) for key in page] == expected


def test_a_session_that_waits_is_no_news_and_one_that_runs_has_begun():
    SessionFactory(status=Status.QUEUED)
    session = SessionFactory(status=Status.RUNNING, started_at=AT)
    assert keys() == [f"s{session.pk}"]


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
    told = {(entry.row.kind, entry.observation) for entry in feed.entries(feed.places())}
    assert told == {
        ("edited", "Said better"),
        ("created", "Takes 40 seconds to come up again"),
        ("deleted", other.observation),
    }


@pytest.mark.parametrize("kind", ["begun", "ended", "event", "memory"])
def test_an_entry_names_its_kind_and_row(kind):
    session = SessionFactory(started_at=AT, ended_at=AT + SECOND)
    event, learned = EventFactory(session=session, created_at=AT), change(AT)
    rows = {"begun": session, "ended": session, "event": event, "memory": learned}
    entry = next(entry for entry in feed.entries(feed.places()) if entry.kind == kind)
    assert entry.row == rows[kind]


def test_news_are_the_entries_a_browser_lacks_each_behind_its_neighbour():
    old = EventFactory(session=None, created_at=AT)
    seen = shown()
    newer = EventFactory(session=None, created_at=AT + SECOND)
    older = EventFactory(session=None, created_at=AT - SECOND)
    same = EventFactory(session=None, created_at=AT)
    news = feed.changes(seen, feed.entries(feed.places()))
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
    assert [entry.key for entry, _ in feed.changes(seen, feed.entries(feed.places())).new] == [f"e{late.pk}"]


def test_what_was_deleted_or_pushed_off_leaves_the_page(monkeypatch):
    first, second = (EventFactory(session=None, created_at=AT + n * SECOND) for n in range(2))
    seen = shown(most=2)
    third = EventFactory(session=None, created_at=AT + 9 * SECOND)
    second.delete()
    news = feed.changes(seen, feed.entries(feed.places(most=1)))
    assert [entry.key for entry, _ in news.new] == [f"e{third.pk}"]
    assert sorted(news.gone) == sorted([f"e{first.pk}", next(iter(seen))])


def test_a_browser_that_polls_while_all_is_written_shows_each_entry_once():
    told: list[str] = []
    for step in range(12):
        at = AT + (step // 4) * SECOND  # four writes at each moment
        EventFactory(session=None, created_at=at)
        if step % 3 == 0:
            change(at)
        if step % 4 == 3:
            SessionFactory(started_at=at, ended_at=at)
        if step % 2:
            news = feed.changes(dict.fromkeys(told, ""), feed.entries(feed.places()))
            for entry, behind in news.new:
                assert entry.key not in told
                told.insert(told.index(behind) + 1 if behind else 0, entry.key)
            assert news.gone == []
    assert told == keys()
    assert len(told) == 12 + 4 + 6


@pytest.mark.parametrize(
    "text", ["", "x", "~e1", "2026-03-10~e1", "2026-03-10T12:00:00+00:00~x1", "now~e1", "2026-03-10T12:00:00+00:00~e0"]
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
    for words in ("It &lt;broke&gt;.", "Down &amp; out", "by agent:watch", "Was known once", "by operator"):
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
        for _ in range(rows):
            EventFactory(session=SessionFactory(started_at=AT, ended_at=AT))
            change(AT)
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
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    indexes = {"s": "sessions_started", "e": "events_created", "m": "memory_changes_said", "d": "sessions_ended"}
    for place in (None, feed.Place(AT + 50 * SECOND, 1, 1, "e")):
        with CaptureQueriesContext(connection) as captured:
            feed.places(before=place)
        for letter, query in zip(feed.SOURCES, captured.captured_queries, strict=True):
            with connection.cursor() as cursor:
                prefix = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
                cursor.execute(prefix + query["sql"])
                plan = " ".join(str(row[-1]) for row in cursor.fetchall())
            if connection.vendor == "sqlite" or letter in "em":  # PostgreSQL reads a few rows of sessions as they lie
                assert indexes[letter] in plan, plan
