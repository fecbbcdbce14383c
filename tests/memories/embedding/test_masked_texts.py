"""No text that is sent to an embeddings endpoint holds a credential."""

from __future__ import annotations

from memories.embedding.endpoint import EndpointEmbedder
from tests.support.models_http import embeddings, serving

KEY = "AKIA" + "IOSFODNN7EXAMPLE"


def test_an_endpoint_gets_no_credential_and_other_texts_as_they_are():
    with serving(embeddings) as served:
        EndpointEmbedder(served.url, "one", dimensions=64).embed(["the password=hunter22 of grafana", "Takes 60s"])
    assert served.asked[0]["input"] == ["the password=[secret: password] of grafana", "Takes 60s"]


def test_a_credential_that_stands_where_a_text_is_cut_is_not_sent_in_half():
    with serving(embeddings) as served:
        EndpointEmbedder(served.url, "one", dimensions=64).embed(["word " * 1_598 + KEY])
    assert "AKIA" not in served.asked[0]["input"][0]
