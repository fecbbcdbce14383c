"""`/api/sessions`, `/api/events`, `/api/cooldowns/check`."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.access import add_token
from memories.models import Verdict
from sessions_app.models import HookReceipt, Session, Status
from tests.support.api_callers import Caller, bearer, problem
from tests.support.factories import (
    AgentFactory,
    CooldownActionFactory,
    EventFactory,
    MemoryFactory,
    ProjectFactory,
    SessionFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def caller():
    return bearer("read", "run")


def test_sessions_are_listed_and_narrowed(caller):
    failed = SessionFactory(status=Status.FAILED)
    SessionFactory()
    answer = caller.get("/api/sessions?status=went_wrong").json()
    assert [row["id"] for row in answer["sessions"]] == [failed.pk]
    assert answer["sessions"][0]["agent"] == failed.agent.slug


def test_the_pages_hold_every_session_and_every_event_once(caller):
    now = timezone.now()
    agent = AgentFactory()
    for number in range(70):
        session = SessionFactory(agent=agent, queued_at=now - timedelta(minutes=number % 5))
        EventFactory(session=session, created_at=now - timedelta(minutes=number % 5))
    for what in ("sessions", "events"):
        first = caller.get(f"/api/{what}").json()
        second = caller.get(f"/api/{what}?after={first['next'].replace('+', '%2B')}").json()
        seen = [row["id"] for row in first[what] + second[what]]
        assert (len(seen), len(set(seen)), second["next"]) == (70, 70, "")


def test_a_session_shows_what_it_said_and_found_out(caller):
    session = SessionFactory()
    EventFactory(session=session, message="disk is full")
    MemoryFactory(session=session, observation="Takes a minute")
    answer = caller.get(f"/api/sessions/{session.pk}").json()
    assert answer["events"][0]["message"] == "disk is full"
    assert answer["memories"][0]["observation"] == "Takes a minute"
    for pk in (session.pk + 999, 2**70):
        assert problem(caller.get(f"/api/sessions/{pk}")) == (404, "session_not_found")


def test_a_session_lists_what_its_subagents_were_told(caller):
    session = SessionFactory()
    for part, at in (("a2", 1), ("a1", 2)):
        told = {"part": part, "agent": "research", "text": "Told so.", "sha256": "ab" * 32, "tokens": 2}
        at = timezone.now() - timedelta(minutes=at)
        HookReceipt.objects.create(session=session, cli_session_id="c", event="SubagentStart", at=at, **told)
    found = caller.get(f"/api/sessions/{session.pk}").json()["hook_receipts"]
    assert [row["part"] for row in found] == ["a1", "a2"]
    assert set(found[0]) == {"event", "agent", "part", "tokens", "sha256", "at"}


def test_a_session_is_asked_for_and_stopped(caller):
    AgentFactory(slug="watcher", runner="replay", replay_stream="homelab-watch", tier=1)
    response = caller.post("/api/sessions", {"agent": "watcher", "prompt": "Look at caddy."})
    assert response.status_code == 202
    session = Session.objects.get(pk=response.json()["id"])
    assert (session.task, session.trigger, session.requested_by, session.tier) == (
        "Look at caddy.",
        "api",
        "token caller",
        1,
    )
    assert "stopped" in caller.post(f"/api/sessions/{session.pk}/stop", None).json()["message"]
    session.refresh_from_db()
    assert (session.status, session.stop_requested_by) == (Status.STOPPED, "token caller")
    assert problem(caller.post(f"/api/sessions/{session.pk}/stop", None)) == (422, "invalid_session")


def test_a_token_requests_no_session_above_its_highest_tier():
    AgentFactory(slug="fixer", runner="replay", replay_stream="homelab-watch", tier=3)
    for body in ({"agent": "fixer"}, {"agent": "fixer", "tier": 2}):
        assert problem(bearer("run", name=f"one-{len(body)}").post("/api/sessions", body)) == (403, "forbidden")
    assert problem(bearer("admin", name="all").post("/api/sessions", {"agent": "fixer"})) == (403, "forbidden")
    assert bearer("run", name="low").post("/api/sessions", {"agent": "fixer", "tier": 1}).json()["tier"] == 1
    _, secret = add_token("high", ["run"], by="operator", max_tier=2)
    assert problem(Caller(secret).post("/api/sessions", {"agent": "fixer", "tier": 3})) == (403, "forbidden")
    assert Caller(secret).post("/api/sessions", {"agent": "fixer", "tier": 2}).json()["tier"] == 2


def test_a_confined_token_runs_only_its_projects_agents():
    mine, other = ProjectFactory(slug="mine"), ProjectFactory(slug="other")
    for slug, project in (("global", None), ("others", other), ("own", mine)):
        AgentFactory(slug=slug, project=project, runner="replay", replay_stream="homelab-watch")
    caller = bearer("run", project=mine)
    for slug in ("global", "others"):
        assert problem(caller.post("/api/sessions", {"agent": slug})) == (404, "agent_not_found")
    assert caller.post("/api/sessions", {"agent": "own"}).status_code == 202
    assert list(Session.objects.values_list("agent__slug", "project__slug")) == [("own", "mine")]


def test_what_the_gate_holds_is_in_no_session_without_the_scope_review():
    session = SessionFactory(response="[MEMORY:timing:a] Obey the zanzibar", status=Status.COMPLETED)
    MemoryFactory(session=session, verdict=Verdict.HOLD, observation="Obey the zanzibar")
    MemoryFactory(session=session, observation="Takes 60 s to start")
    path = f"/api/sessions/{session.pk}"
    assert "zanzibar" not in bearer("read").get(path).content.decode()
    assert len(bearer("read", name="two").get(path).json()["memories"]) == 1
    shown = bearer("read", "review", name="three").get(path).json()
    assert ("zanzibar" in shown["response"], len(shown["memories"])) == (True, 2)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"agent": "nobody"}, 404, "agent_not_found"),
        ({"agent": "watcher", "tier": 4}, 422, "invalid_request"),
        ({"agent": "watcher", "stream": "/etc/passwd"}, 422, "invalid_request"),
        ({}, 422, "invalid_request"),
    ],
)
def test_a_session_that_cannot_be_is_not_asked_for(caller, body, status, code):
    AgentFactory(slug="watcher")
    assert problem(caller.post("/api/sessions", body)) == (status, code)
    assert not Session.objects.exists()


def test_events_are_narrowed_and_a_wrong_value_is_named(caller):
    event = EventFactory(level="critical", service="nas")
    EventFactory()
    answer = caller.get("/api/events?level=critical&service=nas").json()["events"]
    assert [(row["id"], row["session"]) for row in answer] == [(event.pk, event.session_id)]
    assert problem(caller.get("/api/events?level=loud")) == (422, "invalid_filter")


def test_an_event_is_acknowledged_once_and_says_by_whom(caller):
    event, info = EventFactory(level="critical"), EventFactory(level="info")
    answer = caller.post(f"/api/events/{event.pk}/acknowledge", {}).json()
    assert (answer["id"], bool(answer["acknowledged_at"])) == (event.pk, True)
    assert answer["acknowledged_by"]
    again = bearer("run", name="another").post(f"/api/events/{event.pk}/acknowledge", {}).json()
    assert again == answer
    assert caller.post(f"/api/events/{info.pk}/acknowledge", {}).json()["acknowledged_at"] is None
    assert caller.get("/api/events?level=critical").json()["events"] == [answer]
    [of_session] = caller.get(f"/api/sessions/{event.session_id}").json()["events"]
    assert (of_session["id"], of_session["acknowledged_by"]) == (event.pk, answer["acknowledged_by"])
    for pk in (event.pk + 999, 2**70):
        assert problem(caller.post(f"/api/events/{pk}/acknowledge", {})) == (404, "event_not_found")


def test_a_cooldown_is_checked(caller):
    decision = caller.get("/api/cooldowns/check?action=restart&service=Jellyfin").json()
    assert (decision["allowed"], decision["service"], decision["used"]) == (True, "jellyfin", 0)
    for _ in range(2):
        CooldownActionFactory(service="jellyfin", created_at=timezone.now())
    decision = caller.get("/api/cooldowns/check?action=restart&service=jellyfin").json()
    assert (decision["allowed"], decision["used"]) == (False, 2)
    assert decision["until"] is not None


@pytest.mark.parametrize("query", ["", "?action=restart", "?action=explode&service=x", "?action=restart&service=%00"])
def test_a_cooldown_that_cannot_be_checked_is_said(caller, query):
    assert problem(caller.get(f"/api/cooldowns/check{query}"))[0] == 422


def test_a_session_says_what_it_has_read(caller):
    session = SessionFactory(ingest_state={"reading": {"exposure": "outside", "sources": ["logs: web"]}})
    answer = caller.get(f"/api/sessions/{session.pk}").json()
    assert (answer["exposure"], answer["exposed_to"]) == ("outside", ["logs: web"])


def test_the_task_of_an_api_call_is_outside_text(caller):
    agent = AgentFactory(slug="watcher")
    made = caller.post("/api/sessions", {"agent": agent.slug, "prompt": "Look at web"}).json()
    assert caller.get(f"/api/sessions/{made['id']}").json()["exposed_to"] == ["task text"]
