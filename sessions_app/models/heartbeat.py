"""Heartbeats of workers, by host and queue, and the starts and ends of their processes."""

from django.db import models
from django.utils import timezone


class WorkerHeartbeat(models.Model):
    """One worker process; it writes `beat_at` every 15 seconds."""

    host = models.CharField(max_length=255)
    cluster = models.CharField(max_length=64)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField(default=timezone.now)
    beat_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "worker_heartbeats"
        ordering = ["host", "cluster", "pid"]
        constraints = [
            models.UniqueConstraint(fields=["host", "cluster", "pid"], name="worker_heartbeats_one_a_process")
        ]

    def __str__(self) -> str:
        return f"{self.cluster} on {self.host} (pid {self.pid})"


class Ending(models.TextChoices):
    STOPPED = "stopped", "stopped"
    LOST = "lost", "lost"


class WorkerRun(models.Model):
    """One run of a worker process, from its start to its end (UTC), for the feed. Pruned.

    `ending` is empty while it runs. `after` is how the run before it on its host ended, empty for the first: after a
    loss this one is a restart.
    """

    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    queues = models.CharField(max_length=200, help_text="Names of the queues that it serves, separated by commas.")
    after = models.CharField(max_length=16, blank=True, default="", choices=Ending.choices)
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    ending = models.CharField(max_length=16, blank=True, default="", choices=Ending.choices)

    class Meta:
        db_table = "worker_runs"
        ordering = ["-started_at", "-id"]
        indexes = [
            models.Index(fields=["-started_at", "-id"], name="worker_runs_started"),
            models.Index(fields=["-ended_at", "-id"], name="worker_runs_ended"),
        ]

    def __str__(self) -> str:
        return f"worker on {self.host} (pid {self.pid}) from {self.started_at:%Y-%m-%d %H:%M:%S} UTC"
