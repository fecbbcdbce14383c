"""One HTTP request with a hard end: whoever waits can hang up, before, in the midst of or after the TLS handshake.

Follows no redirect. Certificates are checked against the system's authorities, or those of SSL_CERT_FILE and
SSL_CERT_DIR. Knows no model and no setting.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.error import URLError

REDIRECTED = "it sends elsewhere, which is not followed"


class Call:
    """One request on its way, which another thread can end. A socket's `seconds` begin anew with each byte."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._over = False

    def answer(self, request: urllib.request.Request, most: int) -> tuple[int, bytes]:
        """The status and at most `most` bytes of the body. Raises OSError and http.client.HTTPException."""
        # Without the handlers that follow a redirect: it would carry the key elsewhere.
        opener = urllib.request.OpenerDirector()
        for handler in (urllib.request.ProxyHandler(), _Plain(self), _Tls(self)):
            opener.add_handler(handler)
        response = opener.open(request, timeout=self._seconds)
        if response is None:
            raise OSError("its address is not http or https")
        with response:
            return response.status, response.read(most)

    def answer_within(self, request: urllib.request.Request, most: int) -> tuple[int, bytes]:
        """As `answer`, and ended when its seconds are over, however it drips. Raises TimeoutError then."""
        end = threading.Timer(self._seconds, self.hang_up)
        end.daemon = True
        try:
            end.start()
        except RuntimeError as error:  # no thread to be had
            raise OSError("no thread to ask in") from error
        try:
            found = self.answer(request, most)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if self._over:
                raise TimeoutError from error
            raise
        else:
            if self._over:  # a body without a length looks whole when we end it
                raise TimeoutError
            return found
        finally:
            end.cancel()
            self.hang_up()

    def note(self, connected: socket.socket) -> None:
        """Keep a handle on the connection: TLS wraps the socket, and reading a body lets go of it."""
        with self._lock:
            if self._over:
                raise TimeoutError
            self._sockets.append(connected.dup())

    def hang_up(self) -> None:
        """End the connection, whoever is reading from it; again changes nothing."""
        with self._lock:
            self._over = True
            for one in self._sockets:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the other side was first
                one.close()
            self._sockets.clear()


class _Plain(urllib.request.HTTPHandler):
    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_noted(http.client.HTTPConnection, self._call), req)


class _Tls(urllib.request.HTTPSHandler):
    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_noted(http.client.HTTPSConnection, self._call), req)


def _noted(kind: type[http.client.HTTPConnection], call: Call) -> Callable[..., http.client.HTTPConnection]:
    """Connections of this kind that the call knows from the moment they are made, before any TLS."""

    def connect_to(address: tuple[str, int], *given: Any, **named: Any) -> socket.socket:
        made = socket.create_connection(address, *given, **named)
        try:
            call.note(made)
        except OSError:
            made.close()
            raise
        return made

    def make(host: str, **given: Any) -> http.client.HTTPConnection:
        connection = kind(host, **given)
        connection._create_connection = connect_to  # type: ignore[attr-defined]
        return connection

    return make


def named(error: Exception) -> str:
    """An error in a few words. What the other side answered is not among them."""
    reason = error.reason if isinstance(error, URLError) else error  # one of TLS has a `reason` of its own
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {reason.verify_message}; SSL_CERT_FILE may name who signed it"
    if isinstance(reason, ssl.SSLError):
        return f"TLS failed: {(reason.reason or 'no reason given').replace('_', ' ').lower()}"
    if isinstance(reason, OSError):
        return reason.strerror or str(reason) or type(reason).__name__
    return type(error).__name__
