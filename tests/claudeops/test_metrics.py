"""`/metrics`: behind its token, in a form that Prometheus reads, with bounded labels and no text of anybody."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from claudeops.features import metrics
from memories.models import ModelCall, ProposalState
from memories.telemetry import record
from sessions_app.models import Status, WorkerHeartbeat
from tests.support.factories import EventFactory, MemoryFactory, ProposalFactory, SessionFactory

pytestmark = pytest.mark.django_db

TOKEN = "a-token-of-this-test"


@pytest.fixture(autouse=True)
def token(settings):
    settings.CLAUDEOPS_METRICS_TOKEN = TOKEN


def scrape(client, token: str = TOKEN):
    return client.get("/metrics", headers={"authorization": f"Bearer {token}"})


def samples(client) -> dict[tuple[str, ...], float]:
    """The values by name and labels' values."""
    text = scrape(client).content.decode()
    return {
        (sample.name.removeprefix("claudeops_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.parametrize("given", ["", "wrong", TOKEN[:-1], f"{TOKEN}x", "\xfc"])
def test_without_its_token_nothing_is_said(client, given):
    response = scrape(client, given)
    assert response.status_code == 403
    assert b"claudeops_" not in response.content


def test_another_scheme_or_a_sign_in_does_not_open_it(admin_client):
    assert admin_client.get("/metrics").status_code == 403
    assert admin_client.get("/metrics", headers={"authorization": TOKEN}).status_code == 403


def test_without_the_setting_it_is_not_there(client, settings):
    settings.CLAUDEOPS_METRICS_TOKEN = ""
    assert scrape(client, "").status_code == 404


def test_an_empty_house_has_numbers(client):
    found = samples(client)
    assert found[("memories", "active")] == found[("alarms", "now")] == 0


def test_the_numbers_are_those_of_the_rows(client):
    now = timezone.now()
    SessionFactory(status=Status.RUNNING)
    SessionFactory.create_batch(2, status=Status.QUEUED)
    SessionFactory.create_batch(3, status=Status.FAILED, ended_at=now)
    MemoryFactory.create_batch(2)
    MemoryFactory(active=False)
    ProposalFactory(state=ProposalState.REJECTED)
    WorkerHeartbeat.objects.create(host="a", cluster="default", pid=1, beat_at=now)
    ModelCall.objects.create(role="judge", backend="http", model="m", outcome="answered", tokens_in=5, tokens_out=7)
    record("memory.gate.completed", component="observe", source="transcript", level="warning")
    found = samples(client)
    assert found[("sessions_open", "running")] == 1
    assert found[("sessions_open", "queued")] == 2
    assert found[("sessions_ended_24h", "failed")] == 3
    assert (found[("memories", "active")], found[("memories", "inactive")]) == (2, 1)
    assert found[("proposals", "rejected")] == 1
    assert found[("workers_alive", "default")] == 1
    assert found[("model_calls_today", "answered", "judge")] == 1
    assert found[("model_tokens_today", "judge", "output")] == 7
    assert found[("stage_records_24h", "observe", "warning")] == 1


def test_neither_labels_nor_queries_grow_with_the_rows(client):
    def scraped() -> tuple[int, int]:
        SessionFactory.create_batch(5, status=Status.FAILED, ended_at=timezone.now())
        EventFactory.create_batch(5)
        MemoryFactory.create_batch(5)
        with CaptureQueriesContext(connection) as captured:
            found = samples(client)
        return len(captured), len(found)

    assert scraped() == scraped()


def test_no_text_is_in_it(client):
    MemoryFactory(observation="The copper kettle stands in the cellar")
    SessionFactory(status=Status.FAILED, status_reason="copper", ended_at=timezone.now())
    assert "copper" not in metrics.render(timezone.now()).decode()
