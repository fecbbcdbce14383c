"""Two servers for tests: an embeddings endpoint, and a model hub that can fail in several ways."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server that answers with `handler` while the block lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def vector_of(text: str, dimensions: int = 4, model: str = "") -> list[float]:
    """A vector that depends on the text and the model, not normalised."""
    seed = int.from_bytes(hashlib.sha256(f"{model}:{text}".encode()).digest()[:8], "big")
    return [float(number) for number in np.random.default_rng(seed).normal(0, 3, dimensions)]


class Endpoint:
    """An OpenAI-compatible endpoint. `answer(texts, model)` gives (status, body); None: what it should give.

    `requests` are those that came: (path, headers, body). From request number `hold_from` on, `arrived` is set and
    the answer waits for `go_on`.
    """

    def __init__(self, dimensions: int = 4) -> None:
        self.dimensions = dimensions
        self.requests: list[tuple[str, dict[str, str], dict]] = []
        self.answer: Callable[[list[str], str], tuple[int, object] | None] = lambda texts, model: None
        self.hold_from: int | None = None
        self.arrived, self.go_on = threading.Event(), threading.Event()
        self.url = ""

    def _right(self, texts: list[str], model: str) -> tuple[int, object]:
        data = [
            {"object": "embedding", "index": place, "embedding": vector_of(text, self.dimensions, model)}
            for place, text in enumerate(texts)
        ]
        return 200, {"object": "list", "data": data[::-1], "model": model}  # in any order: the index counts

    @property
    def texts(self) -> list[str]:
        """Every text that was asked about, in order."""
        return [text for _, _, body in self.requests for text in body["input"]]

    @contextmanager
    def running(self) -> Iterator[Endpoint]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.requests.append((self.path, dict(self.headers), body))
                if endpoint.hold_from is not None and len(endpoint.requests) >= endpoint.hold_from:
                    endpoint.arrived.set()
                    endpoint.go_on.wait(60)
                status, said = endpoint.answer(body["input"], body["model"]) or endpoint._right(
                    body["input"], body["model"]
                )
                raw = said if isinstance(said, bytes) else json.dumps(said).encode()
                try:
                    self.send_response(status)
                    if 300 <= status < 400:
                        self.send_header("Location", "/elsewhere")
                    self.send_header("Content-Length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw)
                except OSError:
                    pass  # who asked is gone

            def log_message(self, *args: object) -> None:
                pass

        with serving(Handler) as self.url:
            try:
                yield self
            finally:
                self.go_on.set()


class Hub:
    """A server of files. `cut`: after how many bytes of a body the connection breaks, once. `pause_after`: after how
    many bytes of the first body it pauses. `ranges`: whether it supports them."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.cut, self.pause_after, self.ranges = files, 0, 0, True
        self.requests: list[tuple[str, str]] = []
        self.url = ""

    @contextmanager
    def running(self) -> Iterator[Hub]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.headers.get("Range", "")
                hub.requests.append((self.path, asked))
                body = hub.files.get(self.path.lstrip("/"))
                if body is None:
                    self.send_error(404)
                    return
                begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked and hub.ranges else 0
                if begin >= len(body) and begin:
                    self.send_error(416)
                    return
                self.send_response(206 if begin else 200)
                self.send_header("Content-Length", str(len(body) - begin))
                if begin:
                    self.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
                self.end_headers()
                cut, pause = hub.cut, hub.pause_after
                hub.cut = hub.pause_after = 0
                try:
                    self.wfile.write(body[begin : begin + (cut or pause)] if cut or pause else body[begin:])
                    if pause:
                        time.sleep(0.3)
                        self.wfile.write(body[begin + pause :])
                except OSError:
                    pass  # the client has gone

            def log_message(self, *args: object) -> None:
                pass

        with serving(Handler) as self.url:
            yield self
