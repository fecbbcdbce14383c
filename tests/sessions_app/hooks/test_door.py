"""`POST /hooks/{event}`: who may call, what is answered, what is noted, and that nothing harms the host session."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import DatabaseError, connections
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from memories.access import add_token, revoke_token
from memories.models import ApiToken
from sessions_app import tasks
from sessions_app.hooks import callers, last_heard_from
from sessions_app.hooks.events import HANDLERS, LATER, HookAnswer
from sessions_app.models import HookHeard, Session, Status
from sessions_app.runner.agent_hooks import hook_token
from tests.support.factories import CooldownActionFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def calls(monkeypatch):
    """The calls that a handler of SubagentStart got; it says in which project."""
    seen = []

    def handler(call):
        seen.append(call)
        return HookAnswer(context=f"in {call.project}")

    monkeypatch.setitem(HANDLERS, "SubagentStart", [handler])
    return seen


def context(response) -> str:
    return response.json()["hookSpecificOutput"]["additionalContext"]


def test_a_hook_is_answered_with_what_its_handlers_say(call, calls):
    project = ProjectFactory(path="/srv/app")
    response = call("SubagentStart", agent_type="research", agent_id="a-1")
    assert response.status_code == 200
    assert response.json() == {
        "hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": f"in {project}"}
    }
    (seen,) = calls
    assert (seen.project, seen.session, seen.installation) == (project, None, "laptop")
    assert (seen.payload.agent_type, seen.payload.agent_id) == ("research", "a-1")


def test_an_event_without_a_handler_is_answered_with_an_empty_object(call):
    response = call("Stop")
    assert (response.status_code, response.json()) == (200, {})


def test_a_refused_restart_is_denied_with_its_reason(call):
    CooldownActionFactory.create_batch(2, service="jellyfin")
    said = call(tool_name="Bash", tool_input={"command": "docker restart caddy jellyfin"}).json()["hookSpecificOutput"]
    assert said["permissionDecision"] == "deny"
    assert said["permissionDecisionReason"].startswith("Refused: 2 of 2 restarts of jellyfin")
    assert "caddy" not in said["permissionDecisionReason"]


@pytest.mark.parametrize("given", [{"command": "docker restart caddy && ls"}, {"command": 7}, {"file_path": "/x"}, {}])
def test_other_tool_calls_pass(call, given):
    CooldownActionFactory.create_batch(2, service="jellyfin")
    assert call(tool_name="Bash", tool_input=given).json() == {}


def test_a_command_that_restarts_much_costs_no_more_queries(call, django_assert_num_queries):
    def command(services):
        return {"command": "docker restart " + " ".join(f"s{number}" for number in range(services))}

    call(tool_input=command(1))
    for services in (10, 20):
        with django_assert_num_queries(5):
            assert call(tool_input=command(services)).json() == {}


def test_the_door_opens_without_a_cookie_and_sets_none(call, secret):
    strict = Client(enforce_csrf_checks=True)
    response = strict.post(
        "/hooks/Stop",
        b'{"session_id": "s"}',
        content_type="application/json",
        headers={"Authorization": f"bearer {secret}"},
    )
    assert response.status_code == 200
    assert not response.cookies


def test_a_signed_in_person_without_a_token_is_refused(admin_client):
    assert admin_client.post("/hooks/Stop", b"{}", content_type="application/json").status_code == 401


@pytest.mark.parametrize("token", ["", "cops_unknown", "not:a:token", "x" * 5000, "cops_\N{SNOWMAN}"])
def test_a_foreign_token_opens_nothing(call, token):
    response = call(token=token.encode().decode("latin-1"))
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "unknown_token"
    assert response["WWW-Authenticate"].startswith("Bearer")
    assert not HookHeard.objects.exists()


def test_a_revoked_or_expired_token_opens_nothing(call, secret):
    revoke_token("laptop", by="anna")
    assert call().status_code == 401
    ApiToken.objects.update(revoked_at=None, expires_at=timezone.now() - timedelta(seconds=1))
    assert call().status_code == 401


def test_a_token_needs_the_scope_hook_or_admin(call):
    _, reader = add_token("reader", ["read", "write", "run"], by="anna")
    _, admin = add_token("admin", ["admin"], by="anna")
    refused = call(token=reader)
    assert refused.status_code == 403
    assert "scope hook" in refused.json()["error"]["message"]
    assert call(token=admin).status_code == 200


def test_the_scope_hook_opens_nothing_else(client, secret):
    answer = client.get("/api/memories", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 403


def test_a_token_with_a_project_sees_only_that_project(call, calls):
    mine, other = ProjectFactory(path="/srv/mine"), ProjectFactory(path="/srv/app")
    _, token = add_token("mine", ["hook"], by="anna", project=mine)
    assert context(call("SubagentStart", token=token, cwd=other.path)) == "in None"
    assert context(call("SubagentStart", token=token, cwd="/srv/mine/src")) == f"in {mine}"


def test_a_running_session_of_ours_calls_with_a_token_of_its_own(call, calls):
    project = ProjectFactory()
    ProjectFactory(path="/srv/app")
    session = SessionFactory(status=Status.RUNNING, project=project)
    token = hook_token(session)
    assert context(call("SubagentStart", token=token)) == f"in {project}"
    assert (calls[0].session, calls[0].installation) == (session, "sessions")
    Session.objects.filter(pk=session.pk).update(status=Status.COMPLETED)
    assert call("SubagentStart", token=token).status_code == 401
    assert call("SubagentStart", token=token[:-1] + ("A" if token[-1] != "A" else "B")).status_code == 401


@pytest.mark.parametrize(
    ("event", "body", "status", "code"),
    [
        ("Nonsense", b"{}", 404, "unknown_hook"),
        ("Stop", b"not json", 400, "invalid_hook"),
        ("Stop", b"[1]", 400, "invalid_hook"),
        ("Stop", b'{"session_id": "s", "hook_event_name": "PreToolUse"}', 400, "invalid_hook"),
        ("Stop", b'{"session_id": "' + b"s" * 2_200_000 + b'"}', 413, "too_big"),
        ("Stop", b'{"session_id": "' + b"s" * 3_000_000 + b'"}', 413, "too_big"),
    ],
)
def test_what_cannot_be_answered_is_a_clear_error(call, event, body, status, code):
    response = call(event, body=body)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize("method", ["get", "put", "delete", "head", "options"])
def test_a_hook_is_sent_by_post_alone(client, method):
    response = getattr(client, method)("/hooks/Stop")
    assert (response.status_code, response["Allow"]) == (405, "POST")


def test_a_handler_that_fails_is_an_error_that_is_noted(call, monkeypatch):
    def broken(call):
        raise RuntimeError("the disk is gone")

    monkeypatch.setitem(HANDLERS, "Stop", [broken, lambda call: HookAnswer(context="unheard")])
    response = call("Stop")
    assert (response.status_code, response.json()["error"]["code"]) == (500, "hook_failed")
    assert "the disk is gone" in HookHeard.objects.get().problem


def test_a_refusal_holds_although_another_handler_fails(call, monkeypatch):
    def broken(call):
        raise RuntimeError

    monkeypatch.setitem(HANDLERS, "PreToolUse", [broken, lambda call: HookAnswer(deny="Not now.")])
    assert call().json()["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_what_can_wait_is_done_by_a_worker(call, monkeypatch):
    done = []
    project = ProjectFactory(path="/srv/app")
    monkeypatch.setitem(LATER, "SubagentStop", [done.append])
    text = "I used the key sk-ant-api03-" + "a" * 93 + "AA and learned."
    assert call("SubagentStop", agent_id="a-1", last_assistant_message=text).json() == {}
    (row,) = OrmQ.objects.all()
    assert row.task["func"] == "sessions_app.tasks.handle_hook"
    assert "sk-ant-api03" not in str(row.task["args"]), "the queue holds no credential"
    for _ in range(2):  # a task may come twice
        tasks.handle_hook(*row.task["args"])
    assert [(one.project, one.payload.agent_id, one.installation) for one in done] == [(project, "a-1", "laptop")] * 2
    assert done[0].payload.last_assistant_message.endswith(" and learned.")


def test_a_record_and_the_work_that_waits_are_stored_together_or_not_at_all(call, monkeypatch):
    def recorded(call):
        HookHeard.objects.create(event="record", installation=call.payload.agent_id)
        if call.payload.agent_id == "broken":
            raise DatabaseError("disk I/O error")

    monkeypatch.setitem(HANDLERS, "SubagentStart", [lambda call: HookAnswer("Know.", keep=lambda: recorded(call))])
    monkeypatch.setitem(LATER, "SubagentStart", [lambda call: None])
    assert call("SubagentStart", agent_id="whole").status_code == 200
    refused = call("SubagentStart", agent_id="broken")
    assert refused.status_code == 500 and "Know." not in refused.content.decode()
    assert list(HookHeard.objects.filter(event="record").values_list("installation", flat=True)) == ["whole"]
    assert OrmQ.objects.count() == 1
    assert "disk I/O error" in HookHeard.objects.get(event="SubagentStart").problem


def test_a_handler_that_fails_later_does_not_keep_the_others_from_their_work(call, monkeypatch):
    done = []

    def broken(call):
        raise RuntimeError("twice shy")

    monkeypatch.setitem(LATER, "Stop", [broken, done.append])
    call("Stop")
    with pytest.raises(RuntimeError, match="twice shy"):
        tasks.handle_hook(*OrmQ.objects.get().task["args"])
    assert len(done) == 1


def test_nothing_is_queued_where_nothing_waits(call):
    call("Stop")
    assert not OrmQ.objects.exists()


def test_when_a_hook_was_heard_is_written_once_a_minute_and_a_problem_at_once(call, django_assert_num_queries):
    begun = timezone.now()
    call("Stop")
    call("Stop")
    row = HookHeard.objects.get()
    assert (row.event, row.installation, row.calls, row.problem) == ("Stop", "laptop", 1, "")
    assert begun <= row.first_at <= row.last_at
    with django_assert_num_queries(2):  # the token and the projects' paths
        call("Stop")
    call("Stop", body=b"odd")
    call("Stop", body=b"odd")
    row.refresh_from_db()
    assert row.problem.startswith("The body is not JSON")
    assert row.calls == 4
    call("Stop")
    row.refresh_from_db()
    assert (row.problem, row.calls) == ("", 6)
    last_heard_from.note(("Stop", "laptop"), "", at=timezone.now() + timedelta(minutes=2))
    row.refresh_from_db()
    assert row.calls == 7


@pytest.mark.django_db(transaction=True)
def test_two_web_processes_that_hear_a_hook_first_make_one_row(monkeypatch):
    monkeypatch.setattr(last_heard_from.TALLY, "due", lambda key, problem, at: 1)  # each process counts for itself
    both = Barrier(2, timeout=30)

    def note():
        both.wait()
        last_heard_from.note(("Stop", "laptop"), "", at=timezone.now())
        connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(note), pool.submit(note)]:
            done.result()
    assert HookHeard.objects.get().calls == 2


def test_the_use_of_the_token_is_recorded(call, secret):
    call("Stop")
    assert ApiToken.objects.get().last_used_at is not None


def test_a_problem_that_names_a_credential_is_masked(call, monkeypatch):
    def broken(call):
        raise RuntimeError("no login with sk-ant-api03-" + "a" * 93 + "AA")

    monkeypatch.setitem(HANDLERS, "Stop", [broken])
    response = call("Stop")
    assert "sk-ant-api03-aaaa" not in HookHeard.objects.get().problem + response.content.decode()


def test_more_calls_than_a_session_makes_are_refused_for_a_second(call, monkeypatch):
    monkeypatch.setattr(callers, "RATE", callers.Rate(3))
    monkeypatch.setattr(callers.time, "monotonic", lambda: 7.0)
    assert [call("Stop").status_code for _ in range(5)] == [200, 200, 200, 429, 429]
    other = add_token("desktop", ["hook"], by="anna")[1]
    assert call("Stop", token=other).status_code == 200
    monkeypatch.setattr(callers.time, "monotonic", lambda: 8.0)
    assert call("Stop").status_code == 200
