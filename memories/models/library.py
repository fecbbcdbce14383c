"""The index of the library's files. Each row can be made again from them."""

from __future__ import annotations

from django.db import models

from claudeops.lib.masked import MaskedCharField, MaskedJSONField, MaskedTextField


class JournalEntry(models.Model):
    """One line of the journal: what was done. `uid` is its permanent name, `line` its place in the file of its month.

    `action` is a verb and `tool` a noun of the vocabulary. `detail` and `reason` are masked here, and in the file as
    they were written. `session_id` and `project` are no keys: a line outlives both. `held` says why the gate holds it,
    so that no agent is told it; "" where it does not. All times are UTC.
    """

    uid = models.CharField(max_length=64, unique=True)
    at = models.DateTimeField()
    action = models.CharField(max_length=40)
    tool = models.CharField(max_length=80)
    detail = MaskedTextField()
    reason = MaskedTextField(blank=True, default="")
    session_id = models.PositiveBigIntegerField(null=True)
    agent = models.CharField(max_length=64, blank=True, default="")
    project = models.CharField(max_length=64, blank=True, default="")
    host = models.CharField(max_length=255, blank=True, default="")
    by = MaskedCharField(max_length=150, blank=True, default="")
    held = models.CharField(max_length=500, blank=True, default="")
    file = models.ForeignKey("memories.JournalFile", on_delete=models.CASCADE, related_name="entries")
    line = models.PositiveIntegerField(help_text="From 1.")

    class Meta:
        db_table = "journal_entries"
        verbose_name_plural = "journal entries"
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["-at", "-id"], name="journal_entries_at"),
            models.Index(fields=["action", "-at"], name="journal_entries_action"),
            models.Index(fields=["tool", "-at"], name="journal_entries_tool"),
            models.Index(fields=["project", "-at"], name="journal_entries_project"),
            models.Index(
                fields=["session_id"], condition=models.Q(session_id__isnull=False), name="journal_entries_session"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.action} {self.tool}"


class JournalFile(models.Model):
    """A month of the journal on a host: how much of its file is indexed, in bytes and lines.

    `broken` counts lines that are no entries; the index leaves them out, the file keeps them.
    """

    host = models.CharField(max_length=255)
    month = models.CharField(max_length=7, help_text="Such as 2026-11.")
    size = models.PositiveBigIntegerField(default=0)
    lines = models.PositiveIntegerField(default=0)
    broken = models.PositiveIntegerField(default=0)
    problem = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        db_table = "journal_files"
        ordering = ["-month", "host"]
        constraints = [models.UniqueConstraint(fields=["host", "month"], name="journal_files_once")]

    def __str__(self) -> str:
        return f"journal of {self.month} on {self.host}"


class Decision(models.Model):
    """A decision record of a project, as its file was last read. Links are numbers, or file names without one.

    `status` is canonical, "" for a word that is none. `folder` is below the repository, `day` its date.
    """

    project = models.ForeignKey("memories.Project", on_delete=models.CASCADE, related_name="decisions")
    folder = models.CharField(max_length=200)
    name = models.CharField(max_length=255)
    number = models.PositiveIntegerField(null=True)
    title = MaskedCharField(max_length=300)
    status = models.CharField(max_length=12, blank=True, default="")
    day = models.DateField(null=True)
    deciders = MaskedJSONField(default=list, blank=True)
    tags = MaskedJSONField(default=list, blank=True)
    supersedes = MaskedJSONField(default=list, blank=True)
    superseded_by = MaskedJSONField(default=list, blank=True)
    paths = MaskedJSONField(default=list, blank=True)
    services = MaskedJSONField(default=list, blank=True)
    text = MaskedTextField(blank=True, default="")
    problems = MaskedJSONField(default=list, blank=True)
    size = models.PositiveBigIntegerField(default=0)
    modified_ns = models.PositiveBigIntegerField(default=0)

    class Meta:
        db_table = "decisions"
        ordering = ["project", "number", "name"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="decisions_once")]

    def __str__(self) -> str:
        return f"decision {self.key}: {self.title}"

    @property
    def key(self) -> str:
        return str(self.number) if self.number is not None else self.name

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}"


class Skill(models.Model):
    """A `SKILL.md` of a project, or of the account that runs the workers (`project` None), as it was last read."""

    project = models.ForeignKey("memories.Project", null=True, on_delete=models.CASCADE, related_name="skills")
    host = models.CharField(max_length=255)
    path = models.CharField(max_length=500, help_text="Absolute, on its host.")
    name = MaskedCharField(max_length=100)
    description = MaskedTextField(blank=True, default="")
    text = MaskedTextField(blank=True, default="")
    problem = MaskedCharField(max_length=500, blank=True, default="")
    size = models.PositiveBigIntegerField(default=0)
    modified_ns = models.PositiveBigIntegerField(default=0)

    class Meta:
        db_table = "skills"
        ordering = ["name", "path"]
        constraints = [models.UniqueConstraint(fields=["host", "path"], name="skills_once")]

    def __str__(self) -> str:
        return f"skill {self.name}"
