"""Purges: what a person had forgotten, and the receipt of it, which holds none of the text. Times are UTC."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.masked import MaskedCharField, MaskedJSONField


class PurgeState(models.TextChoices):
    PLANNED = "planned", "planned"
    RUNNING = "running", "running"
    DONE = "done", "done"


class Purge(models.Model):
    """One purge. `chosen` says by what (ids, names of filters, the SHA-256 of a query), never the text itself.

    `work` is what a run that is interrupted needs to go on, texts among it; it is emptied when the purge is done.
    `receipt` has what was removed where, when each step was done, and what only git's history still holds.
    """

    state = models.CharField(max_length=7, choices=PurgeState.choices, default=PurgeState.PLANNED)
    by = models.CharField(max_length=150)
    chosen = models.JSONField(default=dict, blank=True)
    work = MaskedJSONField(default=dict, blank=True)
    receipt = models.JSONField(default=dict, blank=True)
    problem = MaskedCharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "purges"
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["id"], condition=Q(state="running"), name="purges_running")]
        permissions = [("purge_memory", "Can purge memories")]

    def __str__(self) -> str:
        return f"purge {self.pk}"
