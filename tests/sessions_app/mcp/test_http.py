"""`/mcp`: the tools over streamable HTTP, behind a token whose scopes and project are the model's."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from memories.access import add_token, revoke_token
from memories.models import ApiToken, Memory
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db

VERSION = "2025-06-18"


class Model:
    """What an MCP client sends over HTTP, message by message."""

    def __init__(self, *scopes, project=None):
        _, self.secret = add_token("model", scopes, by="operator", project=project)
        self.client = Client(enforce_csrf_checks=True)

    def send(self, method, params=None, **headers):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        return self.client.post(
            "/mcp",
            json.dumps(message),
            content_type="application/json",
            headers={
                "Authorization": f"Bearer {self.secret}",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": VERSION,
                **headers,
            },
        )

    def tools(self):
        return {tool["name"]: tool for tool in self.send("tools/list").json()["result"]["tools"]}

    def call(self, name, **arguments):
        return self.send("tools/call", {"name": name, "arguments": arguments}).json()["result"]


WRITES = ("remember", "log_event", "journal_write")


def test_it_introduces_itself_and_keeps_no_session():
    hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    response = Model("read").send("initialize", hello)
    answer = response.json()["result"]
    assert (response.status_code, answer["protocolVersion"]) == (200, VERSION)
    assert answer["serverInfo"]["name"] == "claudeops"
    assert "recall" in answer["instructions"]
    assert "Mcp-Session-Id" not in response.headers


def test_every_tool_has_a_schema_and_says_whether_it_changes_anything():
    tools = Model("read", "write").tools()
    assert set(tools) == {
        "recall",
        "context",
        "memory_show",
        "journal_query",
        "search",
        "search_decisions",
        "check_cooldown",
        *WRITES,
    }
    for name, tool in tools.items():
        assert tool["description"]
        assert tool["outputSchema"]["properties"]
        assert tool["annotations"]["readOnlyHint"] is (name not in WRITES)
        assert tool["annotations"]["destructiveHint"] is False
        assert not {"project", "agent", "session"} & set(tool["inputSchema"]["properties"]), name
    assert tools["recall"]["inputSchema"]["required"] == ["query"]


@pytest.mark.parametrize(
    ("scopes", "names"),
    [
        (
            ["read"],
            {"recall", "context", "memory_show", "journal_query", "search", "search_decisions", "check_cooldown"},
        ),
        (["write"], {*WRITES}),
        (
            ["admin"],
            {
                "recall",
                "context",
                "memory_show",
                "journal_query",
                "search",
                "search_decisions",
                "check_cooldown",
                *WRITES,
            },
        ),
    ],
)
def test_a_token_brings_the_tools_of_its_scopes_and_calls_no_other(scopes, names):
    model = Model(*scopes)
    assert set(model.tools()) == names
    refused = model.call(
        "remember" if "remember" not in names else "nothing_like_it", observation="x" * 9, category="timing"
    )
    assert refused["isError"]
    assert not Memory.objects.exists()


def test_recall_and_remember_stay_within_the_tokens_project():
    mine, other = ProjectFactory(slug="mine"), ProjectFactory(slug="other")
    seen = MemoryFactory(project=mine, observation="The nightly backup needs the NAS")
    hidden = MemoryFactory(project=other, observation="The nightly backup needs the tape")
    model = Model("read", "write", project=mine)
    found = model.call("recall", query="nightly backup needs")["structuredContent"]["memories"]
    assert [hit["id"] for hit in found] == [seen.pk]
    assert model.call("memory_show", memory_id=hidden.pk)["isError"]
    assert model.call("recall", query="backup", project="other").get("structuredContent", {}).get("memories") != [
        hidden.pk
    ]
    made = model.call("remember", observation="Runs at 3 in the morning", category="timing", service="backup")
    memory = Memory.objects.get(pk=made["structuredContent"]["memory_id"])
    assert (memory.project, memory.session, memory.source) == (mine, None, "run")
    assert memory.changes.get().actor == "token model"


def test_what_the_store_refuses_is_an_answer_that_a_model_can_read():
    answer = Model("write").call(
        "remember", observation="A fact of some length", category="timing", service="two words"
    )
    assert answer["isError"]
    assert "service is 'two words'" in answer["content"][0]["text"]


def test_a_fault_of_the_program_tells_the_model_no_detail(monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("the secret detail")

    monkeypatch.setattr("sessions_app.mcp.tools.ask", broken)
    answer = Model("read").call("recall", query="anything")
    assert answer["isError"]
    assert "secret detail" not in json.dumps(answer)


def test_without_a_token_that_may_there_is_no_answer(client, operator):
    model = Model("run")
    assert model.send("tools/list").status_code == 403
    model.secret = "cops_wrong"
    response = model.send("tools/list")
    assert (response.status_code, response.headers["WWW-Authenticate"][:6]) == (401, "Bearer")
    client.force_login(operator)
    assert client.post("/mcp", "{}", content_type="application/json").status_code == 401


def test_a_revoked_token_is_refused_at_once_and_a_use_is_noted():
    model = Model("read")
    assert model.send("tools/list").status_code == 200
    assert ApiToken.objects.get().last_used_at is not None
    revoke_token("model", by="operator")
    assert model.send("tools/list").status_code == 401


@pytest.mark.parametrize("method", ["get", "delete", "put"])
def test_only_post_is_offered(client, method):
    response = getattr(client, method)("/mcp")
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "body", ["", "{", "[]", '{"jsonrpc": "2.0"}', '{"jsonrpc": "2.0", "id": 1, "method": "no/such"}']
)
def test_what_is_no_message_is_refused_with_a_reason(body):
    model = Model("read")
    response = model.client.post(
        "/mcp",
        body,
        content_type="application/json",
        headers={"Authorization": f"Bearer {model.secret}", "Accept": "application/json, text/event-stream"},
    )
    assert response.status_code < 500
    assert response.content
    assert "html" not in response.headers["Content-Type"]
    if response.headers["Content-Type"] == "application/json":
        assert response.json()["error"]["message"]
