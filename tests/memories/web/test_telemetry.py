"""The pages of telemetry: the list with its filters and chart, one record, and what they cost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from memories.models import TelemetryCount, TelemetryRecord
from memories.queries.telemetry import TelemetryFilterSet
from memories.telemetry import prune, record
from tests.sessions_app.people import person
from tests.support.factories import SessionFactory

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"))
    return client


def actions_of(viewer, query: str) -> set[str]:
    response = viewer.get(f"/diagnostics?{query}")
    assert response.status_code == 200
    return {row.action for row in response.context["rows"]}


@pytest.fixture
def some():
    record("memory.gate.completed", component="observe", source="transcript", allow=2, hold=1)
    record("memory.observe.failed", component="observe", source="transcript", success=False, error="no answer")
    record("memory.decay.completed", component="lifecycle", source="schedule", decayed=7)
    record("memory.embed.completed", component="embedding", source="schedule", level="warning", refused=1)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("level=error", {"memory.observe.failed"}),
        ("success=no", {"memory.observe.failed"}),
        ("success=yes&component=observe", {"memory.gate.completed"}),
        ("source=schedule", {"memory.decay.completed", "memory.embed.completed"}),
        ("action=memory.gate.completed", {"memory.gate.completed"}),
        ("action=memory.e*", {"memory.embed.completed"}),
        ("during=24h&level=warning", {"memory.embed.completed"}),
        ("text=DECAYED", {"memory.decay.completed"}),
        ("text=no+answer", {"memory.observe.failed"}),
        ("text=nothing-like-it", set()),
    ],
)
def test_filters_find_records(viewer, some, query, found):
    assert actions_of(viewer, query) == found


def test_the_text_of_the_bar_becomes_filters(viewer, some):
    response = viewer.get("/diagnostics", {"q": "level:error component:observe"})
    assert response["Location"] == "/diagnostics?level=error&component=observe"


@pytest.mark.parametrize("query", ["", "component=observe", "action=memory.*", "level=warning"])
def test_the_chart_counts_what_the_list_holds(viewer, some, query):
    response = viewer.get(f"/diagnostics?{query}")
    assert response.context["by_day"].chart.total == response.context["total"] > 0


def test_the_counts_by_hour_follow_the_records(some):
    counted = dict(TelemetryCount.objects.filter(number__gt=0).values_list("name", "number"))
    assert counted == {"observe:info": 1, "observe:error": 1, "lifecycle:info": 1, "embedding:warning": 1}
    TelemetryRecord.objects.all().delete()
    assert not TelemetryCount.objects.filter(number__gt=0).exists()


def test_a_record_shows_its_counts_and_leads_to_its_session(viewer):
    session = SessionFactory()
    record("memory.capture.completed", component="sessions", source="session", session=session.pk, memory_markers=3)
    html = viewer.get(f"/diagnostics/{TelemetryRecord.objects.get().pk}").content.decode()
    assert f'<a href="/sessions/{session.pk}">' in html
    assert "<dt>memory markers</dt>" in html


def test_a_hostile_name_is_text_and_no_link(viewer):
    record(HOSTILE, component=HOSTILE[:40], source="x", **{HOSTILE: HOSTILE, "session": HOSTILE})
    for address in ("/diagnostics", f"/diagnostics/{TelemetryRecord.objects.get().pk}"):
        assert HOSTILE not in viewer.get(address).content.decode()


def test_records_are_deleted_after_their_days(monkeypatch):
    monkeypatch.setitem(prune.__globals__, "KEPT", timedelta(days=10))
    now = timezone.now()
    for days in (9, 11, 400):
        record("memory.gate.completed", component="observe", source="x", key=f"{days}", at=now - timedelta(days=days))
    assert prune(now) == 2
    assert TelemetryRecord.objects.get().key == "9"


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL chooses by the rows that there are")
@pytest.mark.parametrize(("query", "index"), [("level", "telemetry_level"), ("success", "telemetry_failed")])
def test_errors_are_counted_by_the_index_that_holds_few_rows(query, index):
    value = {"level": "error", "success": "no"}[query]
    rows = TelemetryFilterSet({query: value}, queryset=TelemetryRecord.objects.all()).qs
    assert index in rows.order_by()[:10].explain()
