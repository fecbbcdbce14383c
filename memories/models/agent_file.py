"""The memory file of an agent in a project's repository: its entries, conflicts, and what was captured for it."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.masked import MaskedCharField, MaskedTextField
from memories.models.project import checked_file_limits


class FileState(models.TextChoices):
    """How the last sync left the file."""

    NEW = "new", "not written yet"
    OK = "ok", "in sync"
    FULL = "full", "larger than its limits"
    UNREADABLE = "unreadable", "cannot be read"
    CONFLICT = "conflict", "in a merge conflict"
    DELETED = "deleted", "deleted in git"
    UNWRITABLE = "unwritable", "cannot be written"
    NO_REPOSITORY = "no_repository", "its repository is missing"


class AgentFile(models.Model):
    """One agent's memory file, by the normalised id of the agent. All times are UTC.

    `text` is the file after the last sync (credentials masked), `sha256` that of its bytes, `size` and `modified_ns`
    are what the file system said then: an unchanged file is not read. `limits` are its own (else the project's).
    """

    project = models.ForeignKey("memories.Project", on_delete=models.CASCADE, related_name="agent_files")
    agent = models.CharField(max_length=64)
    path = models.CharField(max_length=500, blank=True, default="", help_text="Below the repository path.")
    enabled = models.BooleanField(default=True)
    enabled_at = models.DateTimeField(default=timezone.now)
    enabled_by = models.CharField(max_length=150, blank=True, default="")
    enabled_reason = MaskedCharField(max_length=200, blank=True, default="")
    limits = models.JSONField(default=dict, blank=True, validators=[checked_file_limits])
    state = models.CharField(max_length=16, choices=FileState.choices, default=FileState.NEW)
    problem = MaskedCharField(max_length=500, blank=True, default="")
    text = MaskedTextField(blank=True, default="")
    sha256 = models.CharField(max_length=64, blank=True, default="")
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes.")
    modified_ns = models.BigIntegerField(default=0)
    seen_change = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="The latest change of any memory when it was synced; empty: compare it."
    )
    synced_at = models.DateTimeField(null=True, blank=True)
    written_at = models.DateTimeField(null=True, blank=True)
    written_by = models.CharField(max_length=150, blank=True, default="", help_text="Whose change was written last.")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "agent_files"
        ordering = ["project", "agent"]
        constraints = [models.UniqueConstraint(fields=["project", "agent"], name="agent_files_once")]

    def __str__(self) -> str:
        return f"{self.agent} in {self.project}"


class AgentFileEntry(models.Model):
    """A memory and its line in an agent's file. `text` is the line as both sides had it at the last sync.

    One that left the file stays here with `left_because`, as long as its memory is active. `author` wrote the line
    last: a person, a session's agent, or "file". `since` (UTC) is when that was.
    """

    file = models.ForeignKey(AgentFile, on_delete=models.CASCADE, related_name="entries")
    memory = models.ForeignKey("memories.Memory", null=True, on_delete=models.SET_NULL, related_name="file_entries")
    section = MaskedCharField(max_length=120)
    text = MaskedTextField()
    position = models.PositiveIntegerField(default=0, help_text="Its order in the file.")
    left_because = models.CharField(max_length=200, blank=True, default="")
    author = MaskedCharField(max_length=150, blank=True, default="")
    stated = MaskedCharField(
        max_length=150,
        blank=True,
        default="",
        help_text="The author's address, as git states it: it proves nothing.",
    )
    since = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "agent_file_entries"
        verbose_name_plural = "agent file entries"
        ordering = ["file", "position", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["file", "memory"], condition=Q(memory__isnull=False), name="agent_file_entries_once"
            ),
        ]

    def __str__(self) -> str:
        return self.text[:80]


class ConflictKind(models.TextChoices):
    EDITED = "edited", "both texts changed"
    REMOVED_IN_FILE = "removed_in_file", "removed in the file, changed here"
    REMOVED_HERE = "removed_here", "changed in the file, deactivated here"
    CONTRADICTED = "contradicted", "a captured text contradicts the file"


class ConflictAnswer(models.TextChoices):
    FILE = "file", "keep the file's"
    OTHER = "other", "take the other one"
    BOTH = "both", "keep both"


class AgentFileConflict(models.Model):
    """Two texts for one line since the last sync; until it is answered the file keeps `file_text` (empty: no line).

    `other_text` is the database's text (empty: deactivated); `other` is its memory when that is another one than
    `memory`, as for a captured text that contradicts the file's.
    """

    file = models.ForeignKey(AgentFile, on_delete=models.CASCADE, related_name="conflicts")
    memory = models.ForeignKey("memories.Memory", null=True, on_delete=models.SET_NULL, related_name="+")
    other = models.ForeignKey("memories.Memory", null=True, on_delete=models.SET_NULL, related_name="+")
    kind = models.CharField(max_length=16, choices=ConflictKind.choices)
    section = MaskedCharField(max_length=120, blank=True, default="")
    base_text = MaskedTextField(blank=True, default="")
    file_text = MaskedTextField(blank=True, default="")
    other_text = MaskedTextField(blank=True, default="")
    author = MaskedCharField(max_length=150, blank=True, default="", help_text="Who changed the file.")
    found_at = models.DateTimeField(default=timezone.now)
    answer = models.CharField(max_length=8, choices=ConflictAnswer.choices, blank=True, default="")
    answered_at = models.DateTimeField(null=True, blank=True)
    answered_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        db_table = "agent_file_conflicts"
        ordering = ["file", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["file", "memory"],
                condition=Q(answered_at=None, other=None) & ~Q(kind=ConflictKind.CONTRADICTED),
                name="agent_file_conflicts_open_once",
            ),
            models.UniqueConstraint(
                fields=["file", "other"],
                condition=Q(answered_at=None, other__isnull=False),
                name="agent_file_conflicts_captured_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.file_text[:60]}"


class CaptureOutcome(models.TextChoices):
    CAPTURED = "captured", "captured"
    CONFIRMED = "confirmed", "confirmed a known one"
    REPLACED = "replaced", "deactivated by a replacement"
    HELD = "held", "held for review"
    REFUSED = "refused", "refused"


class AgentCapture(models.Model):
    """What one answer of an agent brought for its file, taken or not; `reason` says why not.

    `origin` names the answer (`session:UUID`, or `hook:CLI-SESSION:SUBAGENT`) and `key` is the SHA-256 of the
    statement, or of what was refused: together they count once. `memory_id` outlives the memory. Times are UTC.
    """

    project = models.ForeignKey("memories.Project", on_delete=models.CASCADE, related_name="+")
    agent = models.CharField(max_length=64)
    origin = models.CharField(max_length=200)
    key = models.CharField(max_length=64)
    session = models.ForeignKey("sessions_app.Session", null=True, on_delete=models.SET_NULL, related_name="+")
    form = models.CharField(max_length=12, help_text="block, remember, memories or phrase.")
    category = models.CharField(max_length=32, blank=True, default="")
    text = MaskedTextField(blank=True, default="")
    outcome = models.CharField(max_length=10, choices=CaptureOutcome.choices)
    reason = MaskedCharField(max_length=300, blank=True, default="")
    memory_id = models.PositiveBigIntegerField(null=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "agent_captures"
        ordering = ["-at", "-id"]
        constraints = [models.UniqueConstraint(fields=["origin", "key"], name="agent_captures_once")]
        indexes = [models.Index(fields=["project", "agent", "-at"], name="agent_captures_of_agent")]

    def __str__(self) -> str:
        return f"{self.outcome}: {self.text[:60]}"
