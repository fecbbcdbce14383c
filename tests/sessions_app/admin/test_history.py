"""What was recorded, in the admin: looked at, never written."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.models import (
    CooldownAction,
    CooldownClearance,
    Event,
    InjectionReceipt,
    LogEntry,
    ServiceCheck,
    WorkerHeartbeat,
    WorkerRun,
)
from tests.sessions_app.people import person
from tests.support.factories import CooldownActionFactory, EventFactory, SessionFactory


def receipt():
    return InjectionReceipt.objects.create(
        session=SessionFactory(),
        text="the text",
        sha256="b" * 64,
        budget=2000,
        tokens=500,
        counts={"eligible": 9, "included": 2, "over_budget": 7, "held": 3},
    )


def entry():
    return LogEntry.objects.create(
        session=SessionFactory(), seq=1, at=timezone.now(), kind="tool_use", text="Bash: ls", offset=0
    )


def check():
    return ServiceCheck.objects.create(session=SessionFactory(), service="caddy", status="degraded", healthy=False)


def worker_run():
    return WorkerRun.objects.create(host="nuc-1", pid=1, ending="lost", ended_at=timezone.now())


def worker():
    pid = WorkerHeartbeat.objects.count() + 1
    return WorkerHeartbeat.objects.create(host="nuc-1", cluster="sessions", pid=pid)


def clearance():
    return CooldownClearance.objects.create(service="caddy", by="anna", reason="Mended.")


RECORDS = {
    "event": EventFactory,
    "cooldownaction": CooldownActionFactory,
    "cooldownclearance": clearance,
    "injectionreceipt": receipt,
    "logentry": entry,
    "servicecheck": check,
    "workerheartbeat": worker,
    "workerrun": worker_run,
}


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_looked_at_and_never_written(signed_in, name):
    row = RECORDS[name]()
    model = type(row)
    before = model.objects.values().get(pk=row.pk)
    base = f"/admin/sessions_app/{name}/"
    assert signed_in.get(base).status_code == 200
    assert signed_in.get(f"{base}{row.pk}/change/").status_code == 200
    assert signed_in.get(base + "add/").status_code == 403
    assert signed_in.post(f"{base}{row.pk}/change/", {"service": "x"}).status_code == 403
    assert signed_in.post(f"{base}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    actions = re.findall(r'<option value="(\w+)"', signed_in.get(base).content.decode())
    assert actions == (["acknowledge"] if name == "event" else [])
    assert model.objects.values().get(pk=row.pk) == before


@pytest.mark.parametrize("name", RECORDS)
def test_a_list_costs_the_same_with_twice_the_rows(signed_in, name):
    def queries(rows: int) -> int:
        for _ in range(rows):
            RECORDS[name]()
        with CaptureQueriesContext(connection) as captured:
            assert signed_in.get(f"/admin/sessions_app/{name}/").status_code == 200
        return len(captured)

    queries(1)
    assert queries(9) == queries(10) <= 19


def rows_lead_to(client, name: str) -> list[str]:
    html = client.get(f"/admin/sessions_app/{name}/").content.decode()
    return re.findall(r'<th class="field-\w+"><a href="([^"]+)"', html)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("event", "?tab=events"),
        ("cooldownaction", "?tab=events"),
        ("servicecheck", "?tab=events"),
        ("injectionreceipt", "?tab=injected"),
        ("logentry", "?line=1#line-1"),
    ],
)
def test_a_row_leads_to_the_page_of_its_session(signed_in, name, part):
    row = RECORDS[name]()
    address = f"/sessions/{row.session_id}{part}"
    assert rows_lead_to(signed_in, name) == [address]
    assert signed_in.get(address).status_code == 200


def test_a_row_without_a_page_leads_to_its_form(signed_in):
    event = EventFactory(session=None)
    assert rows_lead_to(signed_in, "event") == [f"/admin/sessions_app/event/{event.pk}/change/"]


def test_a_person_who_may_see_events_and_no_sessions_is_led_to_the_form_of_an_event(db, client):
    clerk = get_user_model().objects.create_user("clerk", is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename="view_event"))
    client.force_login(clerk)
    event = EventFactory()
    assert rows_lead_to(client, "event") == [f"/admin/sessions_app/event/{event.pk}/change/"]
    assert client.get(f"/sessions/{event.session_id}").status_code == 403


def test_events_are_narrowed_by_level_service_and_age(signed_in):
    old = timezone.now() - timedelta(days=2)
    bad = EventFactory(level="critical", service="caddy", message="Down")
    gone = EventFactory(level="critical", service=None, message="Was down", created_at=old)
    fine = EventFactory(level="info", service="caddy", message="Up")

    def shown(query: str) -> set[Event]:
        html = signed_in.get("/admin/sessions_app/event/" + query).content.decode()
        return {event for event in (bad, gone, fine) if f'href="/sessions/{event.session_id}?tab=events"' in html}

    assert shown("?level__exact=critical") == {bad, gone}
    assert shown("?level__exact=critical&age=day") == {bad}
    assert shown("?service=general") == {gone}
    assert shown("?service=caddy") == {bad, fine}
    assert shown("?q=down") == {bad, gone}


def test_dry_runs_can_be_left_out(signed_in):
    dry = CooldownActionFactory(dry_run=True)
    real = CooldownActionFactory()
    html = signed_in.get("/admin/sessions_app/cooldownaction/?dry_run__exact=0").content.decode()
    assert f"/sessions/{real.session_id}" in html
    assert f"/sessions/{dry.session_id}" not in html
    assert CooldownAction.objects.count() == 2


def test_a_receipt_shows_its_numbers_its_text_and_its_session(signed_in):
    row = receipt()
    page = signed_in.get(f"/admin/sessions_app/injectionreceipt/{row.pk}/change/").content.decode()
    for text in ("the text", "b" * 64, "over_budget", f'href="/sessions/{row.session_id}"'):
        assert text in page


@pytest.mark.django_db
def test_events_are_acknowledged_in_the_admin_by_who_may(client):
    event, other = EventFactory(level="critical"), EventFactory(level="critical")
    sent = {"action": "acknowledge", "_selected_action": [event.pk]}
    client.force_login(person("viewer"))
    client.post("/admin/sessions_app/event/", sent)
    event.refresh_from_db()
    assert event.is_open
    client.force_login(person("operator"))
    answer = client.post("/admin/sessions_app/event/", sent, follow=True).content.decode()
    event.refresh_from_db()
    other.refresh_from_db()
    assert (event.is_open, event.acknowledged_by, other.is_open) == (False, "one-operator", True)
    assert "1 event acknowledged." in answer
