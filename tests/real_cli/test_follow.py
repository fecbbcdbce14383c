"""Composed prompts, retry and continue on the real CLI."""

from __future__ import annotations

import json

import pytest

from sessions_app import queue
from sessions_app.models import Status, Trigger
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory
from tests.support.messages_api import Text, answers, bash, says

pytestmark = pytest.mark.real_cli

TASK = "Find out why the login of the shop fails."


@pytest.fixture
def first(room):
    """A session of a project that was asked to do TASK, and said where it looked."""
    project = ProjectFactory(slug="shop", path="/srv/shop")
    MemoryFactory(
        taxonomy="project",
        project=project,
        service=None,
        category="pattern",
        observation="The login keeps its state in a cookie",
        tags=["login"],
    )
    room.api.script(
        TASK,
        answers(Text("I looked at the cookie jar of the kitchen."), bash("echo looked")),
        says("It is the cookie."),
        says("Done now."),
    )
    agent = AgentFactory(prompt_template="", structured_response=False, allowed_tools=["Bash(echo *)"], project=project)
    brief = {"title": "Login fails", "write_scope": ["src/core/**"], "read_first": ["docs/login.md"]}
    asked = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by="ops", prompt_task=TASK, brief=brief)
    return room.carry_out(asked)


def test_the_composed_prompt_is_in_the_request(room, first):
    assert first.status == Status.COMPLETED
    assert first.prompt.strip() in room.api.to(TASK)[0].prompt
    memory = first.receipt.included[0]
    assert f"- [pattern] The login keeps its state in a cookie [m{memory['id']}]" in first.prompt
    assert memory["score"]["matched"] == ["login"]
    for part in ("## Role\n", "## Workspace\n", "- Repository: /srv/shop", "## Constraints\n", "- src/core/**"):
        assert part in first.prompt


def test_a_continue_carries_the_earlier_conversation_and_the_new_words(room, first):
    second = room.carry_out(queue.request_continue(first, by="ops", note="Look into the oven, too."))

    assert (second.status, second.parent) == (Status.COMPLETED, first)
    body = json.dumps(room.api.to(TASK)[-1].body)
    assert "I looked at the cookie jar of the kitchen." in body
    assert "Look into the oven, too." in body
    assert "continues the conversation of session" in body
    assert second.cli_session_id != first.cli_session_id
    assert second.num_turns == 1
    assert 0 < second.cost_usd < first.cost_usd


def test_a_retry_begins_anew_with_what_was_tried(room, first):
    second = room.carry_out(queue.request_retry(first, by="ops", note="Look into the oven, too."))

    request = room.api.to(TASK)[-1]
    assert second.status == Status.COMPLETED
    assert "I looked at the cookie jar of the kitchen." not in json.dumps(request.body)
    assert "## Retry/Continue Digest" in request.prompt
    assert "Bash: " in request.prompt
    assert "Look into the oven, too." in request.prompt
