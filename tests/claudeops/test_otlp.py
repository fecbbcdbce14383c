"""Export by OTLP to a collector on this machine, which decodes what it gets."""

from __future__ import annotations

import threading
from datetime import timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.utils import timezone
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from claudeops.features import otlp
from memories.models import CallOutcome, ModelCall, TelemetryCursor
from memories.telemetry import record
from sessions_app.models import Status
from tests.support.factories import AgentFactory, SessionFactory

pytestmark = pytest.mark.django_db

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Collector:
    """A collector: `answer` is the status it answers with."""

    def __init__(self) -> None:
        self.answer = 200
        self.spans: list = []
        self.metrics: dict[str, float] = {}
        mine = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if mine.answer == 200:
                    mine.take(self.path, body)
                self.send_response(mine.answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            request = ExportTraceServiceRequest.FromString(body)
            self.spans += [span for one in request.resource_spans for scope in one.scope_spans for span in scope.spans]
            return
        assert path == "/v1/metrics"
        for one in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for metric in one.scope_metrics[0].metrics:
                self.metrics[metric.name] = len(metric.gauge.data_points)

    def named(self, name: str):
        (span,) = (span for span in self.spans if span.name == name)
        return span, {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


@pytest.fixture
def collector(settings):
    found = Collector()
    settings.CLAUDEOPS_OTLP_ENDPOINT = found.address
    yield found
    found.server.shutdown()
    found.server.server_close()


def export() -> otlp.Exported:
    """Two runs: the first sees what is there, the second sends it."""
    otlp.export()
    return otlp.export()


def test_without_an_endpoint_nothing_happens(settings):
    record("memory.gate.completed", component="observe", source="transcript")
    assert otlp.export() == otlp.Exported()
    assert not TelemetryCursor.objects.exists()


def test_a_record_becomes_a_span_with_its_times_and_counts(collector):
    at = timezone.now()
    record("memory.gate.completed", component="observe", source="transcript", duration_ms=1500, at=at, key="k", allow=3)
    assert export().spans == 1
    span, attributes = collector.named("memory.gate.completed")
    assert span.end_time_unix_nano - span.start_time_unix_nano == 1_500_000_000
    assert abs(span.end_time_unix_nano / 1e9 - at.timestamp()) < 0.001
    assert attributes["claudeops.allow"] == 3
    assert attributes["claudeops.component"] == "observe"


def test_a_failure_is_an_error_with_its_kind(collector):
    record("memory.observe.failed", component="observe", source="transcript", success=False, error="Gone")
    export()
    span, attributes = collector.named("memory.observe.failed")
    assert (span.status.code, attributes["error.type"]) == (2, "Gone")


def test_what_was_sent_is_not_sent_again(collector):
    record("memory.gate.completed", component="observe", source="transcript")
    assert (export().spans, export().spans) == (1, 0)
    assert len(collector.spans) == 1


def test_a_batch_that_is_sent_twice_is_the_same_spans(collector):
    record("memory.gate.completed", component="observe", source="transcript")
    export()
    TelemetryCursor.objects.update(sent=0)  # it died between the answer of the collector and the cursor
    otlp.export()
    first, second = collector.spans
    assert (first.trace_id, first.span_id) == (second.trace_id, second.span_id)
    assert (len(first.trace_id), len(first.span_id)) == (16, 8)


def test_a_collector_that_is_away_loses_nothing(collector):
    collector.answer = 400
    record("memory.gate.completed", component="observe", source="transcript")
    assert export().problem
    assert collector.spans == []
    collector.answer = 200
    assert otlp.export().spans == 1


def test_several_batches_are_sent_in_one_run(collector, monkeypatch):
    monkeypatch.setattr(otlp, "BATCH", 3)
    for _ in range(8):
        record("memory.gate.completed", component="observe", source="transcript")
    assert export().spans == 8
    assert len({span.span_id for span in collector.spans}) == 8


def test_another_process_that_exports_is_left_alone(collector):
    record("memory.gate.completed", component="observe", source="transcript")
    otlp.export()
    TelemetryCursor.objects.update(claimed_until=timezone.now() + timedelta(minutes=1))
    assert otlp.export().spans == 0
    TelemetryCursor.objects.update(claimed_until=timezone.now() - timedelta(minutes=1))
    assert otlp.export().spans == 1


def test_a_call_of_a_model_is_a_chat_by_the_conventions(collector):
    fields = {"role": "judge", "backend": "claude", "model": "haiku", "model_used": "claude-haiku-9"}
    ended = {"outcome": CallOutcome.ANSWERED, "tokens_in": 12, "tokens_out": 7, "cost_usd": Decimal("0.5")}
    ModelCall.objects.create(**fields, **ended, duration_ms=900)
    ModelCall.objects.create(**fields)
    assert export().spans == 1, "the second has not ended"
    span, attributes = collector.named("chat haiku")
    assert span.kind == 3
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.provider.name"] == "anthropic"
    assert attributes["gen_ai.request.model"] == "haiku"
    assert attributes["gen_ai.response.model"] == "claude-haiku-9"
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (12, 7)
    ModelCall.objects.filter(outcome=CallOutcome.ASKED).update(asked_at=timezone.now() - timedelta(hours=1))
    assert otlp.export().spans == 1, "its process died"


def session_of(collector):
    now = timezone.now()
    session = SessionFactory(
        agent=AgentFactory(slug="watch"),
        status=Status.COMPLETED,
        started_at=now - timedelta(minutes=2),
        ended_at=now,
        prompt=f"Look at the copper kettle with {TOKEN}",
        summary="The kettle is well",
        usage={"input_tokens": 5, "output_tokens": 6},
    )
    record("memory.capture.completed", component="sessions", source="session", session=session.pk)
    export()
    return collector.named("invoke_agent watch")


def test_a_session_is_the_root_of_its_trace_and_its_content_stays_here(collector):
    span, attributes = session_of(collector)
    captured, _ = collector.named("memory.capture.completed")
    assert captured.trace_id == span.trace_id
    assert captured.parent_span_id == span.span_id
    assert attributes["gen_ai.agent.name"] == "watch"
    assert attributes["gen_ai.usage.input_tokens"] == 5
    assert "kettle" not in str(attributes)


def test_content_is_sent_masked_where_it_is_wanted(collector, settings):
    settings.CLAUDEOPS_OTLP_CONTENT = True
    _, attributes = session_of(collector)
    assert "copper kettle" in attributes["gen_ai.input.messages"]
    assert TOKEN not in str(attributes)
    assert "The kettle is well" in attributes["gen_ai.output.messages"]


def test_the_metrics_are_those_of_the_page(collector):
    export()
    assert collector.metrics["claudeops_memories"] == 4
