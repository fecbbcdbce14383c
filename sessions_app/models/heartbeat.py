"""Heartbeats of workers, by host and queue."""

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
