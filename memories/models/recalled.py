"""The recall log and relevance judgements. Rows are appended; a task counts them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.masked import MaskedJSONField, MaskedTextField


class Recalled(models.Model):
    """One recall; `hits` are [memory id, score], best first. `counted`: the memories' recall_count includes it."""

    query = MaskedTextField()
    rewritten = MaskedTextField(
        blank=True, default="", db_default="", help_text="The rewritten query that was searched as well; empty = none."
    )
    filters = MaskedJSONField(default=dict, blank=True)
    hits = models.JSONField(default=list, blank=True)
    surface = models.CharField(max_length=16)
    actor = models.CharField(max_length=150, blank=True, default="")
    session = models.ForeignKey(
        "sessions_app.Session",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="recalls",
        db_index=False,
    )
    at = models.DateTimeField(default=timezone.now)
    counted = models.BooleanField(default=False)

    class Meta:
        db_table = "recalls"
        verbose_name = "recall log entry"
        verbose_name_plural = "recall log entries"
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["-at", "-id"], name="recalls_at"),
            models.Index(fields=["id"], condition=Q(counted=False), name="recalls_uncounted"),
            models.Index(fields=["session"], condition=Q(session__isnull=False), name="recalls_session"),
        ]

    def __str__(self) -> str:
        return f"{self.query[:80]} ({len(self.hits)} hits)"


class RecallVote(models.TextChoices):
    RIGHT = "right", "right"
    WRONG = "wrong", "wrong"


class RecallMark(models.Model):
    """A relevance judgement: an operator marks one hit of one query as right or wrong."""

    query = MaskedTextField()
    query_key = models.CharField(max_length=64, help_text="SHA-256 of the query: a database cannot index a long text.")
    filters = MaskedJSONField(default=dict, blank=True)
    memory = models.ForeignKey("memories.Memory", on_delete=models.CASCADE, related_name="recall_marks")
    vote = models.CharField(max_length=8, choices=RecallVote.choices)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "recall_marks"
        verbose_name = "relevance judgement"
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["query_key", "memory"], name="recall_marks_once"),
        ]

    def __str__(self) -> str:
        return f"{self.query[:80]}: memory {self.memory_id} is {self.vote}"
