"""Answer one MCP message over streamable HTTP, with JSON and no stream, so that any WSGI process can serve it."""

from __future__ import annotations

from collections.abc import Iterable

import anyio
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Message, Scope

from memories.access import Access
from sessions_app.mcp.server import build

# Django checks the host (ALLOWED_HOSTS), and another site's page has no token to send.
SECURITY = TransportSecuritySettings(enable_dns_rebinding_protection=False)

Answer = tuple[int, list[tuple[str, str]], bytes]


async def answer(access: Access, headers: Iterable[tuple[str, str]], body: bytes) -> Answer:
    """Return (status, headers, body) for one POST with these headers (names in lower case)."""
    server = build(access)
    server.streamable_http_app(json_response=True, stateless_http=True, transport_security=SECURITY)
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers],
        "client": None,
        "server": None,
    }
    unread = [body]
    sent: list[Message] = []

    async def receive() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        await anyio.sleep_forever()  # the caller does not disconnect before the answer
        raise AssertionError("unreachable")

    async def send(message: Message) -> None:
        sent.append(message)

    async with server.session_manager.run():
        await server.session_manager.handle_request(scope, receive, send)
    start = next(message for message in sent if message["type"] == "http.response.start")
    content = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
    response_headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start.get("headers", [])]
    return start["status"], response_headers, content
