"""The real CLI with our hooks: a refusal, a subagent's context, and a server that is away, slow or failing."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.management import call_command

from sessions_app.hooks import last_heard_from
from sessions_app.hooks.events import HANDLERS, HookAnswer
from sessions_app.models import HookHeard, Status
from tests.real_cli.person import outcomes, result
from tests.support.factories import CooldownActionFactory, ProjectFactory
from tests.support.messages_api import ToolUse, answers, bash, says

pytestmark = pytest.mark.real_cli

KEY = "look after the house"
RESTART = "docker restart jellyfin"


def test_a_restart_beyond_the_limit_is_refused_through_the_door(person, door):
    CooldownActionFactory.create_batch(2, service="jellyfin")
    theirs = json.dumps({"permissions": {"allow": ["Bash(docker *)"]}}, indent=2) + "\n"
    person.settings.write_text(theirs)
    person.install("--cooldowns", "--url", door.url)
    person.api.script(KEY, answers(bash("echo looked"), bash(RESTART)), says("Not allowed."))

    lines = person.run(KEY)

    assert outcomes(lines) == ["success", "success"]
    looked, restarted = person.api.to(KEY)[1].tool_results
    assert "looked" in looked
    assert "Refused: 2 of 2 restarts of jellyfin" in restarted
    assert [denied["tool_input"]["command"] for denied in result(lines)["permission_denials"]] == [RESTART]
    assert HookHeard.objects.get(event="PreToolUse").problem == ""
    call_command("hook", "uninstall", "--yes")
    assert person.settings.read_text() == theirs


def test_two_subagents_at_once_get_the_context_of_their_project(person, door, monkeypatch):
    project = ProjectFactory(path=str(person.repository))
    both = threading.Barrier(2, timeout=30)

    def told(call):
        both.wait()  # neither is answered before the other has come
        return HookAnswer(context=f"AGENT MEMORY of {call.payload.agent_type} in {call.project}")

    stopped = []
    monkeypatch.setitem(HANDLERS, "SubagentStart", [told])
    monkeypatch.setitem(HANDLERS, "SubagentStop", [lambda call: stopped.append(call.payload)])
    person.install("--agents", "--url", door.url)
    tasks = ("count the sheep", "count the goats")
    person.api.script(
        KEY,
        answers(
            *(
                ToolUse("Agent", {"description": "count", "prompt": task, "subagent_type": "general-purpose"})
                for task in tasks
            )
        ),
        says("Counted."),
    )
    for task in tasks:
        person.api.script(task, says(f"I did {task}."))

    lines = person.run(KEY)

    assert set(outcomes(lines)) == {"success"}
    for task in tasks:
        (request,) = person.api.to(task)
        assert f"AGENT MEMORY of general-purpose in {project}" in json.dumps(request.body)
    assert "AGENT MEMORY" not in json.dumps(person.api.to(KEY)[0].body)
    assert {(one.agent_type, one.last_assistant_message) for one in stopped} == {
        ("general-purpose", f"I did {task}.") for task in tasks
    }
    assert len({one.agent_id for one in stopped}) == 2


@contextmanager
def slow_server() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def no_server() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(("server", "outcome"), [(no_server, "error"), (slow_server, "cancelled")])
def test_a_server_that_is_away_or_slow_does_not_harm_the_session(person, server, outcome):
    person.api.script(KEY, answers(bash("echo looked")), says("Done."))
    with server() as url:
        person.install("--cooldowns", "--url", url)
        began = time.monotonic()
        lines = person.run(KEY)
    assert time.monotonic() - began < 60
    assert outcomes(lines) == [outcome]
    assert "looked" in person.api.to(KEY)[1].tool_results[0]
    assert not result(lines)["is_error"]


def test_a_door_that_fails_does_not_harm_the_session_and_is_noted(person, door, monkeypatch):
    def broken(call):
        raise RuntimeError("the disk is gone")

    monkeypatch.setitem(HANDLERS, "PreToolUse", [broken])
    person.install("--cooldowns", "--url", door.url)
    person.api.script(KEY, answers(bash("echo looked")), says("Done."))
    lines = person.run(KEY)
    assert outcomes(lines) == ["error"]
    assert "looked" in person.api.to(KEY)[1].tool_results[0]
    assert "the disk is gone" in HookHeard.objects.get(event="PreToolUse").problem


def test_with_fail_closed_nothing_runs_while_the_server_is_away(person):
    person.api.script(KEY, answers(bash("echo looked")), says("Done."))
    with no_server() as url:
        person.install("--cooldowns", "--fail-closed", "--url", url)
        person.run(KEY)
    (said,) = person.api.to(KEY)[1].tool_results
    assert "looked" not in said
    assert "blocking because onFailure" in said


def test_a_session_of_ours_has_the_hooks_too(room, door, settings, monkeypatch):
    settings.CLAUDEOPS_HOOK_URL = door.url
    settings.CLAUDEOPS_SESSION_HOOKS = ["agents", "cooldowns"]
    seen = []
    monkeypatch.setattr(last_heard_from, "TALLY", last_heard_from.Tally())
    monkeypatch.setitem(HANDLERS, "SubagentStart", [lambda call: seen.append(call) or HookAnswer(context="Know this.")])
    CooldownActionFactory.create_batch(2, service="jellyfin")
    agent = ToolUse("Agent", {"description": "x", "prompt": "count the sheep", "subagent_type": "general-purpose"})
    room.api.script(KEY, answers(bash(RESTART)), answers(agent), says("Done."))
    room.api.script("count the sheep", says("Two."))

    session = room.run(KEY, allowed_tools=["Bash(docker *)", "Agent"])

    assert session.status == Status.COMPLETED, (session.status_reason, session.error)
    assert "Refused: 2 of 2 restarts of jellyfin" in room.api.to(KEY)[1].tool_results[0]
    assert "Know this." in json.dumps(room.api.to("count the sheep")[0].body)
    assert [(call.session, call.installation) for call in seen] == [(session, "sessions")]
    assert set(HookHeard.objects.values_list("installation", flat=True)) == {"sessions"}
