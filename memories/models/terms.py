"""The companion of `memories` that full-text search reads: our own terms of each, and what is still to be indexed.

Narrow, so that no migration rebuilds it. Triggers of `memories.recall.keyword_index` fill and empty it.
"""

from __future__ import annotations

from django.db import models


class MemoryTerms(models.Model):
    """The terms of one memory, separated by spaces, repeated as often as they stand in its text.

    No foreign key: a trigger removes the row with its memory, whoever deletes that. An automatic key, though each is
    given: SQLite finds a row at once by no other kind.
    """

    memory_id = models.BigAutoField(primary_key=True)
    terms = models.TextField()
    length = models.PositiveIntegerField(help_text="How many terms there are.")

    class Meta:
        db_table = "memory_terms"
        indexes = [models.Index(fields=["length"], name="memory_terms_length")]

    def __str__(self) -> str:
        return f"the {self.length} terms of memory {self.memory_id}"


class MemoryTermsDue(models.Model):
    """A memory whose terms are not those of its text: it is new, or was edited."""

    memory_id = models.BigIntegerField(primary_key=True)

    class Meta:
        db_table = "memory_terms_due"

    def __str__(self) -> str:
        return f"memory {self.memory_id} is to be indexed"
