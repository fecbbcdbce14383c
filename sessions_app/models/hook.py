"""What the door of the CLI's hooks has heard, and what it gave to a session of the CLI.

KnownRecord says which session's log or transcript had a record first: a fork and a resume copy records of another one.
"""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.masked import MaskedCharField, MaskedJSONField, MaskedTextField

SOURCE_RULE = r"^(?:(?!mcp__|Bash$|Read$)\w+|mcp__(?!.*__)[\w.-]+|Bash\([^()]+\)|Read\(/[^()]*\))\Z"
SOURCE_RULE_WORDS = "A tool, MCP server, command or folder, like WebFetch, mcp__mail, Bash(ceph status), Read(/srv/in)."


class HookHeard(models.Model):
    """When a hook was last heard of, by its event and the installation that called. Times are UTC.

    `installation` is the name of the token with which it was installed, or `sessions` for those of our own sessions.
    """

    event = models.CharField(max_length=32)
    installation = models.CharField(max_length=80)
    first_at = models.DateTimeField(default=timezone.now)
    last_at = models.DateTimeField(default=timezone.now)
    calls = models.PositiveBigIntegerField(default=0)
    problem = MaskedCharField(max_length=300, blank=True, default="", help_text="Why the last call was not answered.")

    class Meta:
        db_table = "hooks_heard"
        verbose_name_plural = "hooks heard"
        constraints = [models.UniqueConstraint(fields=["event", "installation"], name="hooks_heard_once")]

    def __str__(self) -> str:
        return f"{self.event} of {self.installation}"


class HookReceipt(models.Model):
    """The receipt of what a hook's answer put into a session of the CLI, ours (`session`) or a developer's.

    `cli_session_id`, `event` and `part` (the subagent's id; empty for the session itself) make it once. `included` is
    a list of {id, category, confidence, observation}, `sha256` that of the text in UTF-8, tokens are characters / 4.
    """

    cli_session_id = models.CharField(max_length=100)
    event = models.CharField(max_length=32)
    part = models.CharField(max_length=100, blank=True, default="")
    session = models.ForeignKey(
        "sessions_app.Session", null=True, on_delete=models.SET_NULL, related_name="hook_receipts"
    )
    project = models.ForeignKey("memories.Project", null=True, on_delete=models.SET_NULL, related_name="+")
    agent = models.CharField(max_length=64, blank=True, default="", help_text="The normalised id.")
    text = MaskedTextField(blank=True, default="")
    sha256 = models.CharField(max_length=64)
    tokens = models.PositiveIntegerField()
    included = MaskedJSONField(default=list, blank=True)
    at = models.DateTimeField(default=timezone.now)
    counted_at = models.DateTimeField(null=True, editable=False, help_text="When the memories counted it.")

    class Meta:
        db_table = "hook_receipts"
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["cli_session_id", "event", "part"], name="hook_receipts_once"),
        ]
        indexes = [models.Index(fields=["project", "agent", "-at"], name="hook_receipts_of_agent")]

    def __str__(self) -> str:
        return f"{self.event} of {self.cli_session_id}"


class PromptReceipt(models.Model):
    """That a hook of ours was called at the start of a session of a developer's CLI, or with a prompt of it.

    `prompt` is the prompt's hash (`runner.turns.prompt_hash`), empty for the start. `by_agent`: the CLI was started by
    another one, so that no person types into it. `transcript_path` is what the hook named, `project` that of its
    folder. The row of a start also says when a hook of the session was heard last, and when it ended. Times are UTC.
    """

    cli_session_id = models.CharField(max_length=100)
    prompt = models.CharField(max_length=64, blank=True, default="")
    transcript_path = models.CharField(max_length=500, blank=True, default="")
    by_agent = models.BooleanField(default=False)
    project = models.ForeignKey("memories.Project", null=True, on_delete=models.SET_NULL, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    heard_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "prompt_receipts"
        ordering = ["-at", "-id"]
        constraints = [models.UniqueConstraint(fields=["cli_session_id", "prompt"], name="prompt_receipts_once")]

    def __str__(self) -> str:
        return f"{'a prompt' if self.prompt else 'the start'} of {self.cli_session_id}"


class SourceRule(models.Model):
    """What an operator knows of a tool: who can write what it shows. It comes before the table of the product.

    `tool` is a tool rule as the CLI has them: WebFetch, mcp__mail, Bash(ceph status), Read(/srv/incoming).
    """

    class CountsAs(models.TextChoices):
        HOUSE = "house", "the own machines"
        OUTSIDE = "outside", "outside text"
        DEPENDS = "depends", "it depends on the text: sentences are outside text"

    tool = models.CharField(
        max_length=200,
        unique=True,
        validators=[RegexValidator(SOURCE_RULE, SOURCE_RULE_WORDS)],
        help_text="Such as WebFetch, mcp__mail, Bash(ceph status) or Read(/srv/incoming).",
    )
    counts_as = models.CharField(max_length=8, choices=CountsAs.choices)
    reason = MaskedCharField(max_length=300, help_text="Who can write what it shows.")
    by = models.CharField(max_length=150, blank=True, default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        db_table = "source_rules"
        ordering = ["tool"]

    def __str__(self) -> str:
        return self.tool

    def clean(self) -> None:
        if self.counts_as == self.CountsAs.DEPENDS and not self.tool.startswith("Bash("):
            raise ValidationError({"counts_as": "Only of a command it depends on the text; choose one of the others."})


class TranscriptFolder(models.Model):
    """A folder in which the CLI keeps transcripts, for which hooks were installed: the sweep looks through it.

    `project_path` limits it to sessions that worked in that folder or below; empty: all. What was written before
    `since` (UTC) is not swept. `last_at` and `last_path` are the transcript that was seen last there.
    """

    host = models.CharField(max_length=255)
    path = models.CharField(max_length=500)
    project_path = models.CharField(max_length=500, blank=True, default="")
    installation = models.CharField(max_length=80, blank=True, default="")
    since = models.DateTimeField(default=timezone.now)
    swept_at = models.DateTimeField(null=True, blank=True)
    last_at = models.DateTimeField(null=True, blank=True)
    last_path = MaskedTextField(blank=True, default="")
    problem = MaskedCharField(max_length=300, blank=True, default="")

    class Meta:
        db_table = "transcript_folders"
        constraints = [
            models.UniqueConstraint(fields=["host", "path", "project_path"], name="transcript_folders_once"),
        ]

    def __str__(self) -> str:
        return f"{self.path} on {self.host}"


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
