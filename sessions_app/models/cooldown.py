"""Remediations that sessions reported, and what resets their count: health checks and clearances."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.masked import MaskedCharField, MaskedTextField


class Remediation(models.TextChoices):
    RESTART = "restart", "restart"
    REDEPLOYMENT = "redeployment", "redeployment"


class Outcome(models.TextChoices):
    SUCCESS = "success", "success"
    FAILURE = "failure", "failure"


class CooldownAction(models.Model):
    """A restart or redeployment that a session reported. Dry runs are stored and do not count."""

    session = models.ForeignKey(  # served by the unique constraint
        "sessions_app.Session",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="cooldown_actions",
        db_index=False,
    )
    action = models.CharField(max_length=16, choices=Remediation.choices)
    service = models.CharField(max_length=64)
    outcome = models.CharField(max_length=16, choices=Outcome.choices)
    message = MaskedTextField(blank=True, default="")
    dry_run = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    fingerprint = models.CharField(max_length=64)

    class Meta:
        db_table = "cooldown_actions"
        ordering = ["-created_at", "-id"]
        permissions = [("clear_cooldown", "Can clear cooldowns")]
        constraints = [
            models.UniqueConstraint(fields=["session", "fingerprint"], name="cooldown_actions_once_a_session")
        ]
        indexes = [
            models.Index(
                fields=["service", "action", "-created_at"],
                condition=Q(dry_run=False),
                name="cooldown_actions_window",
            ),
            models.Index(fields=["-created_at"], name="cooldown_actions_created"),
            # The newest action of each service, dry runs included: the cooldowns page.
            models.Index(fields=["service", "-created_at", "-id"], name="cooldown_actions_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.service}: {self.outcome}"


class ServiceCheck(models.Model):
    """The health of a service in a session's structured answer. Two healthy checks in a row reset the count."""

    session = models.ForeignKey(  # served by the unique constraint
        "sessions_app.Session", on_delete=models.CASCADE, related_name="service_checks", db_index=False
    )
    service = models.CharField(max_length=64)
    status = MaskedCharField(max_length=64)
    healthy = models.BooleanField()
    detail = MaskedTextField(blank=True, default="")
    checked_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "service_checks"
        ordering = ["-checked_at", "-id"]
        constraints = [models.UniqueConstraint(fields=["session", "service"], name="service_checks_once_a_session")]
        indexes = [models.Index(fields=["service", "-checked_at", "-id"], name="service_checks_service")]

    def __str__(self) -> str:
        return f"{self.service}: {self.status}"


class CooldownClearance(models.Model):
    """A person's decision that actions before `cleared_at` no longer count (empty `action`: both). Append-only."""

    service = models.CharField(max_length=64)
    action = models.CharField(max_length=16, choices=Remediation.choices, blank=True, default="")
    cleared_at = models.DateTimeField(default=timezone.now)
    by = models.CharField(max_length=150)
    reason = MaskedCharField(max_length=500)

    class Meta:
        db_table = "cooldown_clearances"
        ordering = ["-cleared_at", "-id"]
        indexes = [
            models.Index(fields=["service", "-cleared_at"], name="cooldown_clearances_service"),
            models.Index(fields=["-cleared_at"], name="cooldown_clearances_cleared"),
        ]

    def __str__(self) -> str:
        return f"{self.action or 'all'} of {self.service}, by {self.by}"
