"""Models behind TLS: whom they are taken for, and how long a handshake is waited for. Both clients."""

from __future__ import annotations

import pytest

from memories.chat import ChatModel, NoAnswer
from memories.embedding.base import SemanticOff
from memories.embedding.endpoint import EndpointEmbedder
from tests import tls
from tests.models_http import chat, embeddings, serving

LONG = 30.0
"""Seconds: far more than what is waited for here takes."""


@pytest.fixture
def certificate(tmp_path):
    return tls.self_signed(tmp_path)


@pytest.fixture
def trusted(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return certificate


def ask(url, seconds=LONG):
    return ChatModel(f"{url}/chat/completions", "small", "a-key", seconds).ask("Say it.", {"text": "hello"}, str)


def test_a_chat_model_whose_certificate_nobody_knows_is_told_nothing_and_the_reason_says_what_to_do(certificate):
    with serving(chat("hi"), tls.context(certificate)) as served, pytest.raises(NoAnswer) as refused:
        ask(served.url)
    assert str(refused.value) == (
        "no usable answer (its certificate is not trusted: self-signed certificate; "
        "SSL_CERT_FILE may name who signed it)"
    )
    assert (served.asked, served.headers) == ([], [])


def test_a_chat_model_whose_authority_is_named_by_the_usual_variable_is_asked(trusted):
    with serving(chat("hi"), tls.context(trusted)) as served:
        assert ask(served.url) == "hi"
    assert served.headers[0]["Authorization"] == "Bearer a-key"


def test_a_certificate_of_another_name_is_not_believed(trusted):
    with serving(chat("hi"), tls.context(trusted)) as served, pytest.raises(NoAnswer, match="certificate is not"):
        ask(served.url.replace("127.0.0.1", "localhost"))
    assert served.asked == []


def test_a_chat_model_that_speaks_no_tls_is_said_to(monkeypatch):
    with serving(chat("hi")) as served, pytest.raises(NoAnswer, match="TLS failed"):
        ask(served.url.replace("http:", "https:"))


def test_a_handshake_that_drips_ends_with_the_models_time():
    with tls.dripping() as (url, left):
        with pytest.raises(NoAnswer) as refused:
            ask(url, 0.3)
        assert left.wait(LONG)
    assert refused.value.late


def test_an_endpoint_whose_certificate_nobody_knows_is_told_nothing_and_the_reason_says_what_to_do(certificate):
    with serving(embeddings, tls.context(certificate)) as served, pytest.raises(SemanticOff) as refused:
        EndpointEmbedder(served.url, "one", "a-key").embed(["hello"])
    assert "does not answer (its certificate is not trusted: self-signed certificate; SSL_CERT_FILE" in str(
        refused.value
    )
    assert (served.asked, served.headers) == ([], [])


def test_an_endpoint_whose_authority_is_named_by_the_usual_variable_is_asked(trusted):
    with serving(embeddings, tls.context(trusted)) as served:
        assert EndpointEmbedder(served.url, "one", "a-key").embed(["hello"]).shape == (1, 64)


def test_a_handshake_of_an_endpoint_that_drips_ends_with_its_time(monkeypatch):
    monkeypatch.setattr("memories.embedding.endpoint.ONE_WITHIN", 0.3)
    with tls.dripping() as (url, left):
        with pytest.raises(SemanticOff, match=r"no answer within 0.3 s"):
            EndpointEmbedder(url, "one", "a-key").embed(["hello"])
        assert left.wait(LONG)


@pytest.mark.parametrize("way", ["headers", "body", "hush"])
def test_an_endpoint_that_drips_is_not_waited_for_beyond_its_time_and_is_hung_up_on(way, monkeypatch):
    monkeypatch.setattr("memories.embedding.endpoint.ONE_WITHIN", 0.3)
    with serving(embeddings) as served:
        served.way = way
        with pytest.raises(SemanticOff, match=r"no answer within 0.3 s"):
            EndpointEmbedder(served.url, "one").embed(["hello"])
        assert served.left.wait(LONG)
