"""Tables that triggers keep beside memories: terms of the full-text index, tags of projects, vectors, counts by hour.

Triggers queue memories for their vectors, also for raw SQL and without scans.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.hour_counts import HourCount
from claudeops.lib.masked import MaskedCharField


class MemoryTerms(models.Model):
    """The terms of one memory, separated by spaces, repeated as in its text.

    A trigger deletes the row with its memory. BigAutoField: only an integer primary key is SQLite's rowid.
    """

    memory_id = models.BigAutoField(primary_key=True)
    terms = models.TextField()
    length = models.PositiveIntegerField(help_text="Number of terms.")

    class Meta:
        db_table = "memory_terms"
        verbose_name = verbose_name_plural = "memory terms"
        indexes = [models.Index(fields=["length"], name="memory_terms_length")]

    def __str__(self) -> str:
        return f"the {self.length} terms of memory {self.memory_id}"


class MemoryTermsDue(models.Model):
    """A memory that is new or was edited since it was indexed."""

    memory_id = models.BigIntegerField(primary_key=True)

    class Meta:
        db_table = "memory_terms_due"
        verbose_name = "memory to index"
        verbose_name_plural = "memories to index"

    def __str__(self) -> str:
        return f"memory {self.memory_id} is to be indexed"


class ProjectTag(models.Model):
    """Written by triggers (`injection/tag_index.py`), which say what `kind` is. The ids are no foreign keys, so that
    the triggers alone remove a row.
    """

    memory_id = models.PositiveBigIntegerField()
    project_id = models.PositiveBigIntegerField()
    kind = models.PositiveSmallIntegerField()
    tag = models.CharField(max_length=200)

    class Meta:
        db_table = "project_tags"
        indexes = [
            models.Index(fields=["project_id", "kind", "tag", "memory_id"], name="project_tags_by_tag"),
            models.Index(fields=["memory_id"], name="project_tags_memory"),
        ]

    def __str__(self) -> str:
        return f"{self.tag} of memory {self.memory_id}"


class ModelState(models.TextChoices):
    BUILDING = "building", "being built"
    ACTIVE = "active", "in use"
    RETIRED = "retired", "retired"


class EmbeddingModel(models.Model):
    """A model with stored vectors; `name` identifies model and revision.

    At most one is active. `filled_to` is the last memory id that was queued for it (None: all are). `error` says why
    the last attempt failed.
    """

    name = models.CharField(max_length=200, unique=True)
    dimensions = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=ModelState.choices, default=ModelState.BUILDING)
    created_at = models.DateTimeField(default=timezone.now)
    activated_at = models.DateTimeField(null=True, blank=True)
    filled_to = models.BigIntegerField(null=True, blank=True, default=0)
    error = MaskedCharField(max_length=500, blank=True, default="")

    class Meta:
        db_table = "embedding_models"
        constraints = [
            models.UniqueConstraint(
                fields=["state"], condition=Q(state="active"), name="embedding_models_one_is_active"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.get_state_display()})"


class Embedding(models.Model):
    """The vector of a memory by a model: `dimensions` little-endian float32 values, L2-normalised.

    A row is never updated: a changed text deletes it, and a new row with a higher id follows. So MAX(id) and COUNT(*)
    of a model's rows show whether anything changed. `content_hash` is the SHA-256 (hex) of the text.
    """

    model = models.ForeignKey(EmbeddingModel, on_delete=models.CASCADE, related_name="embeddings", db_index=False)
    memory = models.ForeignKey("memories.Memory", on_delete=models.CASCADE, related_name="embeddings", db_index=False)
    vector = models.BinaryField()
    content_hash = models.CharField(max_length=64)

    class Meta:
        db_table = "embeddings"
        constraints = [
            models.UniqueConstraint(fields=["memory", "model"], name="embeddings_once_a_model"),
        ]
        indexes = [models.Index(fields=["model", "id"], name="embeddings_by_model")]

    def __str__(self) -> str:
        return f"vector of memory {self.memory_id} by model {self.model_id}"


class PendingEmbedding(models.Model):
    """A queued memory of a model.

    `forced`: remake an existing vector. `failed_at`, `error`: refused; it is tried again.
    """

    model = models.ForeignKey(EmbeddingModel, on_delete=models.CASCADE, related_name="pending", db_index=False)
    memory = models.ForeignKey(
        "memories.Memory", on_delete=models.CASCADE, related_name="pending_embeddings", db_index=False
    )
    forced = models.BooleanField(default=False, db_default=False)
    failed_at = models.DateTimeField(null=True, blank=True)
    error = MaskedCharField(max_length=500, blank=True, default="", db_default="")

    class Meta:
        db_table = "embedding_pending"
        constraints = [
            models.UniqueConstraint(fields=["memory", "model"], name="embedding_pending_once"),
        ]
        indexes = [models.Index(fields=["model", "failed_at", "memory"], name="embedding_pending_line")]

    def __str__(self) -> str:
        return f"memory {self.memory_id} waits for model {self.model_id}"


class MemoryChangeCount(HourCount):
    """Changes of memories by hour; `name` is the kind, or `faded` for a decay that made its memory inactive."""

    class Meta(HourCount.Meta):
        db_table = "memory_change_counts"


class TelemetryCount(HourCount):
    """Telemetry records by the hour of their end; `name` is their component and level: "observe:warning"."""

    name = models.CharField(max_length=48)

    class Meta(HourCount.Meta):
        db_table = "telemetry_counts"
