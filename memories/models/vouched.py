"""Who stands behind a text, and what agents were at work when a commit came."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone


class VouchedText(models.Model):
    """A text that a person stands behind in a project (None: in all), by its digest (`lifecycle.vouched`)."""

    digest = models.CharField(max_length=64)
    project = models.ForeignKey("memories.Project", null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    by = models.CharField(max_length=150)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "vouched_texts"
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["digest", "project"], name="vouched_texts_once"),
            models.UniqueConstraint(fields=["digest"], condition=Q(project=None), name="vouched_texts_once_in_all"),
        ]

    def __str__(self) -> str:
        return f"a text that {self.by} stands behind"


class SeenCommit(models.Model):
    """A commit of a project's repository, first seen at `at` (UTC). `agents` is who was at work then, "" for none."""

    project = models.ForeignKey("memories.Project", on_delete=models.CASCADE, related_name="+")
    sha = models.CharField(max_length=64)
    agents = models.CharField(max_length=200, blank=True, default="")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "seen_commits"
        ordering = ["-at", "-id"]
        constraints = [models.UniqueConstraint(fields=["project", "sha"], name="seen_commits_once")]

    def __str__(self) -> str:
        return self.sha[:12]
