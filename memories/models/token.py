"""API tokens: their scopes and project. The secret is not stored."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils import timezone


class Scope(models.TextChoices):
    """The permissions of a token. Each stands alone (write does not read); admin includes all.

    `review` shows what the gate holds, in what the other scopes read or change. `hook` opens the door of the CLI's
    hooks alone.
    """

    READ = "read", "read"
    REVIEW = "review", "review"
    WRITE = "write", "write"
    RUN = "run", "run"
    HOOK = "hook", "hook"
    ADMIN = "admin", "admin"


class ApiToken(models.Model):
    """One token. `secret_hash` is the SHA-256 (hexadecimal) of the secret, `prefix` its beginning, for people.

    With a project it sees that project and the global memories, changes only the project's, and runs only the project's
    agents; deleting the project deletes the token. It requests no session above `max_tier`. `last_used_at` is exact to
    a minute. From `expires_at` on (null: never) it opens nothing. All times are UTC.
    """

    name = models.CharField(
        max_length=64, unique=True, help_text="Who or what uses it. The history shows it as: token NAME."
    )
    prefix = models.CharField(max_length=16, editable=False)
    secret_hash = models.CharField(max_length=64, unique=True, editable=False)
    scopes = models.JSONField(default=list)
    project = models.ForeignKey(
        "memories.Project",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="tokens",
        help_text="Empty = every project.",
    )
    max_tier = models.PositiveSmallIntegerField(
        default=1,
        choices=[(1, "1 (observe)"), (2, "2 (investigate)"), (3, "3 (remediate)")],
        verbose_name="highest tier",
        help_text="The highest tier of the sessions it may request.",
    )
    created_by = models.CharField(max_length=150, blank=True, default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField("expires", null=True, blank=True, help_text="Empty = never.")
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_by = models.CharField(max_length=150, blank=True, default="", editable=False)

    class Meta:
        db_table = "api_tokens"
        ordering = ["name"]
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"token {self.name}"

    def expired(self, at: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= at
