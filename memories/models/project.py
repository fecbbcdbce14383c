"""Projects. A memory with a project is limited to it; one without is global."""

from django.db import models
from django.utils import timezone

from claudeops.lib.masked_fields import MaskedCharField


class Project(models.Model):
    slug = models.SlugField(max_length=64, unique=True)
    name = MaskedCharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        db_table = "projects"
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug
