"""Sessions: runs of agents, and the entries of their logs."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from decimal import Context, Decimal
from functools import cached_property
from typing import Any

from django.db import models
from django.db.models import Q, Sum, Value
from django.utils import timezone

from claudeops.lib.masked import MaskedJSONField, MaskedTextField
from memories.models import Exposure
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


TASK_TEXT = "task text"
"""The outside source of a task that no signed-in person wrote."""

OPEN_STATUSES = (Status.QUEUED, Status.RUNNING)


class Trigger(models.TextChoices):
    SCHEDULED = "scheduled", "schedule"
    MANUAL = "manual", "by hand"
    API = "api", "API"
    ALERT = "alert", "alert"
    ESCALATION = "escalation", "escalation"
    IMPORT = "import", "import"


class FollowsAs(models.TextChoices):
    """How a session that a person asked for follows its parent: anew, or with the CLI's conversation."""

    RETRY = "retry", "retry"
    CONTINUE = "continue", "continue"


class DollarsField(models.DecimalField):
    """A decimal column that is read whatever it holds. For migrations it is a DecimalField.

    SQLite stores numbers that are larger than the column; reading one failed, and with it each page that lists the row.
    """

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.DecimalField", args, kwargs

    @cached_property
    def context(self) -> Context:
        """SQLite's converter rounds in it: as many digits as a float has, and no error for Infinity."""
        return Context(prec=400, traps=[])

    def to_python(self, value: Any) -> Any:
        return super().to_python(f"{value:.6f}" if isinstance(value, float) else value)

    def from_db_value(self, value: Decimal | None, expression: object, connection: object) -> Decimal | None:
        return value if value is None or value.is_finite() else Decimal(0)


NOT_STARTED = "Could not be started: "
"""How the reason of a session begins that was claimed and has had no process."""


class SessionQuerySet(models.QuerySet["Session"]):
    def queued(self) -> SessionQuerySet:
        return self.filter(status=Status.QUEUED)

    def running(self) -> SessionQuerySet:
        return self.filter(status=Status.RUNNING)

    def ended(self) -> SessionQuerySet:
        return self.exclude(status__in=OPEN_STATUSES)

    def paid_since(self, start: datetime) -> SessionQuerySet:
        """Return sessions that ended at `start` or later, without imported logs, whose cost was paid elsewhere."""
        return self.filter(ended_at__gte=start).exclude(trigger=Trigger.IMPORT)

    def paid_on(self, day: datetime) -> SessionQuerySet:
        """Return sessions that ended in the 24 hours from `day` on or run now, without imported logs."""
        ended = Q(ended_at__gte=day, ended_at__lt=day + timedelta(days=1))
        return self.filter(ended | Q(status=Status.RUNNING)).exclude(trigger=Trigger.IMPORT)

    def cost_and_turns(self) -> tuple[Decimal, int]:
        totals = self.order_by().aggregate(cost=Sum("cost_usd"), turns=Sum("num_turns"))
        return totals["cost"] or Decimal(0), totals["turns"] or 0


class Session(models.Model):
    """One run of an agent. The raw log is the source of truth; the results on this row are derived from it.

    `log_file` is relative to the data folder. `ingest_offset` is how many of its bytes are ingested, `ingest_state` the
    accumulators at that offset, with `before`: the outside sources of its task. `host`, `pid` and `pid_started_at`
    (seconds since the epoch) identify the process.

    `brief` has {task_id, title, write_scope, excluded_paths, read_first, prohibited, note}, each of which may be
    missing (see `prompts.brief`); the task's description is `task`. `follows_as` says how it follows `parent`.
    `prompt_sha256` is that of `prompt` as it was sent, in UTF-8.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    # Their indexes are below.
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
    status_reason = MaskedTextField(blank=True, default="")
    hold_reason = MaskedTextField(blank=True, default="", help_text="Why a queued session has to wait.")
    task = MaskedTextField(blank=True, default="", help_text="The task: an operator's text, or an alert.")
    brief = MaskedJSONField(
        default=dict,
        db_default=Value({}, models.JSONField()),
        blank=True,
        help_text="Its task's id, title and limits, and the operator's note.",
    )
    prompt = MaskedTextField(blank=True, default="", help_text="The complete prompt, as it was sent.")
    prompt_sha256 = models.CharField(max_length=64, blank=True, default="", db_default="")
    injected_text = MaskedTextField(blank=True, default="")
    cli_session_id = models.CharField(max_length=64, blank=True, default="")
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children", db_index=False
    )
    follows_as = models.CharField(max_length=8, blank=True, default="", db_default="", choices=FollowsAs.choices)
    requested_by = models.CharField(max_length=150, blank=True, default="")
    dry_run = models.BooleanField(default=False)
    response = MaskedTextField(blank=True, default="")
    summary = MaskedTextField(blank=True, default="")
    structured = MaskedJSONField(null=True, blank=True)
    escalation = MaskedJSONField(default=dict, blank=True)
    cost_usd = DollarsField(max_digits=12, decimal_places=6, default=0)
    reserved_usd = models.DecimalField(
        max_digits=12,
        decimal_places=6,
        default=0,
        db_default=0,
        help_text="What it may cost, set by its claim. While it runs, the daily budget counts this or its cost.",
    )
    num_turns = models.PositiveIntegerField(default=0)
    duration_ms = models.PositiveBigIntegerField(default=0)
    usage = models.JSONField(default=dict, blank=True)
    stats = models.JSONField(default=dict, blank=True, help_text="Ingest counters.")
    exit_code = models.IntegerField(null=True, blank=True)
    error = MaskedTextField(blank=True, default="")
    replay_stream = models.CharField(max_length=500, blank=True, default="")
    log_file = models.CharField(max_length=500, blank=True, default="")
    ingest_offset = models.PositiveBigIntegerField(default=0)
    ingest_state = models.JSONField(default=dict, blank=True)
    alert_key = models.CharField(
        max_length=64, null=True, blank=True, help_text="Its alert, as a SHA-256: one open session for each."
    )
    import_key = models.CharField(max_length=80, null=True, blank=True, unique=True)
    host = models.CharField(max_length=255, blank=True, default="")
    pid = models.PositiveIntegerField(null=True, blank=True)
    pid_started_at = models.FloatField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0, help_text="How often a worker claimed this session.")
    coalesced = models.PositiveIntegerField(
        default=0, help_text="Further firings of the schedule, or alerts, that joined this session."
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
            # An agent has at most one running session, on any number of workers and hosts.
            models.UniqueConstraint(
                fields=["agent"], condition=Q(status="running"), name="sessions_one_running_an_agent"
            ),
            # A parent has at most one escalation, however often it is closed.
            models.UniqueConstraint(
                fields=["parent"], condition=Q(trigger="escalation"), name="sessions_one_escalation_a_parent"
            ),
            # An alert that comes again while its session is open joins it.
            models.UniqueConstraint(
                fields=["alert_key"],
                condition=Q(alert_key__isnull=False, status__in=("queued", "running")),
                name="sessions_one_open_an_alert",
            ),
            # A session has at most one open retry and one open continuation, however often they are asked for.
            models.UniqueConstraint(
                fields=["parent", "follows_as"],
                condition=Q(follows_as__gt="", status__in=("queued", "running")),
                name="sessions_one_open_follower",
            ),
        ]
        indexes = [
            models.Index(fields=["-queued_at", "-id"], name="sessions_queued_at"),
            models.Index(fields=["status", "-queued_at", "-id"], name="sessions_status"),
            models.Index(fields=["agent", "-queued_at", "-id"], name="sessions_agent"),
            # The last good runs of an agent: what is usual for it.
            models.Index(
                fields=["agent", "-queued_at", "-id"], condition=Q(status="completed"), name="sessions_completed"
            ),
            models.Index(fields=["-cost_usd", "-id"], name="sessions_cost"),
            models.Index(fields=["-duration_ms", "-id"], name="sessions_duration"),
            models.Index(fields=["tier", "-queued_at", "-id"], name="sessions_tier"),
            models.Index(fields=["trigger", "-queued_at", "-id"], name="sessions_trigger"),
            models.Index(fields=["project", "-queued_at", "-id"], name="sessions_project"),
            # Covers the cost and the outcomes of a project. Partial: sessions without one are not written into it.
            models.Index(
                fields=["project", "ended_at", "trigger", "status", "cost_usd"],
                condition=Q(project__isnull=False),
                name="sessions_of_project",
            ),
            # Covers the sums of cost and turns of a day and a week.
            models.Index(fields=["-ended_at", "trigger", "cost_usd", "num_turns"], name="sessions_ended"),
            models.Index(fields=["-started_at", "-id"], name="sessions_started"),
            # Partial: most sessions have no parent, and with those the planner ignores the index.
            models.Index(fields=["parent"], condition=Q(parent__isnull=False), name="sessions_parent"),
            models.Index(fields=["cli_session_id"], name="sessions_cli_session"),
        ]

    def __str__(self) -> str:
        return f"session {self.pk}"

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_STATUSES

    @property
    def icon(self) -> str:
        """The name of the icon of its status: what went wrong has one shape, whatever the reason."""
        return {"completed": "ok", "timed_out": "failed", "lost": "failed"}.get(self.status, self.status)

    @property
    def never_started(self) -> bool:
        """Whether it ended without a process of its own: nothing was told to it, and it has no log."""
        refused = self.started_at is None or self.status_reason.startswith(NOT_STARTED)
        ran = self.pid or self.ingest_offset or self.trigger == Trigger.IMPORT
        return refused and not (ran or self.is_open or self.status in (Status.COMPLETED, Status.ESCALATED))

    @property
    def ended_with(self) -> str:
        """What is said of it in one line, may be empty: its summary once it is completed, what holds it while it is
        queued, else the reason of its status; without that its last words."""
        if self.status == Status.QUEUED and self.hold_reason:
            return self.hold_reason
        return (self.summary if self.status == Status.COMPLETED else "") or self.status_reason or self.summary

    @property
    def lasted_ms(self) -> int | None:
        """The one number for how long a session took, in milliseconds: from its start to its end, or to now.

        None before its start. (`duration_ms` has it once the session is closed; until then the time of its results.)
        """
        if self.status == Status.RUNNING and self.started_at:
            return max(0, round((timezone.now() - self.started_at) / timedelta(milliseconds=1)))
        return self.duration_ms or None

    @property
    def waited_ms(self) -> int | None:
        """Milliseconds from its request to its start; None before its start."""
        if self.started_at is None:
            return None
        return max(0, round((self.started_at - self.queued_at) / timedelta(milliseconds=1)))

    @property
    def exposure(self) -> str:
        """What it has read so far: a value of `memories.models.Exposure`."""
        return str(self._reading.get("exposure", Exposure.NOTHING.value))

    @property
    def exposed_to(self) -> list[str]:
        """The names of the outside sources that it has read."""
        return list(self._reading.get("sources", ()))

    @property
    def task_text(self) -> str:
        """All that it was asked in words: its task, and the sentences of its brief."""
        brief = self.brief
        note = brief.get("note", "") if self.trigger in (Trigger.API, Trigger.ALERT) else ""  # else a person's
        return "\n".join(filter(None, [self.task, brief.get("title", ""), *brief.get("prohibited", []), note]))

    @property
    def exposed_before(self) -> list[str]:
        """The outside sources that it was exposed to by its task or its parent, before its first line."""
        return list(self.ingest_state.get("before", ()))

    @property
    def _reading(self) -> dict[str, Any]:
        before = self.exposed_before
        default: dict[str, Any] = {"exposure": Exposure.OUTSIDE.value, "sources": before} if before else {}
        return self.ingest_state.get("reading") or default

    @property
    def has_read(self) -> str:
        """Say what it has read so far: "outside text (logs: jellyfin)"."""
        named = ", ".join(self.exposed_to)
        return str(Exposure(self.exposure).label) + (f" ({named})" if named else "")

    @property
    def cost_is_estimated(self) -> bool:
        """Whether the cost, or the part since the last result line, is estimated from the tokens of messages."""
        return bool(self.stats.get("estimated_messages"))

    @property
    def learned(self) -> int:
        """Memories that it created or confirmed, by its ingest counters."""
        counts = (self.stats.get(name, 0) for name in ("memories_created", "memories_reinforced"))
        return sum(count for count in counts if isinstance(count, int))

    @property
    def tool_calls(self) -> int:
        """Tool calls so far."""
        number = self.stats.get("tool_calls", 0)
        return number if isinstance(number, int) else 0


class LogKind(models.TextChoices):
    TEXT = "text", "text"
    TOOL_USE = "tool_use", "tool use"
    TOOL_RESULT = "tool_result", "tool result"
    SYSTEM = "system", "system"
    RESULT = "result", "result"


class LogEntry(models.Model):
    """One line of a session's readable log, cut at 4 KB; `offset` is its position in the raw log (bytes).

    `turn` counts the messages of the main thread up to this line, from 1. `call` is a `seq`: of the call that a result
    answers; of the call whose subagent wrote the line, 0 when that call is not known. `tokens` and `cost_usd` (US
    dollars) are what this line adds to the estimate of its message: the sum over a message's lines is its estimate.
    NULL in each of the five: not known, as in all rows that were stored before these columns.
    """

    session = models.ForeignKey(  # the constraint on session and seq is its index
        "sessions_app.Session", on_delete=models.CASCADE, related_name="log_entries", db_index=False
    )
    seq = models.PositiveIntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=16, choices=LogKind.choices)
    text = models.TextField()
    offset = models.PositiveBigIntegerField()
    turn = models.PositiveIntegerField(null=True)
    call = models.PositiveIntegerField(null=True)
    is_error = models.BooleanField(null=True)
    tokens = models.PositiveBigIntegerField(null=True)
    cost_usd = models.FloatField(null=True)

    class Meta:
        db_table = "session_log_entries"
        ordering = ["session", "seq"]
        verbose_name_plural = "log entries"
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="session_log_entries_seq")]
        # Partial: a log has few errors, and an ingest writes nothing here for other lines.
        indexes = [
            models.Index(fields=["session", "seq"], condition=Q(is_error=True), name="session_log_entries_errors")
        ]

    def __str__(self) -> str:
        return f"{self.session_id}#{self.seq} {self.kind}"
