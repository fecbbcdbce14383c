"""Runs of the nightly maintenance, and their steps. Times are UTC."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.masked_fields import MaskedCharField


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
