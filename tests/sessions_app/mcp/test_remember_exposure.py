"""What the tool `remember` tells the store of the session: what it has read by now, also in lines not yet ingested."""

from __future__ import annotations

import pytest

from memories import store
from memories.access import Access
from sessions_app.mcp import tools
from sessions_app.mcp.tools import access_for
from sessions_app.models import Injected, LogEntry, Session, SourceRule
from tests.sessions_app.runner.test_ingest_exposure import COPIED, NOISE, a_session, feed, log_of
from tests.sessions_app.runner.test_reading import answer, call
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def said(monkeypatch):
    found = []
    remember = store.remember
    monkeypatch.setattr(
        store, "remember", lambda *given, **named: (found.append(given[1]), remember(*given, **named))[1]
    )
    return found


def remember(session: Session, observation: str = "Takes a minute to start") -> None:
    tools.remember(access_for(session=str(session.uuid)), observation, "timing", "web")


def test_a_session_is_exposed_to_what_its_log_says_now(said):
    session = feed(a_session(), call("1", "docker ps"), answer("1"))
    remember(session)
    with log_of(session).open("a", encoding="utf-8") as log:
        log.write(call("2", "docker logs web") + answer("2", NOISE) + '{"type": "assis')
    remember(session, COPIED.partition("] ")[2])
    assert [(one.exposure, one.exposed_to) for one in said] == [("house", ()), ("outside", ("logs: web",))]
    assert [one.taint for one in said] == ["", "repeats what logs: web said"]
    assert LogEntry.objects.filter(session=session).count() == 2  # the ingest stores the rest


def test_a_session_without_a_log_yet_has_read_its_task(said):
    told = MemoryFactory()
    session = SessionFactory(ingest_state={"before": ["task text"]}, task="x")
    Injected.objects.create(session=session, memory_id=told.pk)
    remember(session)
    assert (said[-1].exposed_to, said[-1].told) == (("task text",), {told.pk})


def test_without_a_session_nobody_knows_what_was_read(said):
    SourceRule.objects.create(tool="mcp__claudeops", counts_as="house", reason="It speaks of tools, not of clients.")
    tools.remember(access_for(), "Takes a minute to start", "timing", "web")
    assert (said[-1].exposure, said[-1].exposed_to, said[-1].support) == ("outside", ("client: mcp",), None)
    assert Access("token:ci", frozenset()).provenance("api").exposed_to == ("client: token:ci",)
