"""What a list asks of the database with the cache of production: at most twelve questions, whatever narrows it."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from claudeops.lib.list_view.view import LISTS
from memories.lifecycle import verbs
from memories.models import Verdict
from sessions_app.models import Status
from tests.memories.web.test_inbox import decide, pick_of
from tests.support.factories import (
    AgentFactory,
    CooldownActionFactory,
    EventFactory,
    MemoryFactory,
    ProjectFactory,
    SessionFactory,
)

pytestmark = pytest.mark.django_db
MOST = 12


@pytest.fixture(autouse=True)
def cached(settings):
    """The suite has no cache."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "lists"}}
    yield
    cache.clear()


def test_every_list_asks_at_most_twelve_questions(admin_client):
    agent, project = AgentFactory(slug="watch"), ProjectFactory(slug="media")
    SessionFactory(status=Status.RUNNING)
    for status in (Status.FAILED, Status.COMPLETED):
        SessionFactory.create_batch(2, agent=agent, project=project, status=status, ended_at=timezone.now())
    EventFactory.create_batch(3, service="jellyfin", level="critical")
    MemoryFactory.create_batch(3, service="jellyfin")
    held = MemoryFactory(verdict=Verdict.HOLD)
    verbs.approve(held, by="ada")
    CooldownActionFactory.create_batch(3)
    asked = {
        **{reverse(name): "" for name in (*LISTS, "cooldowns")},
        "/sessions?": "status=went_wrong agent=watch&status=failed agent=watch&project=media ended=90d&agent=watch "
        "text=failed spent=today",
        "/events?": "level=critical text=slow service=jellyfin",
        "/memories?": "service=jellyfin status=held text=restart sort=fades",
    }
    for path, queries in asked.items():
        for query in queries.split() or [""]:
            admin_client.get(path + query)  # loads what is kept
            with CaptureQueriesContext(connection) as found:
                assert admin_client.get(path + query).status_code == 200
            assert len(found) <= MOST, (path + query, *(one["sql"][:150] for one in found.captured_queries))


def test_the_count_of_the_inbox_is_kept_for_seconds_and_falls_at_once_where_a_person_decides(admin_client):
    def shown(path: str) -> str:
        return admin_client.get(path).content.decode().partition('"side-count">')[2].partition("<")[0]

    held = MemoryFactory.create_batch(2, verdict=Verdict.HOLD)
    assert shown("/memories") == "2"
    MemoryFactory(verdict=Verdict.HOLD)
    assert shown("/memories") == "2"
    assert shown("/inbox") == shown("/memories") == "3"
    decide(admin_client, "held.approve", pick_of("held", held[0].pk))
    assert shown("/memories") == "2"
