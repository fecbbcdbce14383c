"""Vectors of memories, by the model that made them. Written by `memories/embedding/`, read by recall and matching.

Which memories wait for a vector is kept by triggers of the database (migration 0020), so that a change made by
anything, raw SQL included, is never missed and never costs a look at all rows.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone


class ModelState(models.TextChoices):
    """What a model's vectors are good for."""

    BUILDING = "building", "being built"
    ACTIVE = "active", "answers"
    RETIRED = "retired", "retired"


class EmbeddingModel(models.Model):
    """A model whose vectors are kept. `name` is the identity of model and revision; at most one answers.

    `filled_to` is the last memory id that was put in line when the model was begun (None: all of them were).
    `error` is why the last attempt to embed with it failed; empty when it did not.
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
    """The vector of one memory by one model: little-endian float32, L2-normalised, `dimensions` of them.

    A row is never updated: a changed text deletes it and a new one follows, with a higher id. So MAX(id) and
    COUNT(*) of a model's rows together say whether anything changed since they were read.
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
    """A memory that waits for its vector by one model. Rows come from triggers, and go when the vector is there.

    `forced`: a vector that is there already is made anew. `failed_at` and `error`: the model refused this text
    (and no other); it is tried again later.
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
