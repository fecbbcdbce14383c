"""Export telemetry records, calls of models, sessions and the metrics by OTLP, behind what was sent already.

A batch moves the cursor after the collector has taken it, so that each row is sent at least once; its ids are made of
the row, so that one that is sent twice is the same span. A collector that is away delays nothing: rows wait here for as
long as they are kept.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Max
from django.utils import timezone
from django.utils.crypto import salted_hmac

from claudeops import __version__
from claudeops.features.metrics import MetricsCollector
from claudeops.lib.lease import Lease
from claudeops.lib.secrets import mask
from memories.models import CallOutcome, ModelCall, TelemetryCursor, TelemetryRecord
from sessions_app.models import Session

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan

log = logging.getLogger(__name__)

BATCH = 500
MOST_BATCHES = 20
LEASE = Lease(timedelta(minutes=2))
"""A run takes at most MOST_BATCHES times TIMEOUT, and renews it for each batch."""
TIMEOUT = 10.0
"""Seconds of one request, its repeats included."""
OPEN_FOR = timedelta(minutes=15)
"""A call of a model that has not ended after this long never will: its process died."""
LONGEST = 20_000
"""Characters of a prompt or summary that are sent, where content is wanted."""
CAPTURED = "memory.capture.completed"
PROVIDERS = {"claude": "anthropic"}
"""The convention's name of a provider, by our backend; another backend has its own name."""


@dataclass(slots=True)
class Exported:
    """How many spans and metrics were taken. `problem` says why it ended before the last one, "" when it did not."""

    spans: int = 0
    metrics: int = 0
    problem: str = ""


def export(at: datetime | None = None) -> Exported:
    """Send what is new to CLAUDEOPS_OTLP_ENDPOINT. Nothing without it, and nothing while another process does."""
    at = at or timezone.now()
    report = Exported()
    if not settings.CLAUDEOPS_OTLP_ENDPOINT:
        return report
    for name, rows_of in (("records", _records), ("calls", _calls)):
        cursor, _ = TelemetryCursor.objects.get_or_create(name=name)
        if not report.problem and LEASE.take(TelemetryCursor.objects.filter(pk=cursor.pk), at):
            try:
                _send_all(cursor, rows_of, at, report)
            finally:
                TelemetryCursor.objects.filter(pk=cursor.pk).update(claimed_until=None)
            if name == "records" and not report.problem:
                _send_metrics(at, report)
    if report.problem:
        log.warning("telemetry was not exported: %s", report.problem)
    return report


Rows = Callable[[int, int, datetime], tuple[list["ReadableSpan"], int]]
"""From the rows behind an id up to another one, at most BATCH: their spans, and the id of the last (0: no row)."""


def _send_all(cursor: TelemetryCursor, rows_of: Rows, at: datetime, report: Exported) -> None:
    """Send the rows up to what the run before has seen: what commits late with a lower id is then there, too."""
    cursor.refresh_from_db()
    for _ in range(MOST_BATCHES):
        spans, last = rows_of(cursor.sent, cursor.seen, at)
        if not last:
            break
        if not _send(spans):
            report.problem = "the collector did not take it"
            return
        report.spans += len(spans)
        moved = TelemetryCursor.objects.filter(pk=cursor.pk, sent=cursor.sent)
        if not LEASE.renew(moved, timezone.now(), sent=last):
            return
        cursor.sent = last
    model = TelemetryRecord if cursor.name == "records" else ModelCall
    newest = model._default_manager.aggregate(newest=Max("pk"))["newest"] or 0
    TelemetryCursor.objects.filter(pk=cursor.pk, seen__lt=newest).update(seen=newest)


def _send(spans: Sequence[ReadableSpan]) -> bool:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    exporter = OTLPSpanExporter(endpoint=f"{settings.CLAUDEOPS_OTLP_ENDPOINT.rstrip('/')}/v1/traces", timeout=TIMEOUT)
    try:
        return not spans or exporter.export(spans) is SpanExportResult.SUCCESS
    finally:
        exporter.shutdown()


def _send_metrics(at: datetime, report: Exported) -> None:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import MetricExportResult

    data, number = _metrics(at)
    endpoint = f"{settings.CLAUDEOPS_OTLP_ENDPOINT.rstrip('/')}/v1/metrics"
    exporter = OTLPMetricExporter(endpoint=endpoint, timeout=TIMEOUT)
    try:
        if exporter.export(data) is MetricExportResult.SUCCESS:
            report.metrics += number
        else:
            report.problem = "the collector did not take the metrics"
    finally:
        exporter.shutdown()


# -- the rows as spans -------------------------------------------------------------------------------------------------


def _records(after: int, up_to: int, at: datetime) -> tuple[list[ReadableSpan], int]:
    rows = list(TelemetryRecord.objects.filter(pk__gt=after, pk__lte=up_to).order_by("pk")[:BATCH])
    numbers = [row.metadata.get("session") for row in rows if row.action == CAPTURED]
    sessions = Session.objects.select_related("agent").in_bulk([one for one in numbers if isinstance(one, int)])
    spans = []
    for row in rows:
        session = row.metadata.get("session")
        if row.action == CAPTURED and session in sessions:
            spans.append(session_span(sessions[session]))
        spans.append(record_span(row))
    return spans, rows[-1].pk if rows else 0


def _calls(after: int, up_to: int, at: datetime) -> tuple[list[ReadableSpan], int]:
    rows = ModelCall.objects.filter(pk__gt=after, pk__lte=up_to).order_by("pk")
    calls = []
    for row in rows[:BATCH]:
        if row.outcome == CallOutcome.ASKED and row.asked_at > at - OPEN_FOR:
            break  # it is sent when it has ended, and those behind it with it
        calls.append(row)
    return [call_span(row) for row in calls], calls[-1].pk if calls else 0


def record_span(row: TelemetryRecord) -> ReadableSpan:
    """Make the span of a record, in the trace of its session or transcript when it names one."""
    attributes: dict[str, Any] = {
        "claudeops.component": row.component,
        "claudeops.source": row.source,
        "claudeops.level": row.level,
    }
    attributes |= {f"claudeops.{name}"[:100]: value for name, value in row.metadata.items() if _is_plain(value)}
    about = next((f"{name} {row.metadata[name]}" for name in ("session", "transcript") if row.metadata.get(name)), "")
    begun = row.at - timedelta(milliseconds=row.duration_ms or 0)
    failed = "" if row.success else str(row.metadata.get("error") or "failed")
    return _span(row.action, about or f"record {row.pk}", f"record {row.pk}", begun, row.at, attributes, failed)


def call_span(row: ModelCall) -> ReadableSpan:
    """Make the span of a call of a model, by the conventions for GenAI."""
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDERS.get(row.backend, row.backend),
        "gen_ai.request.model": row.model,
        "claudeops.role": row.role,
        "claudeops.outcome": row.outcome,
    }
    if row.model_used:
        attributes["gen_ai.response.model"] = row.model_used
    attributes |= _usage(row.tokens_in, row.tokens_out)
    if row.cost_usd is not None:
        attributes["claudeops.cost_usd"] = float(row.cost_usd)
    failed = "" if row.outcome == CallOutcome.ANSWERED else row.outcome
    end = row.asked_at + timedelta(milliseconds=row.duration_ms or 0)
    name = f"chat {row.model}"
    return _span(name, f"call {row.pk}", f"call {row.pk}", row.asked_at, end, attributes, failed, is_client=True)


def session_span(session: Session) -> ReadableSpan:
    """Make the span of a session, the root of its trace. Its prompt and summary only with CLAUDEOPS_OTLP_CONTENT."""
    agent = session.agent.slug if session.agent else ""
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": session.model,
        "gen_ai.conversation.id": session.cli_session_id or str(session.pk),
        "claudeops.session": session.pk,
        "claudeops.status": session.status,
        "claudeops.trigger": session.trigger,
        "claudeops.turns": session.num_turns,
        "claudeops.cost_usd": float(session.cost_usd),
    }
    if agent:
        attributes["gen_ai.agent.name"] = agent
    usage = session.usage if isinstance(session.usage, dict) else {}
    attributes |= _usage(usage.get("input_tokens"), usage.get("output_tokens"))
    if settings.CLAUDEOPS_OTLP_CONTENT:
        attributes["gen_ai.input.messages"] = _message("user", session.prompt)
        attributes["gen_ai.output.messages"] = _message("assistant", session.summary)
    end = session.ended_at or session.queued_at
    failed = "" if session.status in ("completed", "escalated", "stopped") else session.status
    about = f"session {session.pk}"
    name = f"invoke_agent {agent}".strip()
    return _span(name, about, "", session.started_at or end, end, attributes, failed, is_client=True)


def _usage(read: object, output: object) -> dict[str, int]:
    names = {"gen_ai.usage.input_tokens": read, "gen_ai.usage.output_tokens": output}
    return {name: value for name, value in names.items() if isinstance(value, int)}


def _message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": mask(text)[:LONGEST]}]}])


def _is_plain(value: object) -> bool:
    return isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= 200)


def _span(
    name: str,
    about: str,
    own: str,
    begun: datetime,
    end: datetime,
    attributes: dict[str, Any],
    failed: str,
    *,
    is_client: bool = False,
) -> ReadableSpan:
    """Make a span in the trace `about` something; `own` is what it is of, "" for the root of that trace."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
    from opentelemetry.trace.status import Status, StatusCode

    if failed:
        attributes["error.type"] = failed
    trace, root = _number(f"trace {about}", 16), _number(f"root {about}", 8)
    flags = TraceFlags(TraceFlags.SAMPLED)
    mine = SpanContext(trace, _number(f"span {own}", 8) if own else root, is_remote=False, trace_flags=flags)
    parent = SpanContext(trace, root, is_remote=False, trace_flags=flags)
    return ReadableSpan(
        name=name,
        context=mine,
        parent=parent if own and about.startswith("session ") else None,
        resource=_resource(),
        attributes=attributes,
        kind=SpanKind.CLIENT if is_client else SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, failed) if failed else Status(StatusCode.UNSET),
        start_time=_nanoseconds(begun),
        end_time=_nanoseconds(max(begun, end)),
    )


def _number(text: str, size: int) -> int:
    """Return a number of `size` bytes that belongs to this installation and text."""
    return int.from_bytes(salted_hmac("claudeops.otlp", text, algorithm="sha256").digest()[:size], "big") or 1


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1_000


def _resource() -> Resource:
    from opentelemetry.sdk.resources import Resource

    return Resource({"service.name": "claudeops", "service.version": __version__})


def _metrics(at: datetime) -> tuple[MetricsData, int]:
    """Return the gauges of `/metrics`, and how many there are."""
    from opentelemetry.sdk.metrics.export import (
        Gauge,
        Metric,
        MetricsData,
        NumberDataPoint,
        ResourceMetrics,
        ScopeMetrics,
    )
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    now = _nanoseconds(at)
    gauges = [
        Metric(
            family.name,
            family.documentation,
            "",
            Gauge([NumberDataPoint(dict(one.labels), now, now, one.value) for one in family.samples]),
        )
        for family in MetricsCollector(at).collect()
    ]
    scope = ScopeMetrics(InstrumentationScope("claudeops", __version__), gauges, "")
    return MetricsData([ResourceMetrics(_resource(), [scope], "")]), len(gauges)
