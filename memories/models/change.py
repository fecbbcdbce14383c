"""A memory's history: one append-only row for every change. Timeline, diff and rollback are read from it."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone


class Change(models.TextChoices):
    """What happened to a memory."""

    CREATED = "created", "created"
    REINFORCED = "reinforced", "reinforced"
    CONTRADICTED = "contradicted", "contradicted"
    DECAYED = "decayed", "decayed"
    EXPIRED = "expired", "expired"
    EDITED = "edited", "edited"
    CONFIDENCE_SET = "confidence_set", "confidence set"
    DEACTIVATED = "deactivated", "deactivated"
    REACTIVATED = "reactivated", "reactivated"
    PERSISTENT_SET = "persistent_set", "persistence set"
    APPROVED = "approved", "approved"
    MERGED = "merged", "merged"
    SUPERSEDED = "superseded", "superseded"
    BACKED = "backed", "backed by a person"
    RESTORED = "restored", "restored"
    DELETED = "deleted", "deleted"


SAID = ~Q(kind=Change.DECAYED) & ~Q(kind=Change.EXPIRED)
"""All the others. One by one: SQLite does not know the condition of its index again in a list of values."""


class MemoryChangeQuerySet(models.QuerySet["MemoryChange"]):
    def said(self) -> MemoryChangeQuerySet:
        """All but what time alone does."""
        return self.filter(SAID)


class MemoryChange(models.Model):
    """One change of one memory.

    `before` and `after` hold the fields that changed (for `created`, `after` holds the whole row; for
    `deleted`, `before` does). `evidence` is why: the text that arrived, the similarity, the signals.
    `candidate_key` names what an agent's session said, so that a replayed log changes nothing twice.
    The row outlives its memory: `memory_uuid` stays when the memory is deleted.
    """

    memory = models.ForeignKey(  # found by the index on memory and at
        "memories.Memory", null=True, blank=True, on_delete=models.SET_NULL, related_name="changes", db_index=False
    )
    memory_uuid = models.UUIDField(default=uuid.uuid4)
    kind = models.CharField(max_length=20, choices=Change.choices)
    at = models.DateTimeField(default=timezone.now)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    reason = models.CharField(max_length=500, blank=True, default="")
    evidence = models.JSONField(default=dict, blank=True)
    actor = models.CharField(max_length=150, blank=True, default="", help_text="A user name, agent:<slug>, or system.")
    session = models.ForeignKey(
        "sessions_app.Session",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="memory_changes",
        db_index=False,
    )
    candidate_key = models.CharField(max_length=64, null=True, blank=True)

    objects = MemoryChangeQuerySet.as_manager()

    class Meta:
        db_table = "memory_changes"
        ordering = ["at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["session", "candidate_key"],
                condition=Q(candidate_key__isnull=False),
                name="memory_changes_once_a_session",
            ),
        ]
        indexes = [
            models.Index(fields=["memory", "at"], name="memory_changes_memory"),
            models.Index(fields=["memory_uuid"], name="memory_changes_uuid"),
            # Time's changes have no session, and are most of them.
            models.Index(fields=["session"], condition=Q(session__isnull=False), name="memory_changes_session"),
            models.Index(fields=["-at"], name="memory_changes_at"),
            # What somebody or something said, newest first: what time takes would hide it among millions.
            models.Index(fields=["-at", "-id"], condition=SAID, name="memory_changes_said"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.memory_uuid} at {self.at:%Y-%m-%d %H:%M:%S} UTC"
