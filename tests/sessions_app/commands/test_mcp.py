"""`manage.py mcp`: a real server process on stdin and stdout, and the official client at its other end."""

from __future__ import annotations

import json
import sys

import anyio
import pytest
from django.core.management import CommandError, call_command
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from claudeops.env import BASE_DIR
from memories.models import Memory
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory, SessionFactory
from tests.support.processes import environment, manage

PATIENCE = 120


def ask(options, *calls):
    """What a server started with `options` answers: (its tools, the answer to each call)."""
    server = StdioServerParameters(
        command=sys.executable, args=["manage.py", "mcp", *options], env=environment(), cwd=BASE_DIR
    )

    async def talk():
        with anyio.fail_after(PATIENCE):
            async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
                await client.initialize()
                names = [tool.name for tool in (await client.list_tools()).tools]
                return names, [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(talk)


@pytest.mark.django_db(transaction=True)
@pytest.mark.processes
def test_a_client_recalls_and_remembers_for_the_session_it_is_started_for():
    project = ProjectFactory(slug="mine")
    session = SessionFactory(agent=AgentFactory(slug="watcher"), project=project, status="running")
    known = MemoryFactory(project=project, observation="The nightly backup needs the NAS")
    MemoryFactory(project=ProjectFactory(), observation="The nightly backup needs the tape")
    new = {"observation": "Runs at 3 in the morning", "category": "timing", "service": "backup"}

    names, (found, first, again, refused) = ask(
        ["--session", str(session.uuid)],
        ("recall", {"query": "nightly backup needs"}),
        ("remember", new),
        ("remember", new),
        ("remember", new | {"service": "two words"}),
    )

    assert names == [
        "recall",
        "context",
        "memory_show",
        "journal_query",
        "search",
        "search_decisions",
        "check_cooldown",
        "remember",
        "log_event",
        "journal_write",
    ]
    assert [hit["id"] for hit in found.structured_content["memories"]] == [known.pk]
    assert (first.structured_content["outcome"], again.structured_content["outcome"]) == ("created", "duplicate")
    assert refused.is_error
    memory = Memory.objects.get(pk=first.structured_content["memory_id"])
    assert (memory.session, memory.project, memory.source) == (session, project, "run")


@pytest.mark.django_db(transaction=True)
@pytest.mark.processes
def test_read_only_it_offers_no_tool_that_writes():
    names, (answer,) = ask(["--read-only"], ("remember", {"observation": "Not to be stored", "category": "timing"}))
    assert names == [
        "recall",
        "context",
        "memory_show",
        "journal_query",
        "search",
        "search_decisions",
        "check_cooldown",
    ]
    assert answer.is_error
    assert not Memory.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.processes
def test_stdout_holds_the_protocol_alone():
    process = manage("mcp")
    process.stdin and process.stdin.close()
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    for line in out.splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--session", "999"], "There is no session 999"),
        (["--agent", "nobody"], "There is no agent 'nobody'"),
        (["--project", "nowhere"], "There is no project 'nowhere'"),
        (["--session", "1", "--agent", "watcher"], "determines agent and project"),
    ],
)
def test_a_scope_that_is_not_there_is_said_and_nothing_is_served(options, said):
    with pytest.raises(CommandError, match=said):
        call_command("mcp", *options)
