"""A message an agent emitted about the world."""

from django.db import models
from django.utils import timezone


class Level(models.TextChoices):
    INFO = "info", "info"
    WARNING = "warning", "warning"
    CRITICAL = "critical", "critical"


class Event(models.Model):
    """`fingerprint` names the message within its session: the same one counts once, by whatever channel."""

    session = models.ForeignKey(  # served by the unique constraint
        "sessions_app.Session", null=True, blank=True, on_delete=models.CASCADE, related_name="events", db_index=False
    )
    level = models.CharField(max_length=16, choices=Level.choices, default=Level.INFO)
    service = models.CharField(max_length=64, null=True, blank=True)
    message = models.TextField()
    created_at = models.DateTimeField(default=timezone.now)
    fingerprint = models.CharField(max_length=64)

    class Meta:
        db_table = "events"
        ordering = ["-created_at", "-id"]
        constraints = [models.UniqueConstraint(fields=["session", "fingerprint"], name="events_once_a_session")]
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="events_created"),
            models.Index(fields=["level", "-created_at"], name="events_level"),
            models.Index(fields=["service", "-created_at"], name="events_service"),
            # Both filters at once: a service may have a million events of which ten are critical.
            models.Index(fields=["service", "level", "-created_at"], name="events_service_level"),
        ]

    def __str__(self) -> str:
        return f"[{self.level}:{self.service or 'general'}] {self.message[:80]}"
