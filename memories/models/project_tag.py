"""The tags of project memories, one row each, to find memories by tag without reading all of them."""

from django.db import models


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
