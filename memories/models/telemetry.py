"""What each stage of the pipeline reports: one record a run of it. Times are UTC."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.masked_fields import MaskedJSONField


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
