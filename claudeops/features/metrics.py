"""`/metrics`: the state of the house for Prometheus, behind a token. Numbers with a bounded set of labels, no text."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.db.models import Count, Max, Q, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden, HttpResponseNotFound
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from claudeops.features.backups import folder as backups
from claudeops.features.overview import silence
from memories.curate.status import stages
from memories.llm import status as models
from memories.llm.calls import midnight
from memories.models import (
    MemoryFile,
    ModelCall,
    PartState,
    PendingEmbedding,
    Proposal,
    TelemetryCount,
    TranscriptPart,
)
from memories.queries import numbers as of_memories
from memories.queries.filters import ACTIVE, INACTIVE
from sessions_app.cooldowns import limits
from sessions_app.models import SessionCount, WorkerHeartbeat
from sessions_app.queries import numbers as of_sessions
from sessions_app.queue import tasks
from sessions_app.queue.dispatch import HOST_ALIVE, spent_on

KEY, SECONDS = "prometheus-metrics", 10
"""Cache key, and for how long (seconds) all scrapes get the same text."""
DAY = timedelta(days=1)
BEARER = "Bearer "


@require_safe
@never_cache
@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer the metrics to a caller with CLAUDEOPS_METRICS_TOKEN; without such a setting there is no such page."""
    token: str = settings.CLAUDEOPS_METRICS_TOKEN
    if not token:
        return HttpResponseNotFound("Metrics are off: CLAUDEOPS_METRICS_TOKEN is not set.\n", content_type="text/plain")
    header = request.headers.get("Authorization", "")
    is_allowed = header.startswith(BEARER) and secrets.compare_digest(header[len(BEARER) :].encode(), token.encode())
    if not is_allowed:
        return HttpResponseForbidden("The token is missing or wrong.\n", content_type="text/plain")
    text: bytes | None = cache.get(KEY)
    if text is None:
        text = render(timezone.now())
        cache.set(KEY, text, SECONDS)
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def render(at: datetime) -> bytes:
    """Return the text of the metrics at `at` (UTC), by a number of queries that does not grow."""
    registry = CollectorRegistry()
    registry.register(MetricsCollector(at))
    return generate_latest(registry)


class MetricsCollector(Collector):
    """The metrics at one moment."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def describe(self) -> list[GaugeMetricFamily]:
        return []  # else registering would read everything once more

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from _sessions(self.at)
        yield from _queues(self.at)
        yield from _memories()
        yield from _models(self.at)
        yield from _stages(self.at)
        yield from _alarms(self.at)


def _gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"claudeops_{name}", text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def _single(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"claudeops_{name}", text, value=value)


def _sessions(at: datetime) -> Iterator[GaugeMetricFamily]:
    open_ = {"running": of_sessions.running().value, "queued": of_sessions.queued().value}
    yield _gauge("sessions_open", "Sessions that are queued or run now (at most 10,001 of each).", "status", open_)
    ended = SessionCount.objects.filter(hour__gt=at - DAY).order_by().values_list("name").annotate(Sum("number"))
    yield _gauge(
        "sessions_ended_24h", "Sessions that ended in the last 24 hours, by whole hours.", "status", dict(ended)
    )
    yield _single("sessions_cost_today_usd", "What sessions cost since 00:00 UTC.", float(spent_on(at)))
    limit = settings.CLAUDEOPS_DAILY_BUDGET_USD
    yield _single("sessions_budget_usd", "The budget of a day of all sessions; 0 is no limit.", limit)
    yield _single(
        "cooldowns_in_force", "Services that may not be restarted or redeployed now.", len(limits.refused(at=at))
    )


def _queues(at: datetime) -> Iterator[GaugeMetricFamily]:
    depth: dict[str, float] = {}
    oldest: dict[str, float] = {}
    for one in tasks.depths(at):
        name = tasks.queue_of(one.queue)
        depth[name] = depth.get(name, 0) + one.waiting
        oldest[name] = max(oldest.get(name, 0), (at - one.since).total_seconds())
    yield _gauge("queue_tasks", "Tasks that wait in a queue.", "queue", depth)
    yield _gauge("queue_oldest_seconds", "For how long the oldest task of a queue has waited.", "queue", oldest)
    alive = WorkerHeartbeat.objects.filter(beat_at__gte=at - HOST_ALIVE).order_by().values_list("cluster")
    yield _gauge(
        "workers_alive", "Workers with a heartbeat in the last minute.", "queue", dict(alive.annotate(Count("pk")))
    )


def _memories() -> Iterator[GaugeMetricFamily]:
    numbers = {
        "active": of_memories.memories(ACTIVE).value,
        "inactive": of_memories.memories(INACTIVE).value,
        "held": of_memories.held().value,
        "unconfirmed": of_memories.unconfirmed().value,
    }
    yield _gauge("memories", "Memories by state (at most 10,001 of each).", "state", numbers)
    waiting = PendingEmbedding.objects.order_by()[:10_001].count()
    yield _single("embeddings_waiting", "Memories that wait for a vector (at most 10,001).", waiting)
    states = Proposal.objects.order_by().values_list("state").annotate(Count("pk"))
    yield _gauge("proposals", "Proposals for MEMORY.md by state.", "state", dict(states))
    files = MemoryFile.objects.aggregate(all=Count("pk"), entries=Sum("entries"))
    yield _single("memory_files", "MEMORY.md files.", files["all"])
    yield _single("memory_file_entries", "Entries of all MEMORY.md files.", files["entries"] or 0)
    broken = MemoryFile.objects.exclude(problem="").count()
    yield _single("memory_files_broken", "MEMORY.md files that cannot be used.", broken)
    parts = {
        state: TranscriptPart.objects.filter(state=state).order_by()[:10_001].count()
        for state in (PartState.WAITING.value, PartState.FAILED.value, PartState.UNREADABLE.value)
    }
    yield _gauge(
        "transcript_parts",
        "Parts of transcripts that wait, failed or have an unreadable answer (at most 10,001).",
        "state",
        parts,
    )


def _models(at: datetime) -> Iterator[GaugeMetricFamily]:
    states = models.states(at, waits={})
    names = [(one.chosen.role.name, one) for one in states]
    yield _gauge(
        "model_cost_today_usd", "What a role's model cost since 00:00 UTC.", "role", {n: s.spent.usd for n, s in names}
    )
    yield _gauge(
        "model_budget_usd", "The budget of a role's day; 0 is no limit.", "role", {n: s.spent.budget for n, s in names}
    )
    yield _gauge(
        "model_ready", "Whether a role's model would be asked now.", "role", {n: float(not s.trouble) for n, s in names}
    )
    calls = GaugeMetricFamily("claudeops_model_calls_today", "Calls since 00:00 UTC.", labels=["role", "outcome"])
    tokens = GaugeMetricFamily("claudeops_model_tokens_today", "Tokens since 00:00 UTC.", labels=["role", "type"])
    rows = ModelCall.objects.filter(asked_at__gte=midnight(at)).order_by()
    for role, outcome, number in rows.values_list("role", "outcome").annotate(Count("pk")):
        calls.add_metric([role, outcome], number)
    read, output_sum = Sum(Coalesce("tokens_in", 0)), Sum(Coalesce("tokens_out", 0))
    for role, into, out in rows.values_list("role").annotate(read=read, written=output_sum):
        tokens.add_metric([role, "input"], into)
        tokens.add_metric([role, "output"], out)
    yield from (calls, tokens)


def _stages(at: datetime) -> Iterator[GaugeMetricFamily]:
    records = GaugeMetricFamily(
        "claudeops_stage_records_24h",
        "Runs of stages in the last 24 hours, by whole hours.",
        labels=["component", "level"],
    )
    last: dict[str, float] = {}
    rows = TelemetryCount.objects.filter(hour__gt=at - DAY).order_by().values_list("name")
    for name, number, latest in rows.annotate(sum=Sum("number"), latest=Max("hour", filter=Q(number__gt=0))):
        component, _, level = name.rpartition(":")
        records.add_metric([component, level], number)
        if latest is not None:
            last[component] = max(last.get(component, 0.0), latest.timestamp())
    yield records
    yield _gauge(
        "stage_last_hour_timestamp_seconds", "The hour of a component's last record of a day.", "component", last
    )
    waiting: dict[str, float] = {}
    oldest: dict[str, float] = {}
    ages: dict[str, float] = {}
    for stage in stages(looks_ahead=False):
        waiting[stage.name] = stage.waiting.count
        oldest[stage.name] = (at - stage.waiting.since).total_seconds() if stage.waiting.since else 0
        if stage.last:
            ages[stage.name] = (at - stage.last).total_seconds()
    yield _gauge("curate_waiting", "What waits in a stage of the curation.", "stage", waiting)
    yield _gauge("curate_oldest_seconds", "For how long the oldest of it has waited.", "stage", oldest)
    yield _gauge("curate_last_age_seconds", "The age of the last run of a stage of the curation.", "stage", ages)
    last_backup = backups.last_made(at)
    if last_backup:
        yield _single("backup_age_seconds", "The age of the last backup.", (at - last_backup).total_seconds())


def _alarms(at: datetime) -> Iterator[GaugeMetricFamily]:
    alarms = silence.alarms()
    urgent = sum(alarm.is_urgent for alarm in alarms)
    yield _gauge("alarms", "What has gone quiet.", "urgency", {"now": urgent, "later": len(alarms) - urgent})
