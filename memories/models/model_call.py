"""Calls of models. A row is made before the call and completed after it, so that no call is forgotten."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from claudeops.lib.masked_fields import MaskedCharField


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
