"""Vectors from an OpenAI-compatible `/v1/embeddings` endpoint, over the standard library's HTTP.

What it answers is checked before anything is stored: as many vectors as texts, each of the expected dimensions,
finite, not zero. Redirects are refused, since they would carry the key elsewhere; the key is in no message. What looks
like a credential does not leave the house: its kind is sent in its stead.
"""

from __future__ import annotations

import http.client
import json
import math
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import Request

import numpy as np

from memories.calls import Call, named
from memories.capture.redaction import without_credentials
from memories.embedding.base import SemanticOff, TextRefused, Vectors, normalised

PREFIX = "endpoint:"
BATCH = 64
"""Texts in one request; endpoints take at least this many."""
ONE_WITHIN, BATCH_WITHIN = 5.0, 60.0
"""Seconds an answer may take: for a query somebody waits, for a batch nobody does."""
MOST_TEXT = 8_000
"""Characters of a text that are sent: some 2,000 tokens, which every model takes."""
MOST_LOOKED = 20 * MOST_TEXT
"""Characters in which credentials are looked for: so many more than are sent that none is sent cut in two."""
LONGEST_ANSWER = 64 * 1024 * 1024
PROBE = "How many dimensions are these?"


def embeddings_url(given: str) -> str:
    """The address requests go to, of a host, of a `/v1`, or of the whole."""
    parts = urlsplit(given)
    path = parts.path.rstrip("/")
    if not path.endswith("/embeddings"):
        path = (path or "/v1") + "/embeddings"
    return urlunsplit(parts._replace(path=path, fragment=""))


class EndpointEmbedder:
    """The model `model` at `url`. Nothing is asked before its dimensions or a vector are needed."""

    def __init__(self, url: str, model: str, key: str = "", dimensions: int | None = None) -> None:
        self._url, self._model, self._key = embeddings_url(url), model, key
        self._dimensions = dimensions

    @property
    def name(self) -> str:
        """The model and its dimensions: the same name at another address counts as the same model."""
        return f"{PREFIX}{self._model}:{self.dimensions}"

    @property
    def dimensions(self) -> int:
        if self._dimensions is None:
            self._dimensions = len(self._ask([PROBE])[0])
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. Raises SemanticOff for what is the endpoint's fault, TextRefused for a text's."""
        parts = [self._ask(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        if not parts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return normalised(np.concatenate(parts))

    def _ask(self, texts: Sequence[str]) -> Vectors:
        body = {"model": self._model, "input": [_sendable(text) for text in texts], "encoding_format": "float"}
        request = Request(  # noqa: S310  (a call knows http and https only)
            self._url, json.dumps(body).encode(), {"Content-Type": "application/json", "Accept": "application/json"}
        )
        if self._key:
            request.add_unredirected_header("Authorization", f"Bearer {self._key}")
        return self._checked(self._answer(request, ONE_WITHIN if len(texts) == 1 else BATCH_WITHIN), len(texts))

    def _answer(self, request: Request, within: float) -> Any:
        try:
            status, raw = Call(within).answer_within(request, LONGEST_ANSWER + 1)
        except (http.client.HTTPException, OSError, ValueError) as error:
            raise self._off(f"does not answer ({_why(error, within)})") from None
        if status in (400, 413, 422):
            raise TextRefused(self._without_key(f"the endpoint refuses it (HTTP {status}): {_said(raw)}"))
        if status in (401, 403):
            raise self._off(f"refuses the key (HTTP {status})", "Look at CLAUDEOPS_EMBEDDINGS_KEY.")
        if status == 404:
            raise self._off(
                f"knows neither this address nor this model (HTTP 404): {_said(raw)}",
                "Look at CLAUDEOPS_EMBEDDINGS_URL and CLAUDEOPS_EMBEDDINGS_MODEL.",
            )
        if 300 <= status < 400:
            raise self._off(f"sends elsewhere (HTTP {status}), which is not followed", "Give its own address.")
        if status != 200:
            raise self._off(f"answers with HTTP {status}: {_said(raw)}")
        if len(raw) > LONGEST_ANSWER:
            raise self._off("answers with more than 64 MB")
        try:
            return json.loads(raw)
        except ValueError:
            raise self._off(f"answers with something else than JSON: {_said(raw)}") from None

    def _checked(self, answer: Any, count: int) -> Vectors:
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list):
            raise self._off("answers without a list of vectors")
        if len(data) != count:
            raise self._off(f"answers {count} texts with {len(data)} vectors")
        rows: list[Any] = [None] * count
        for place, entry in enumerate(data):
            index = entry.get("index", place) if isinstance(entry, dict) else None
            if not isinstance(index, int) or not 0 <= index < count or rows[index] is not None:
                raise self._off("answers with vectors that belong to no text")
            rows[index] = entry.get("embedding")
        expected = self._dimensions
        for row in rows:
            if not isinstance(row, list) or not all(type(number) in (int, float) for number in row):
                raise self._off("answers with a vector that is no list of numbers")
            expected = len(row) if expected is None else expected
            if len(row) != expected or not row:
                raise self._off(f"answers with {len(row)} dimensions; {expected} were expected")
            if not all(math.isfinite(number) for number in row):
                raise self._off("answers with a vector that holds NaN or infinity")
            if not any(row):
                raise self._off("answers with a vector of nothing but zeros")
        vectors = np.asarray(rows, dtype=np.float64)
        vectors /= np.abs(vectors).max(axis=1, keepdims=True)  # so that no square of it is too large
        return vectors.astype(np.float32)

    def _off(self, what: str, fix: str = "") -> SemanticOff:
        return SemanticOff(self._without_key(f"the endpoint {self._url} {what}"), fix)

    def _without_key(self, text: str) -> str:
        """An endpoint may quote the key in what it says."""
        return text.replace(self._key, "…") if self._key else text


def _sendable(text: str) -> str:
    """As much of a text as is sent, without credentials; an endpoint may refuse an empty one."""
    return without_credentials(text[:MOST_LOOKED])[:MOST_TEXT].encode("utf-8", "replace").decode("utf-8") or " "


def _why(error: Exception, within: float) -> str:
    if isinstance(getattr(error, "reason", error), TimeoutError):
        return f"no answer within {within:g} s"
    return named(error)


def _said(raw: bytes) -> str:
    """The beginning of what an endpoint said, in one line."""
    text = " ".join(raw[:2000].decode("utf-8", "replace").split())
    return text[:200] or "nothing"
