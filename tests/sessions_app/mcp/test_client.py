"""The official client against the web server's `/mcp`, over a real connection."""

from __future__ import annotations

import anyio
import httpx2
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from memories.access import add_token
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 60


def test_a_client_elsewhere_asks_over_http_with_a_token(live_server):
    known = MemoryFactory(observation="The nightly backup needs the NAS mounted")
    _, secret = add_token("model", ["read"], by="operator")

    async def talk():
        with anyio.fail_after(PATIENCE):
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}) as http,
                streamable_http_client(f"{live_server.url}/mcp", http_client=http) as (read, write, *_),
                ClientSession(read, write) as client,
            ):
                await client.initialize()
                names = [tool.name for tool in (await client.list_tools()).tools]
                return names, await client.call_tool("recall", {"query": "nightly backup"})

    names, answer = anyio.run(talk)
    assert names == [
        "recall",
        "context",
        "memory_show",
        "journal_query",
        "search",
        "search_decisions",
        "check_cooldown",
    ]
    assert [hit["id"] for hit in answer.structured_content["memories"]] == [known.pk]
