"""Which session's log or transcript had a record of the CLI first: a fork and a resume copy records of another one."""

from django.db import models
from django.db.models import Q


class KnownRecord(models.Model):
    """A record of a log (`session`) or of an observed transcript (`transcript`), by `runner.copied.digest_of` it."""

    digest = models.BigIntegerField(primary_key=True)
    session = models.ForeignKey(
        "sessions_app.Session", null=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    transcript = models.ForeignKey(
        "memories.Transcript", null=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )

    class Meta:
        db_table = "known_records"
        indexes = [
            models.Index(fields=["session"], condition=Q(session__isnull=False), name="known_records_session"),
            models.Index(fields=["transcript"], condition=Q(transcript__isnull=False), name="known_records_transcript"),
        ]

    def __str__(self) -> str:
        return f"{self.digest}"
