"""Get checked vectors from an OpenAI-compatible endpoint, without sending credentials or showing the key."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from claudeops.lib.http import RequestFailed, post_json
from claudeops.lib.secrets import mask
from memories.embedding.base import SemanticOff, TextRefused, Vectors, normalised

PREFIX = "endpoint:"
BATCH = 64
"""Texts in one request; endpoints accept at least this many."""
ONE_WITHIN, BATCH_WITHIN = 5.0, 60.0
"""Timeouts in seconds: a person waits for one text (a query), nobody for a batch."""
MOST_TEXT = 8_000
"""Characters of a text that are sent: some 2,000 tokens, which every model accepts."""
MOST_SEARCHED = 20 * MOST_TEXT
"""Characters that are searched for credentials: far more than are sent, so that none is sent cut in two."""
LONGEST_ANSWER = 64 * 1024 * 1024
PROBE = "How many dimensions are these?"


def embeddings_url(given: str) -> str:
    """Return the address for requests, from that of a host, of a `/v1` or of the endpoint itself."""
    parts = urlsplit(given)
    path = parts.path.rstrip("/")
    if not path.endswith("/embeddings"):
        path = (path or "/v1") + "/embeddings"
    return urlunsplit(parts._replace(path=path, fragment=""))


class EndpointEmbedder:
    """The model `model` at `url`. The first request is sent when its dimensions or a vector are needed."""

    def __init__(self, url: str, model: str, key: str = "", dimensions: int | None = None) -> None:
        self._url, self._model, self._key = embeddings_url(url), model, key
        self._dimensions = dimensions

    @property
    def name(self) -> str:
        """The model and its dimensions; the same at every address."""
        return f"{PREFIX}{self._model}:{self.dimensions}"

    @property
    def dimensions(self) -> int:
        if self._dimensions is None:
            self._dimensions = len(self._ask([PROBE])[0])
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        parts = [self._ask(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        if not parts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return normalised(np.concatenate(parts))

    def _ask(self, texts: Sequence[str]) -> Vectors:
        body = {"model": self._model, "input": [_sendable(text) for text in texts], "encoding_format": "float"}
        return self._checked(self._answer(body, ONE_WITHIN if len(texts) == 1 else BATCH_WITHIN), len(texts))

    def _answer(self, body: dict[str, Any], seconds: float) -> Any:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            status, raw = post_json(self._url, body, headers, seconds=seconds, max_bytes=LONGEST_ANSWER + 1)
        except RequestFailed as failed:
            raise self._off(f"does not answer ({failed})") from None
        if status in (400, 413, 422):
            raise TextRefused(self._without_key(f"the endpoint refuses it (HTTP {status}): {_excerpt(raw)}"))
        if status in (401, 403):
            raise self._off(f"refuses the key (HTTP {status})", "Check CLAUDEOPS_EMBEDDINGS_KEY.")
        if status == 404:
            raise self._off(
                f"knows neither this address nor this model (HTTP 404): {_excerpt(raw)}",
                "Check CLAUDEOPS_EMBEDDINGS_URL and CLAUDEOPS_EMBEDDINGS_MODEL.",
            )
        if 300 <= status < 400:
            raise self._off(f"redirects (HTTP {status}), which is not followed", "Set its own address.")
        if status != 200:
            raise self._off(f"answers with HTTP {status}: {_excerpt(raw)}")
        if len(raw) > LONGEST_ANSWER:
            raise self._off("answers with more than 64 MB")
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            raise self._off(f"answers with something else than JSON: {_excerpt(raw)}") from None

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
        vectors /= np.abs(vectors).max(axis=1, keepdims=True)  # avoids overflow when they are squared
        return vectors.astype(np.float32)

    def _off(self, what: str, fix: str = "") -> SemanticOff:
        return SemanticOff(self._without_key(f"the endpoint {self._url} {what}"), fix)

    def _without_key(self, text: str) -> str:
        """Remove the key, which an endpoint may quote in its answer."""
        return text.replace(self._key, "…") if self._key else text


def _sendable(text: str) -> str:
    """Return what is sent of a text, with credentials masked; a space for an empty one, which endpoints refuse."""
    return mask(text[:MOST_SEARCHED])[:MOST_TEXT].encode("utf-8", "replace").decode("utf-8") or " "


def _excerpt(raw: bytes) -> str:
    text = " ".join(raw[:2000].decode("utf-8", "replace").split())
    return text[:200] or "nothing"
