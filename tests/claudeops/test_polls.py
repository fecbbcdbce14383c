"""A page on which nothing changed costs next to nothing: no rendering, no answer, one question beside who is asking."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import LogEntry, LogKind, Status
from tests.sessions_app.people import HTMX, person
from tests.support.factories import CooldownActionFactory, EventFactory, MemoryFactory, SessionFactory, StageFactory

pytestmark = pytest.mark.django_db

WHO_ASKS = ("django_session", "auth_user", "auth_permission")
POLLS = {
    "/sessions": ("/sessions/rows", 2),  # the rows, and how many of them the person wants on a page
    "/sessions?status=running": ("/sessions/rows", 2),
    "/events": ("/events/rows", 1),
    "/events?level=info": ("/events/rows", 1),
    "/memories": ("/memories/rows", 1),
    "/memories?service=jellyfin": ("/memories/rows", 1),
    "/cooldowns": ("/cooldowns/rows", 1),
    "/sessions/{pk}": ("/sessions/{pk}/live", 2),
    "/learning-log/{transcript}": ("/learning-log/{transcript}/live", 1),
    "/sessions/{pk}?log": ("/sessions/{pk}/log", 2),
}
"""What each page asks for again and again, and in how many questions it is answered."""


@pytest.fixture
def session():
    session = SessionFactory(status=Status.RUNNING)
    LogEntry.objects.create(
        session=session, seq=1, at=session.queued_at, kind=LogKind.TEXT, text="Looking around.", offset=0
    )
    for _ in range(3):
        SessionFactory()
        EventFactory(session=session)
        MemoryFactory(session=session)
        CooldownActionFactory(session=session)
    return session


@pytest.fixture
def waiting():
    """A transcript with a part that waits."""
    return StageFactory().part.transcript


@pytest.mark.parametrize("page", POLLS)
def test_an_unchanged_poll_asks_little_and_sends_nothing(client, session, waiting, page):
    client.force_login(person("operator"))
    path, most = POLLS[page]
    html = client.get(page.format(pk=session.pk, transcript=waiting.pk)).content.decode()
    found = re.search(
        rf'hx-get="({path.format(pk=session.pk, transcript=waiting.pk)}\?[^"]*(?:seen|after)=[^"]*)"', html
    )
    assert found, f"{page} does not poll"
    poll = unescape(found[1])
    with CaptureQueriesContext(connection) as asked:
        response = client.get(poll, headers=HTMX)
    assert (response.status_code, response.content) == (204, b"")
    assert not response.templates
    own = [query["sql"] for query in asked if not any(table in query["sql"] for table in WHO_ASKS)]
    assert 1 <= len(own) <= most, own
    assert len(asked) == len(own) + len(WHO_ASKS)
