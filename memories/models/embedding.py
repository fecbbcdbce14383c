"""Vectors of memories by embedding model. `memories/embedding/` writes them, recall and candidates read them.

Database triggers (migration 0020) queue memories for a vector, so no change is missed, raw SQL included, and none
needs a scan of all rows.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone


class ModelState(models.TextChoices):
    """The state of a model's vectors."""

    BUILDING = "building", "being built"
    ACTIVE = "active", "in use"
    RETIRED = "retired", "retired"


class EmbeddingModel(models.Model):
    """A model with stored vectors. `name` identifies model and revision; at most one is in use.

    `filled_to` is the last memory id that was queued when the model was added (None: all are). `error` says why the
    last attempt to embed failed; empty when it did not.
    """

    name = models.CharField(max_length=200, unique=True)
    dimensions = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=ModelState.choices, default=ModelState.BUILDING)
    created_at = models.DateTimeField(default=timezone.now)
    activated_at = models.DateTimeField(null=True, blank=True)
    filled_to = models.BigIntegerField(null=True, blank=True, default=0)
    error = models.CharField(max_length=500, blank=True, default="")

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
    """The vector of one memory by one model: `dimensions` little-endian float32 values, L2-normalised.

    A row is never updated: a changed text deletes it, and a new row with a higher id follows. So MAX(id) and COUNT(*)
    of a model's rows show whether anything changed since they were read.
    `content_hash` is the SHA-256 (hex) of the text that was embedded.
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
    """A memory that waits for its vector by one model. Triggers insert rows; storing the vector deletes them.

    `forced`: an existing vector is made again. `failed_at` and `error`: the model refused this text; it is tried again
    later.
    """

    model = models.ForeignKey(EmbeddingModel, on_delete=models.CASCADE, related_name="pending", db_index=False)
    memory = models.ForeignKey(
        "memories.Memory", on_delete=models.CASCADE, related_name="pending_embeddings", db_index=False
    )
    forced = models.BooleanField(default=False, db_default=False)
    failed_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=500, blank=True, default="", db_default="")

    class Meta:
        db_table = "embedding_pending"
        constraints = [
            models.UniqueConstraint(fields=["memory", "model"], name="embedding_pending_once"),
        ]
        indexes = [models.Index(fields=["model", "failed_at", "memory"], name="embedding_pending_line")]

    def __str__(self) -> str:
        return f"memory {self.memory_id} waits for model {self.model_id}"
