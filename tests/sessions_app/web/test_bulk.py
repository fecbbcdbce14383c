"""`/sessions/bulk`: stopping and running again many sessions: who may, what the page in between says, undo."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.bulk import BULK_ACTIONS
from sessions_app.models import Session, Status
from tests.sessions_app.people import HTMX, person
from tests.support.factories import AgentFactory, SessionFactory

pytestmark = pytest.mark.django_db

BULK = "/sessions/bulk"


@pytest.fixture
def operators(client):
    client.force_login(person("operator"))
    return client


def said(response) -> list[str]:
    return [str(message) for message in get_messages(response.wsgi_request)]


def confirmed(client, data, address=BULK):
    """Answer the page in between as it was drawn."""
    html = client.post(address, data).content.decode()
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', html))
    fields.pop("csrfmiddlewaretoken", None)
    return client.post(address, fields)


def open_sessions(count: int) -> list[Session]:
    return [
        SessionFactory(agent=AgentFactory(), status=Status.RUNNING, started_at=timezone.now()) for _ in range(count)
    ]


def test_stopping_many_asks_first_and_says_how_many_it_is_about(operators):
    running, ended = open_sessions(2), SessionFactory()
    ids = [one.pk for one in (*running, ended)]
    html = operators.post(BULK, {"action": "stop", "id": ids}).content.decode()
    assert "Stop: 2 sessions" in html
    assert "1 of the selected one is left out: ended already." in html
    assert not Session.objects.exclude(stop_requested_at=None).exists()
    response = confirmed(operators, {"action": "stop", "id": ids})
    assert response["Location"] == "/sessions"
    assert said(response) == ["2 sessions are stopping."]
    assert Session.objects.exclude(stop_requested_at=None).count() == 2


def test_running_again_says_what_it_cost_and_is_undone_by_its_message(operators):
    ended = [SessionFactory(agent=AgentFactory(), cost_usd=Decimal("0.25"), task=f"Task {n}") for n in range(3)]
    html = operators.post(BULK, {"action": "again", "id": [one.pk for one in ended]}).content.decode()
    assert "The last time they cost $0.75." in html
    response = confirmed(operators, {"action": "again", "id": [one.pk for one in ended]})
    made = Session.objects.filter(status=Status.QUEUED)
    assert set(made.values_list("task", flat=True)) == {"Task 0", "Task 1", "Task 2"}
    (message,) = get_messages(response.wsgi_request)
    assert str(message) == "3 sessions are queued again."
    undo = message.extra_tags.removeprefix("undo:")
    for words in ("3 sessions are stopped.", "These sessions have ended already."):
        assert words in operators.post(undo, headers=HTMX).content.decode()
    assert set(Session.objects.exclude(pk__in=[one.pk for one in ended]).values_list("status", flat=True)) == {
        "stopped"
    }


def test_undo_stops_only_what_this_person_asked_for(operators):
    others = SessionFactory(status=Status.QUEUED, requested_by="somebody")
    operators.post(f"/sessions/again/undo/{others.pk}", headers=HTMX)
    others.refresh_from_db()
    assert others.status == Status.QUEUED
    assert operators.post("/sessions/again/undo/1-x", headers=HTMX).status_code == 200


def test_all_that_match_are_those_that_were_there_when_the_page_was_drawn(operators):
    open_sessions(2)
    html = operators.post(f"{BULK}?status=running", {"action": "stop", "all_matching": "1"}).content.decode()
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', html))
    (late,) = open_sessions(1)
    operators.post(f"{BULK}?status=running", fields)
    late.refresh_from_db()
    assert late.stop_requested_at is None
    assert Session.objects.exclude(stop_requested_at=None).count() == 2


def test_a_selection_that_changed_meanwhile_is_asked_about_again(operators):
    running = open_sessions(3)
    ids = [one.pk for one in running]
    fields = {"action": "stop", "ids": ",".join(map(str, ids)), "confirmed": "1", "count": "4", "up_to": str(max(ids))}
    response = operators.post(BULK, fields)
    assert response.status_code == 422
    assert "The selection changed from 4 to 3. Nothing was changed yet." in response.content.decode()
    assert not Session.objects.exclude(stop_requested_at=None).exists()


def test_more_than_an_action_takes_at_once_is_refused(operators):
    SessionFactory.create_batch(BULK_ACTIONS["again"].most + 1)
    response = operators.post(BULK, {"action": "again", "all_matching": "1"})
    assert "takes at most 50 sessions at once; these are 51. Nothing was changed." in said(response)[0]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"action": "explode", "id": "1"}, "No action was chosen. Nothing was changed."),
        ({"action": "stop", "ids": "1-x"}, "The selection could not be read. Nothing was changed."),
        ({"action": "stop", "id": "7"}, "None of these sessions is open. Nothing was changed."),
        ({"action": "again"}, "None of these sessions has ended. Nothing was changed."),
    ],
)
def test_what_cannot_be_done_says_why(operators, data, words):
    assert said(operators.post(BULK, data)) == [words]


@pytest.mark.parametrize("action", list(BULK_ACTIONS))
def test_a_viewer_may_neither(client, action):
    client.force_login(person("viewer"))
    one = SessionFactory(status=Status.RUNNING if action == "stop" else Status.COMPLETED)
    data = {"action": action, "id": one.pk, "confirmed": "1", "count": "1"}
    assert client.post(BULK, data).status_code == 403
    assert client.post(f"/sessions/again/undo/{one.pk}").status_code == 403
    html = client.get("/sessions").content.decode()
    assert "data-pick" not in html
    assert 'form="row-verbs"' not in html
    assert Session.objects.count() == 1


def test_one_refusal_stops_no_other(operators, settings):
    settings.CLAUDEOPS_MAX_TIER = 2
    SessionFactory(tier=3), SessionFactory(tier=1)
    response = confirmed(operators, {"action": "again", "all_matching": "1"})
    assert said(response)[0].startswith("1 session is queued again. 1 not: Session ")
    assert Session.objects.filter(status=Status.QUEUED).count() == 1


def test_the_page_in_between_costs_the_same_however_many_it_is_about(operators):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert operators.post(BULK, {"action": "again", "all_matching": "1"}).status_code == 200
        return len(captured)

    SessionFactory.create_batch(3, agent=AgentFactory())
    few = queries()
    SessionFactory.create_batch(20, agent=AgentFactory())
    assert queries() == few


def test_a_row_stops_or_runs_again_and_leads_back_to_the_list_with_its_filters(operators):
    ended, (running,) = SessionFactory(), open_sessions(1)
    back = "/sessions?age=day"
    for pk, verb in ((running.pk, "stop"), (ended.pk, "again")):
        assert operators.post(f"/sessions/{pk}/{verb}", {"next": back})["Location"] == back
    assert operators.post(f"/sessions/{ended.pk}/again", {"next": "//evil.example/sessions"})["Location"].startswith(
        "/sessions/"
    )


def test_the_views_are_what_failed_last_night_what_runs_what_was_dear_and_mine(operators):
    now = timezone.now()
    failed = SessionFactory(status=Status.FAILED, queued_at=now, ended_at=now)
    SessionFactory(status=Status.FAILED, queued_at=now, ended_at=now - timedelta(days=2))
    SessionFactory.create_batch(9, cost_usd=Decimal("0.1"), queued_at=now)
    dear = SessionFactory(cost_usd=Decimal("3"), queued_at=now)
    html = operators.get("/sessions").content.decode()
    nav = re.search(r'aria-label="Views">(.*?)</nav>', html, re.DOTALL)[1]
    views = {
        label.strip(): query.replace("&amp;", "&") for query, label in re.findall(r'href="([^"]*)"[^>]*>([^<]+)', nav)
    }
    assert list(views) == ["All", "Failed last night", "Running", "Expensive, above $3.00", "Mine"]

    def listed(label: str) -> list[int]:
        return [
            int(pk) for pk in re.findall(r'id="session-(\d+)" data-row', operators.get(views[label]).content.decode())
        ]

    assert listed("Failed last night") == [failed.pk]
    assert listed("Expensive, above $3.00") == [dear.pk]


def test_the_totals_of_a_narrowed_list_are_those_of_all_matches(operators):
    SessionFactory.create_batch(3, cost_usd=Decimal("0.50"), duration_ms=60_000, tier=2)
    SessionFactory(status=Status.FAILED, cost_usd=Decimal("1"), duration_ms=120_000, tier=2)
    html = operators.get("/sessions?tier=2").content.decode()
    words = " ".join(re.sub(r"<[^>]+>", "", re.search(r'id="sessions-count">(.*?)</p>', html, re.DOTALL)[1]).split())
    assert words == "4 sessions that match: 3 completed, 1 failed · $2.50 · median 1 min"


def test_what_a_session_learned_is_what_it_created_or_confirmed(operators):
    SessionFactory(stats={"memories_created": 2, "memories_reinforced": 1, "memories_held": 5})
    SessionFactory(stats={"memories_created": "odd"})
    assert [one.learned for one in Session.objects.order_by("pk")] == [3, 0]
