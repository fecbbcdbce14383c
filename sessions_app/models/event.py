"""Events: messages that agents report to the operator."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.masked import MaskedTextField


class Level(models.TextChoices):
    INFO = "info", "info"
    WARNING = "warning", "warning"
    CRITICAL = "critical", "critical"


WARNINGS = frozenset({"warning", "warn", "degraded"})
CRITICALS = frozenset({"critical", "error", "err", "fatal", "failure", "failed"})


def level_of(word: str) -> Level:
    """Map the word of an agent or of a monitor to a level."""
    word = word.lower()
    return Level.WARNING if word in WARNINGS else Level.CRITICAL if word in CRITICALS else Level.INFO


OPEN = Q(acknowledged_at=None) & ~Q(level=Level.INFO)
"""Events that wait for a person: information needs nobody."""


class Event(models.Model):
    """`fingerprint` identifies the message within its session, so that it counts once, by whatever channel.

    `touched_at` is when a person last acknowledged or reopened it (UTC): lists ask for the latest.
    """

    session = models.ForeignKey(  # served by the unique constraint
        "sessions_app.Session", null=True, blank=True, on_delete=models.CASCADE, related_name="events", db_index=False
    )
    level = models.CharField(max_length=16, choices=Level.choices, default=Level.INFO)
    service = models.CharField(max_length=64, null=True, blank=True)
    message = MaskedTextField()
    created_at = models.DateTimeField(default=timezone.now)
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=150, blank=True, default="")
    touched_at = models.DateTimeField(null=True, blank=True)
    fingerprint = models.CharField(max_length=64)

    class Meta:
        db_table = "events"
        ordering = ["-created_at", "-id"]
        constraints = [models.UniqueConstraint(fields=["session", "fingerprint"], name="events_once_a_session")]
        permissions = [("acknowledge_event", "Can acknowledge events")]
        indexes = [
            models.Index(fields=["-created_at", "-id"], condition=OPEN, name="events_open"),
            models.Index(
                fields=["level", "acknowledged_at", "-created_at", "-id"], condition=OPEN, name="events_open_of_level"
            ),
            models.Index(fields=["touched_at"], condition=Q(touched_at__isnull=False), name="events_touched"),
            models.Index(fields=["-created_at", "-id"], name="events_created"),
            models.Index(fields=["level", "-created_at"], name="events_level"),
            models.Index(fields=["service", "-created_at"], name="events_service"),
            # For both filters at once: of a million events of a service, ten may be critical.
            models.Index(fields=["service", "level", "-created_at"], name="events_service_level"),
        ]

    @property
    def is_open(self) -> bool:
        return self.acknowledged_at is None and self.level != Level.INFO

    def __str__(self) -> str:
        return f"[{self.level}:{self.service or 'general'}] {self.message[:80]}"
