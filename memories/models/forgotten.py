"""Texts that a person had purged: keyed digests by which every door knows them again, and no text. Times are UTC."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class ForgottenText(models.Model):
    """One text that is not stored again until a person allows it (`allowed_at`, `allowed_by`).

    `digest` is the HMAC-SHA256 of memories.lifecycle.forgotten; `refused` counts how often it came again.
    """

    digest = models.CharField(max_length=64, unique=True)
    purge = models.ForeignKey("sessions_app.Purge", on_delete=models.CASCADE, related_name="forgotten")
    created_at = models.DateTimeField(default=timezone.now)
    refused = models.PositiveIntegerField(default=0)
    refused_at = models.DateTimeField(null=True, blank=True)
    allowed_at = models.DateTimeField(null=True, blank=True)
    allowed_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        db_table = "forgotten_texts"
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"a text of purge {self.purge_id}"
