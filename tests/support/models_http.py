"""Test servers for models over HTTP: embeddings by words, and a chat model with a given answer."""

from __future__ import annotations

import hashlib
import json
import math
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memories import embedding
from memories.models import EmbeddingModel

DIMENSIONS = 64
SAME = {"purges": "removes", "media": "files", "quarter": "season"}
"""Words that have the same vector."""


def vector_of(text: str) -> list[float]:
    """A bag of words: each word has its dimension, so texts with the same words have the same vector."""
    found = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        found[hashlib.sha256(SAME.get(word, word).encode()).digest()[0] % DIMENSIONS] += 1.0
    length = math.sqrt(sum(value * value for value in found)) or 1.0
    return [value / length for value in found] if any(found) else [1.0, *found[1:]]


def embeddings(body: dict[str, Any]) -> dict[str, Any]:
    data = [{"index": at, "embedding": vector_of(text)} for at, text in enumerate(body["input"])]
    return {"object": "list", "data": data, "model": body["model"]}


def chat(answer: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda body: {"choices": [{"message": {"content": answer}}]}


class Served:
    """The requests that a server got, and how it answers."""

    def __init__(self, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.location = ""
        self.late = 0.0
        self.raw: bytes | None = None
        self.way = ""
        """headers or body: sent a byte at a time without end; hush: no answer; close: the connection ends at once."""
        self.left = threading.Event()
        """Set when the client has ended a connection that dripped or was silent."""
        self.closing = threading.Event()
        self.url = ""


@contextmanager
def serving(answer: Callable[[dict[str, Any]], dict[str, Any]], tls: ssl.SSLContext | None = None) -> Iterator[Served]:
    served = Served(answer)

    class Handler(BaseHTTPRequestHandler):
        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                pass  # the client refused the certificate

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.asked.append(body)
            served.headers.append(dict(self.headers))
            time.sleep(served.late)
            raw = json.dumps(served.answer(body)).encode() if served.status == 200 else b"{}"
            raw = raw if served.raw is None else served.raw
            if served.way:
                self.close_connection = True
                if served.way != "close":
                    self.linger(served.way)
                return
            try:
                self.send_response(served.status)
                if served.location:
                    self.send_header("Location", served.location)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)
            except OSError:
                pass  # the client has gone

        def linger(self, way: str) -> None:
            """Drip (or stay silent) until the client has gone or the server closes."""
            if way == "body":
                self.send_response(200)
                self.send_header("Content-Length", "1000000")
                self.end_headers()
            elif way == "headers":
                self.wfile.write(b"HTTP/1.0 200 OK\r\nX-Slow: ")
            self.connection.settimeout(0.02)
            while not served.closing.is_set():
                try:
                    if way != "hush":
                        self.wfile.write(b" ")
                    if self.connection.recv(1) == b"":
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
            else:
                return
            served.left.set()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:  # the handshake runs in the connection's thread, so a failed one ends no other connection
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    served.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


@contextmanager
def embedded_by(
    settings: Any, answer: Callable[[dict[str, Any]], dict[str, Any]] = embeddings
) -> Iterator[tuple[Served, EmbeddingModel]]:
    """An endpoint whose vectors answer, made by `answer`; no memory waits for a vector."""
    with serving(answer) as served:
        settings.CLAUDEOPS_EMBEDDINGS = "endpoint"
        settings.CLAUDEOPS_EMBEDDINGS_URL = served.url
        settings.CLAUDEOPS_EMBEDDINGS_MODEL = "words"
        settings.CLAUDEOPS_EMBEDDINGS_KEY = ""
        embedding.reset()
        name = f"endpoint:words:{DIMENSIONS}"
        yield served, EmbeddingModel.objects.create(name=name, dimensions=DIMENSIONS, state="active", filled_to=None)
    embedding.reset()
