"""One HTTP request: whom it trusts, what it follows, and that it ends on time whatever the server does."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from claudeops.lib.http import RequestFailed, post_json
from tests.support import tls
from tests.support.models_http import serving

LONG = 30.0
"""Seconds: far more than these requests take."""


@pytest.fixture
def certificate(tmp_path):
    return tls.self_signed(tmp_path)


@pytest.fixture
def trusted(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return certificate


def echo(body):
    return {"said": body}


def post(url, seconds=LONG, max_bytes=1000):
    return post_json(url, {"text": "hello"}, {"Authorization": "Bearer a-key"}, seconds=seconds, max_bytes=max_bytes)


def test_json_is_sent_and_the_status_and_the_body_come_back():
    with serving(echo) as served:
        assert post(served.url) == (200, b'{"said": {"text": "hello"}}')
        assert served.headers[0]["Authorization"] == "Bearer a-key"
        served.status = 500
        assert post(served.url) == (500, b"{}")


def test_no_more_is_read_than_asked_for():
    with serving(echo) as served:
        served.raw = b"x" * 1_000_000
        assert post(served.url, max_bytes=10) == (200, b"x" * 10)


def test_a_redirect_is_not_followed():
    with serving(echo) as elsewhere, serving(echo) as served:
        served.status, served.location = 307, elsewhere.url
        assert post(served.url)[0] == 307
    assert elsewhere.asked == []


def test_half_a_character_is_no_reason_to_fail():
    with serving(echo) as served:
        assert post_json(served.url, {"text": "half \ud83d"}, {}, seconds=LONG, max_bytes=1000)[0] == 200


def test_several_threads_may_ask_at_once():
    found = []
    with serving(echo) as served:
        threads = [threading.Thread(target=lambda: found.append(post(served.url)[0])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
    assert found == [200] * 8


class TestTls:
    def test_a_server_whose_certificate_nobody_signed_is_sent_nothing_and_the_reason_says_what_to_do(self, certificate):
        with serving(echo, tls.context(certificate)) as served, pytest.raises(RequestFailed) as failed:
            post(served.url)
        assert str(failed.value) == (
            "its certificate is not trusted: self-signed certificate; SSL_CERT_FILE may name who signed it"
        )
        assert (served.asked, served.headers) == ([], [])

    def test_an_authority_that_the_usual_variable_names_is_trusted(self, trusted):
        with serving(echo, tls.context(trusted)) as served:
            assert post(served.url)[0] == 200

    def test_a_certificate_of_another_name_is_refused(self, trusted):
        with serving(echo, tls.context(trusted)) as served, pytest.raises(RequestFailed, match="certificate is not"):
            post(served.url.replace("127.0.0.1", "localhost"))
        assert served.asked == []

    def test_a_server_without_tls_is_named_as_such(self):
        with serving(echo) as served, pytest.raises(RequestFailed, match="TLS failed"):
            post(served.url.replace("http:", "https:"))

    def test_a_handshake_that_drips_ends_on_time_and_the_connection_with_it(self):
        with tls.dripping() as (url, left):
            with pytest.raises(RequestFailed, match=r"no answer within 0.3 s") as failed:
                post(url, 0.3)
            assert left.wait(LONG)
        assert failed.value.late


class TestDeadline:
    @pytest.mark.parametrize("way", ["headers", "body", "hush"])
    def test_a_server_that_drips_or_is_silent_does_not_hold_the_caller(self, way):
        begun = time.monotonic()
        with serving(echo) as served:
            served.way = way
            with pytest.raises(RequestFailed, match=r"no answer within 0.3 s") as failed:
                post(served.url, 0.3)
            assert served.left.wait(LONG)
        assert failed.value.late
        assert time.monotonic() - begun < LONG

    def test_nor_does_a_name_lookup_that_hangs(self, monkeypatch):
        go_on = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **more: go_on.wait(LONG) and [])
        begun = time.monotonic()
        with pytest.raises(RequestFailed) as failed:
            post("http://a-host.example/", 0.3)
        assert time.monotonic() - begun < LONG / 2
        assert failed.value.late
        go_on.set()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:1/", "Connection refused"),
        ("ftp://host/", "UnsupportedProtocol"),
        ("no address", "UnsupportedProtocol"),
        ("http://host:port/", "InvalidURL"),
    ],
)
def test_an_address_that_does_not_work_fails_with_its_reason(url, reason):
    with pytest.raises(RequestFailed) as failed:
        post(url)
    assert str(failed.value) == reason
    assert not failed.value.late


def test_a_server_that_hangs_up_is_a_failure():
    with serving(echo) as served:
        served.way = "close"
        with pytest.raises(RequestFailed, match="RemoteProtocolError"):
            post(served.url)
