"""What the store did: maintenance runs, telemetry of the pipeline's stages, calls of models. Times are UTC."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.masked import MaskedCharField, MaskedJSONField


class RunState(models.TextChoices):
    RUNNING = "running", "running"
    DONE = "done", "done"
    FAILED = "failed", "failed"


class MaintenanceRun(models.Model):
    """One run. `night`, the local date on which it is due, is its natural key: twice in a night is once.

    A run by hand beside that of the night has no `night`. `at` is the time that its changes bear, however often it was
    interrupted. `claimed_by` (host and process) goes on with it; a claim without a beat since `claimed_until` is void.
    """

    night = models.DateField(null=True, blank=True, unique=True)
    at = models.DateTimeField()
    by = models.CharField(max_length=150, help_text="system, or who started it.")
    state = models.CharField(max_length=7, choices=RunState.choices, default=RunState.RUNNING)
    claimed_by = models.CharField(max_length=300, blank=True, default="")
    claimed_until = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    problem = MaskedCharField(max_length=500, blank=True, default="")
    undone_at = models.DateTimeField(null=True, blank=True)
    undone_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        db_table = "maintenance_runs"
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["-at", "-id"], name="maintenance_runs_at"),
            models.Index(fields=["id"], condition=Q(state="running"), name="maintenance_runs_open"),
        ]

    def __str__(self) -> str:
        return f"maintenance of {self.night or self.at:%Y-%m-%d}"


class MaintenanceStep(models.Model):
    """One step of a run. `cursor` is where it goes on after a crash; `counts` says what it looked at and did."""

    run = models.ForeignKey(MaintenanceRun, on_delete=models.CASCADE, related_name="steps", db_index=False)
    name = models.CharField(max_length=24)
    position = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=7, choices=RunState.choices, default=RunState.RUNNING)
    cursor = models.JSONField(default=dict, blank=True)
    counts = models.JSONField(default=dict, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    problem = MaskedCharField(max_length=500, blank=True, default="")
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "maintenance_steps"
        ordering = ["run", "position"]
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="maintenance_steps_once")]

    def __str__(self) -> str:
        return f"{self.name} of {self.run_id}"


class RecordLevel(models.TextChoices):
    INFO = "info", "info"
    WARNING = "warning", "warning"
    ERROR = "error", "error"


class TelemetryCursor(models.Model):
    """How far the export has come: rows up to the id `sent` were taken by the collector, those up to `seen` follow.

    `name` is what is exported (records, calls), `claimed_until` the claim of the process that exports.
    """

    name = models.CharField(max_length=16, unique=True)
    sent = models.PositiveBigIntegerField(default=0)
    seen = models.PositiveBigIntegerField(default=0)
    claimed_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "telemetry_cursors"

    def __str__(self) -> str:
        return f"{self.name} up to {self.sent}"


class TelemetryRecord(models.Model):
    """One run of a stage. `action` is `memory.STAGE.OUTCOME`, such as `memory.observe.completed`.

    `source` is what ran it (a schedule, a command, a session), `component` the part of the code, `at` its end.
    `metadata` has its counts, and neither a prompt nor a memory's text. `key` is the natural key of a stage that may
    run twice.
    """

    key = models.CharField(max_length=100, null=True, blank=True, unique=True)
    at = models.DateTimeField(default=timezone.now)
    level = models.CharField(max_length=7, choices=RecordLevel.choices, default=RecordLevel.INFO)
    source = models.CharField(max_length=40)
    component = models.CharField(max_length=40)
    action = models.CharField(max_length=64)
    success = models.BooleanField(default=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    metadata = MaskedJSONField(default=dict, blank=True)

    class Meta:
        db_table = "telemetry_records"
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["-at", "-id"], name="telemetry_at"),
            models.Index(fields=["action", "-at", "-id"], name="telemetry_action"),
            models.Index(fields=["component", "-at", "-id"], name="telemetry_component"),
            models.Index(fields=["level", "-at", "-id"], condition=~Q(level="info"), name="telemetry_level"),
            models.Index(fields=["source", "-at", "-id"], name="telemetry_source"),
            models.Index(fields=["-at", "-id"], condition=Q(success=False), name="telemetry_failed"),
        ]

    def __str__(self) -> str:
        return f"{self.action} at {self.at:%Y-%m-%d %H:%M:%S} UTC"


class CallOutcome(models.TextChoices):
    """`asked`: not completed, also when its process died. `unreadable`: an answer without the expected shape."""

    ASKED = "asked", "asked"
    ANSWERED = "answered", "answered"
    UNREADABLE = "unreadable", "unreadable"
    LATE = "late", "late"
    FAILED = "failed", "failed"


class ModelCall(models.Model):
    """One call of a model: what it was asked for, what it cost, how it ended. Neither prompt nor answer is kept.

    `prompt_hash` is the SHA-256 (hexadecimal) of instructions and text. `model` is the name in the settings,
    `model_used` the one that the backend states. Tokens and cost (US dollars) are the backend's; null when it states
    none. `duration_ms` and `error` are set when the call has ended. Times are UTC.
    """

    role = models.CharField(max_length=16)
    backend = models.CharField(max_length=16)
    model = MaskedCharField(max_length=100)
    model_used = MaskedCharField(max_length=100, blank=True, default="")
    prompt_hash = models.CharField(max_length=64)
    tokens_in = models.PositiveIntegerField(null=True, blank=True)
    tokens_out = models.PositiveIntegerField(null=True, blank=True)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    asked_at = models.DateTimeField(default=timezone.now)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    outcome = models.CharField(max_length=16, choices=CallOutcome.choices, default=CallOutcome.ASKED)
    error = MaskedCharField(max_length=500, blank=True, default="")

    class Meta:
        db_table = "model_calls"
        ordering = ["-asked_at", "-id"]
        indexes = [
            models.Index(fields=["role", "asked_at"], name="model_calls_role"),
            models.Index(fields=["backend", "model", "asked_at"], name="model_calls_backend"),
            models.Index(fields=["asked_at"], name="model_calls_at"),
        ]

    def __str__(self) -> str:
        return f"{self.role}: {self.model} ({self.outcome})"
