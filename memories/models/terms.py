"""The full-text index of memories. Narrow tables, so that no migration rebuilds them; triggers fill and empty them."""

from __future__ import annotations

from django.db import models


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
