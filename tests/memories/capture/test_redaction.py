"""What leaves the house holds no credential that the gate would find."""

from __future__ import annotations

import pytest

from memories.capture.gate import credential
from memories.capture.redaction import without_credentials
from memories.embedding.endpoint import EndpointEmbedder
from tests.models_http import embeddings, serving

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\nx9Zt\n-----END RSA PRIVATE KEY-----"
RANDOM = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYzZ"


@pytest.mark.parametrize(
    ("text", "secret", "left"),
    [
        ("AWS with AKIAIOSFODNN7EXAMPLE in it", "AKIA", "AWS with (withheld: an AWS key) in it"),
        ("log in as postgres://ops:hunter22@db/x now", "hunter22", "log in as (withheld: a password in a URL) now"),
        ("the password=hunter22 of grafana", "hunter22", "the (withheld: a password or key with its value) of grafana"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl fails", "c2lnbm", "(withheld: a JSON web token) fails"),
        (f"before {KEY} after", "MIIE", "before (withheld: a private key) after"),
        ("cut off: -----BEGIN PRIVATE KEY----- MIIEpAIB x9Zt", "x9Zt", "cut off: (withheld: a private key)"),
        (f"salt: {RANDOM}", RANDOM, "(withheld: a long random value)"),
        (f"password=abcdef12 and salt: {RANDOM}", RANDOM, None),
        ("pass\u200bword=hunter22", "hunter22", "(withheld: a password or key with its value)"),
    ],
)
def test_a_credential_is_gone_whole_and_its_kind_stands_in_its_place(text, secret, left):
    found = without_credentials(text)
    assert secret not in found
    assert credential(found) == ""
    assert left is None or found == left


@pytest.mark.parametrize("text", ["", "  Two  spaces\nand a break ", "the token: expires daily", "café ﬁ 日本"])
def test_a_text_without_one_stays_as_it_is(text):
    assert without_credentials(text) is text


def test_an_endpoint_gets_no_credential_and_other_texts_as_they_are():
    with serving(embeddings) as served:
        EndpointEmbedder(served.url, "one", dimensions=64).embed(["the password=hunter22 of grafana", "Takes 60s"])
    assert served.asked[0]["input"] == ["the (withheld: a password or key with its value) of grafana", "Takes 60s"]


def test_a_credential_that_stands_where_a_text_is_cut_is_not_sent_in_half():
    with serving(embeddings) as served:
        EndpointEmbedder(served.url, "one", dimensions=64).embed(["word " * 1_598 + "AKIAIOSFODNN7EXAMPLE"])
    assert "AKIA" not in served.asked[0]["input"][0]
