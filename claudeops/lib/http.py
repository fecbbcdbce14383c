"""Make one HTTP request under a total deadline, without redirects, which would carry a key elsewhere.

The certificate authorities are the system's, or those of SSL_CERT_FILE and SSL_CERT_DIR.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import ssl
from collections.abc import Mapping
from typing import Any


class RequestFailed(Exception):
    """There is no answer. The text says why, for people, and quotes nothing that the server sent."""

    def __init__(self, reason: str, *, late: bool = False) -> None:
        super().__init__(reason)
        self.late = late


def post_json(
    url: str, document: Any, headers: Mapping[str, str], *, seconds: float, max_bytes: int
) -> tuple[int, bytes]:
    """Send `document` as JSON; return the status and at most `max_bytes` bytes of the answer.

    `seconds` bounds the whole call, from the name lookup to the last byte: an HTTP client's timeouts begin anew with
    each byte. Raises RequestFailed (`late`: out of time). Not for a thread that runs an event loop.
    """
    import httpx2  # takes 0.1 s and 16 MB, and most processes make no request

    sent = {"Content-Type": "application/json", "Accept": "application/json", **headers}
    sockets: list[Any] = []

    async def trace(event: str, info: dict[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            sockets.append(info["return_value"].get_extra_info("socket"))

    async def post() -> tuple[int, bytes]:
        body = bytearray()
        # Without TLS no certificates are needed, and loading them takes longer than the request.
        async with (
            asyncio.timeout(seconds),
            httpx2.AsyncClient(timeout=None, verify=url.lower().startswith("https:")) as client,
            client.stream(
                "POST", url, content=json.dumps(document), headers=sent, extensions={"trace": trace}
            ) as response,
        ):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) >= max_bytes:
                    break
            return response.status_code, bytes(body[:max_bytes])

    # Not asyncio.run(): it would wait for the thread of a name lookup that hangs.
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(post())
    except TimeoutError as error:
        raise RequestFailed(f"no answer within {seconds:g} s", late=True) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise RequestFailed(why_failed(error)) from error
    finally:
        for connected in sockets:  # the client leaves a connection open when its handshake is cancelled
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)
        loop.close()


def why_failed(error: BaseException) -> str:
    """Name the cause of a client's error: TLS, the system, or else the error's class."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}; SSL_CERT_FILE may name who signed it"
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed: {(cause.reason or 'no reason given').replace('_', ' ').lower()}"
        if isinstance(cause, OSError) and cause.errno:
            return str(cause.strerror) if isinstance(cause, socket.gaierror) else os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__
