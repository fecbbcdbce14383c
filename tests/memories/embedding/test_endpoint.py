"""An embeddings endpoint: its requests, and the answers that are refused."""

from __future__ import annotations

import json
import logging
import socket

import numpy as np
import pytest

from memories.embedding import endpoint as asked_of
from memories.embedding.base import SemanticOff, TextRefused
from memories.embedding.endpoint import BATCH, EndpointEmbedder, embeddings_url
from tests.memories.embedding.servers import Endpoint, vector_of
from tests.support import tls
from tests.support.models_http import embeddings, serving

KEY = "sk-a-key-that-must-not-be-seen"


@pytest.fixture
def server():
    with Endpoint().running() as running:
        yield running


def embedder(server: Endpoint, dimensions: int | None = 4) -> EndpointEmbedder:
    return EndpointEmbedder(server.url, "one", KEY, dimensions)


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://host:11434", "http://host:11434/v1/embeddings"),
        ("https://host/", "https://host/v1/embeddings"),
        ("https://host/v1/", "https://host/v1/embeddings"),
        ("https://host/api/v3/embeddings?version=2", "https://host/api/v3/embeddings?version=2"),
    ],
)
def test_the_address_may_be_given_as_a_host_or_as_a_whole(given, address):
    assert embeddings_url(given) == address


def test_it_is_asked_as_such_endpoints_are_and_answers_by_the_index(server):
    vectors = embedder(server).embed(["first", "second"])
    ((path, headers, body),) = server.requests
    assert path == "/v1/embeddings"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body == {"model": "one", "input": ["first", "second"], "encoding_format": "float"}
    for text, vector in zip(["first", "second"], vectors, strict=True):
        expected = np.array(vector_of(text, 4, "one"))
        assert np.allclose(vector, expected / np.linalg.norm(expected), atol=1e-6)
    assert vectors.dtype == np.float32


def test_without_a_key_none_is_sent(server):
    EndpointEmbedder(server.url, "one", "", 4).embed(["text"])
    assert "Authorization" not in server.requests[0][1]


def test_many_texts_go_in_several_requests_and_come_back_in_order(server):
    texts = [f"text {number}" for number in range(2 * BATCH + 3)]
    vectors = embedder(server).embed(texts)
    assert [len(body["input"]) for _, _, body in server.requests] == [BATCH, BATCH, 3]
    assert server.texts == texts
    assert vectors.shape == (len(texts), 4)


def test_its_name_says_how_many_dimensions_it_gives_and_asks_once_for_them(server):
    unasked = embedder(server, None)
    assert server.requests == []
    assert unasked.name == "endpoint:one:4"
    assert unasked.dimensions == 4
    assert len(server.requests) == 1


def test_nothing_is_asked_for_nothing(server):
    assert embedder(server).embed([]).shape == (0, 4)
    assert server.requests == []


GOOD = [0.5, 0.25, 0.0, 1.0]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"data": [{"index": 0, "embedding": [1.0, 2.0, 3.0]}]}, "answers with 3 dimensions; 4 were expected"),
        ({"data": [{"index": 0, "embedding": [*GOOD[:3], float("nan")]}]}, "holds NaN or infinity"),
        ({"data": [{"index": 0, "embedding": [*GOOD[:3], float("-inf")]}]}, "holds NaN or infinity"),
        ({"data": [{"index": 0, "embedding": [0.0] * 4}]}, "nothing but zeros"),
        ({"data": [{"index": 0, "embedding": [*GOOD[:3], "1"]}]}, "no list of numbers"),
        ({"data": [{"index": 0, "embedding": [*GOOD[:3], True]}]}, "no list of numbers"),
        ({"data": [{"index": 0, "embedding": "AAAA"}]}, "no list of numbers"),
        ({"data": [{"index": 0}]}, "no list of numbers"),
        ({"data": []}, "answers 1 texts with 0 vectors"),
        ({"data": [{"index": 0, "embedding": GOOD}] * 2}, "answers 1 texts with 2 vectors"),
        ({"data": [{"index": 1, "embedding": GOOD}]}, "belong to no text"),
        ({"data": [{"index": -1, "embedding": GOOD}]}, "belong to no text"),
        ({"data": ["what"]}, "belong to no text"),
        ({"data": "what"}, "without a list of vectors"),
        (["what"], "without a list of vectors"),
        (b"<html>Welcome</html>", "something else than JSON: <html>Welcome</html>"),
        (b"\xff\xfe", "something else than JSON"),
    ],
)
def test_an_answer_that_is_not_right_is_refused(server, answer, said):
    server.answer = lambda texts, model: (200, answer)
    with pytest.raises(SemanticOff) as off:
        embedder(server).embed(["text"])
    assert said in off.value.reason
    assert server.url in off.value.reason


def test_two_vectors_for_one_text_are_refused(server):
    entries = [{"index": 0, "embedding": GOOD}, {"index": 0, "embedding": GOOD}]
    server.answer = lambda texts, model: (200, {"data": entries})
    with pytest.raises(SemanticOff, match="belong to no text"):
        embedder(server).embed(["one", "two"])


def test_a_vector_of_huge_numbers_is_brought_to_length_one(server):
    server.answer = lambda texts, model: (200, {"data": [{"index": 0, "embedding": [1e200, 0.0, -1e200, 0.0]}]})
    (vector,) = embedder(server).embed(["text"])
    assert np.allclose(vector, [0.5**0.5, 0, -(0.5**0.5), 0])


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "refuses the key (HTTP 401)"),
        (403, "refuses the key (HTTP 403)"),
        (404, "knows neither this address nor this model (HTTP 404): "),
        (302, "redirects (HTTP 302), which is not followed"),
        (429, "answers with HTTP 429: "),
        (500, "answers with HTTP 500: "),
    ],
)
def test_what_is_the_endpoints_fault_turns_semantic_search_off(server, status, said):
    server.answer = lambda texts, model: (status, {"error": {"message": "no such thing"}})
    with pytest.raises(SemanticOff) as off:
        embedder(server).embed(["text"])
    assert said in off.value.reason
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_is_the_texts_fault_is_said_of_the_text(server, status):
    server.answer = lambda texts, model: (status, {"error": "too long"})
    with pytest.raises(TextRefused, match=f"HTTP {status}.*too long"):
        embedder(server).embed(["text"])


@pytest.mark.parametrize("status", [400, 500, 200])
def test_the_key_is_in_no_message_and_no_log(server, status, caplog):
    caplog.set_level(logging.DEBUG)
    server.answer = lambda texts, model: (status, json.dumps({"you sent": KEY}).encode() + b"!")
    with pytest.raises((SemanticOff, TextRefused)) as raised:
        embedder(server).embed(["text"])
    assert "you sent" in str(raised.value)
    shown = [str(raised.value), repr(raised.value), raised.value.fix, caplog.text, str(vars(raised.value))]
    assert KEY not in "".join(shown)


def test_one_that_is_not_there_does_not_answer():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # not listening
        with pytest.raises(SemanticOff, match=r"does not answer \(Connection refused\)"):
            EndpointEmbedder(f"http://127.0.0.1:{taken.getsockname()[1]}", "one", "", 4).embed(["text"])


def test_one_that_is_silent_is_not_waited_for(server, monkeypatch):
    monkeypatch.setattr(asked_of, "ONE_WITHIN", 0.2)
    server.hold_from = 1
    with pytest.raises(SemanticOff, match=r"no answer within 0\.2 s"):
        embedder(server).embed(["text"])


def test_a_text_without_end_is_cut_and_an_empty_one_sent_as_a_space(server):
    embedder(server).embed(["x" * 100_000, "", "half \ud83d"])
    assert [len(text) for text in server.texts] == [asked_of.MOST_TEXT, 1, 6]


def test_one_that_drips_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(asked_of, "ONE_WITHIN", 0.3)
    with serving(embeddings) as served:
        served.way = "body"
        with pytest.raises(SemanticOff, match=r"does not answer \(no answer within 0.3 s\)"):
            EndpointEmbedder(served.url, "one").embed(["hello"])
        assert served.left.wait(30)


def test_a_certificate_that_nobody_signed_is_named(tmp_path):
    with serving(embeddings, tls.context(tls.self_signed(tmp_path))) as served:
        with pytest.raises(SemanticOff, match=r"does not answer \(its certificate is not trusted: .* SSL_CERT_FILE"):
            EndpointEmbedder(served.url, "one", KEY).embed(["hello"])
        assert served.asked == []
