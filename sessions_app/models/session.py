"""One run of an agent, and the readable lines of its log."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import models
from django.db.models import Q, Sum
from django.utils import timezone

from sessions_app.models.agent import Runner


class Status(models.TextChoices):
    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    COMPLETED = "completed", "completed"
    FAILED = "failed", "failed"
    TIMED_OUT = "timed_out", "timed out"
    STOPPED = "stopped", "stopped"
    ESCALATED = "escalated", "escalated"
    LOST = "lost", "lost"


OPEN_STATUSES = (Status.QUEUED, Status.RUNNING)


class Trigger(models.TextChoices):
    SCHEDULED = "scheduled", "schedule"
    MANUAL = "manual", "by hand"
    API = "api", "API"
    ALERT = "alert", "alert"
    ESCALATION = "escalation", "escalation"
    IMPORT = "import", "import"


class SessionQuerySet(models.QuerySet["Session"]):
    def queued(self) -> SessionQuerySet:
        return self.filter(status=Status.QUEUED)

    def running(self) -> SessionQuerySet:
        return self.filter(status=Status.RUNNING)

    def ended(self) -> SessionQuerySet:
        return self.exclude(status__in=OPEN_STATUSES)

    def paid_since(self, start: datetime) -> SessionQuerySet:
        """Those that ended at `start` or later, but for imported logs: this house did not spend what those cost."""
        return self.filter(ended_at__gte=start).exclude(trigger=Trigger.IMPORT)

    def paid_on(self, day: datetime) -> SessionQuerySet:
        """Those that ended in the 24 hours from `day` on, and those that run now; imported logs do not count."""
        ended = Q(ended_at__gte=day, ended_at__lt=day + timedelta(days=1))
        return self.filter(ended | Q(status=Status.RUNNING)).exclude(trigger=Trigger.IMPORT)

    def cost_and_turns(self) -> tuple[Decimal, int]:
        """What they took together: US dollars, and turns of the model."""
        found = self.order_by().aggregate(cost=Sum("cost_usd"), turns=Sum("num_turns"))
        return found["cost"] or Decimal(0), found["turns"] or 0


class Session(models.Model):
    """One run. The raw log is the truth; this row and what hangs on it are its projection.

    `log_file` is relative to the data folder. `ingest_offset` is how many bytes of it have been taken,
    `ingest_state` the accumulators that go with that offset. `host`, `pid` and `pid_started_at` (seconds
    since the epoch) name the process; `heartbeat_at` is written by whoever follows it.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    # The links are served by the indexes below.
    agent = models.ForeignKey(
        "sessions_app.Agent", null=True, blank=True, on_delete=models.SET_NULL, related_name="sessions", db_index=False
    )
    project = models.ForeignKey(
        "memories.Project", null=True, blank=True, on_delete=models.PROTECT, related_name="sessions", db_index=False
    )
    tier = models.PositiveSmallIntegerField(default=1)
    model = models.CharField(max_length=100, blank=True, default="")
    runner = models.CharField(max_length=16, default=Runner.CLAUDE, choices=Runner.choices)
    trigger = models.CharField(max_length=16, default=Trigger.MANUAL, choices=Trigger.choices)
    status = models.CharField(max_length=16, default=Status.QUEUED, choices=Status.choices)
    status_reason = models.TextField(blank=True, default="")
    hold_reason = models.TextField(blank=True, default="", help_text="Why a queued session is not started yet.")
    task = models.TextField(blank=True, default="", help_text="What was asked for: an operator's words, an alert.")
    prompt = models.TextField(blank=True, default="", help_text="The whole prompt, as it was sent.")
    injected_text = models.TextField(blank=True, default="")
    cli_session_id = models.CharField(max_length=64, blank=True, default="")
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children", db_index=False
    )
    requested_by = models.CharField(max_length=150, blank=True, default="")
    dry_run = models.BooleanField(default=False)
    response = models.TextField(blank=True, default="")
    summary = models.TextField(blank=True, default="")
    structured = models.JSONField(null=True, blank=True)
    escalation = models.JSONField(default=dict, blank=True)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, default=0)
    num_turns = models.PositiveIntegerField(default=0)
    duration_ms = models.PositiveBigIntegerField(default=0)
    usage = models.JSONField(default=dict, blank=True)
    stats = models.JSONField(default=dict, blank=True, help_text="What came in, what was stored, what was dropped.")
    exit_code = models.IntegerField(null=True, blank=True)
    error = models.TextField(blank=True, default="")
    replay_stream = models.CharField(max_length=500, blank=True, default="")
    log_file = models.CharField(max_length=500, blank=True, default="")
    ingest_offset = models.PositiveBigIntegerField(default=0)
    ingest_state = models.JSONField(default=dict, blank=True)
    import_key = models.CharField(max_length=80, null=True, blank=True, unique=True)
    host = models.CharField(max_length=255, blank=True, default="")
    pid = models.PositiveIntegerField(null=True, blank=True)
    pid_started_at = models.FloatField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0, help_text="How often a worker took this session up.")
    coalesced = models.PositiveIntegerField(
        default=0, help_text="Further firings of the schedule that joined this waiting session."
    )
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    stop_requested_by = models.CharField(max_length=150, blank=True, default="")
    dispatched_at = models.DateTimeField(null=True, blank=True)
    queued_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = SessionQuerySet.as_manager()

    class Meta:
        db_table = "sessions"
        ordering = ["-queued_at", "-id"]
        permissions = [("run_session", "Can ask for sessions"), ("stop_session", "Can stop sessions")]
        constraints = [
            # At most one running session an agent, whatever the number of workers and hosts.
            models.UniqueConstraint(
                fields=["agent"], condition=Q(status="running"), name="sessions_one_running_an_agent"
            ),
            # An escalation is started once, however often its parent is closed.
            models.UniqueConstraint(
                fields=["parent"], condition=Q(trigger="escalation"), name="sessions_one_escalation_a_parent"
            ),
        ]
        indexes = [
            models.Index(fields=["-queued_at", "-id"], name="sessions_queued_at"),
            models.Index(fields=["status", "-queued_at", "-id"], name="sessions_status"),
            models.Index(fields=["agent", "-queued_at", "-id"], name="sessions_agent"),
            models.Index(fields=["tier", "-queued_at", "-id"], name="sessions_tier"),
            models.Index(fields=["trigger", "-queued_at", "-id"], name="sessions_trigger"),
            models.Index(fields=["project", "-queued_at", "-id"], name="sessions_project"),
            # What ended when, with what it cost: the sums of a day and a week are read from the index alone.
            models.Index(fields=["-ended_at", "trigger", "cost_usd", "num_turns"], name="sessions_ended"),
            models.Index(fields=["-started_at", "-id"], name="sessions_started"),
            # Most sessions have no parent: an index that holds those too tells a planner that it is of no use.
            models.Index(fields=["parent"], condition=Q(parent__isnull=False), name="sessions_parent"),
            models.Index(fields=["cli_session_id"], name="sessions_cli_session"),
        ]

    def __str__(self) -> str:
        return f"session {self.pk}"

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_STATUSES

    @property
    def tool_calls(self) -> int:
        """How many tools it has called so far. (Turns and cost are known when its result is there.)"""
        number = self.stats.get("tool_calls", 0)
        return number if isinstance(number, int) else 0


class LogKind(models.TextChoices):
    TEXT = "text", "text"
    TOOL_USE = "tool_use", "tool use"
    TOOL_RESULT = "tool_result", "tool result"
    SYSTEM = "system", "system"
    RESULT = "result", "result"


class LogEntry(models.Model):
    """One readable line of a session's log, cut at 4 KB; `offset` is where it begins in the raw log (bytes)."""

    session = models.ForeignKey(  # found by the constraint on session and seq
        "sessions_app.Session", on_delete=models.CASCADE, related_name="log_entries", db_index=False
    )
    seq = models.PositiveIntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=16, choices=LogKind.choices)
    text = models.TextField()
    offset = models.PositiveBigIntegerField()

    class Meta:
        db_table = "session_log_entries"
        ordering = ["session", "seq"]
        verbose_name_plural = "log entries"
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="session_log_entries_seq")]

    def __str__(self) -> str:
        return f"{self.session_id}#{self.seq} {self.kind}"
