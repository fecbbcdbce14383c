"""Injection receipts: which memories a session's prompt held, which were left out, and why; and which it used."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.masked import MaskedJSONField, MaskedTextField


class InjectionReceipt(models.Model):
    """The receipt of one injection. It copies the memories, so that it stays true when they change.

    `included` and `left_out` are lists of {id, uuid, service, category, confidence, observation, reason}; `left_out`
    has the first ones only, `counts` counts all by reason. `sha256` is that of the text in UTF-8. `project` is the
    part of the project's memories: {text, tokens, budget, limit, counts}; their entries have `taxonomy` "project" and
    `score` {confidence, relevance, matched, value}. `agent_file` is the part of the agent's memory file: {file, path,
    text, sha256, tokens, items, left_out}; its entries have `taxonomy` "agent". `knowledge` is the part of what was
    found by the session's task: {text, sha256, tokens, budget, profile, query, trace}; its entries have `taxonomy`
    "knowledge". `curated` is the part of MEMORY.md: {text, sha256, tokens, budget, files, left_out}, where `files` are
    {file, project, commit, sha256, entries}.
    """

    session = models.OneToOneField("sessions_app.Session", on_delete=models.CASCADE, related_name="receipt")
    text = MaskedTextField(blank=True, default="")
    sha256 = models.CharField(max_length=64)
    budget = models.PositiveIntegerField(help_text="Tokens allowed.")
    tokens = models.PositiveIntegerField(help_text="Tokens used (characters / 4).")
    included = MaskedJSONField(default=list, blank=True)
    left_out = MaskedJSONField(default=list, blank=True)
    counts = models.JSONField(default=dict, blank=True)
    project = MaskedJSONField(default=dict, db_default=models.Value({}, models.JSONField()), blank=True)
    agent_file = MaskedJSONField(default=dict, db_default=models.Value({}, models.JSONField()), blank=True)
    knowledge = MaskedJSONField(default=dict, db_default=models.Value({}, models.JSONField()), blank=True)
    curated = MaskedJSONField(default=dict, db_default=models.Value({}, models.JSONField()), blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "injection_receipts"
        ordering = ["-created_at", "-id"]

    def of(self, taxonomy: str) -> list[dict[str, Any]]:
        """Return the included memories of one taxonomy; an entry without one is operational."""
        entries = [entry for entry in self.included if isinstance(entry, dict) and "id" in entry]
        return [entry for entry in entries if entry.get("taxonomy", "ops") == taxonomy]

    def __str__(self) -> str:
        return f"receipt of session {self.session_id}: {len(self.included)} memories, {self.tokens} tokens"


class Injected(models.Model):
    """A memory in a receipt, one row each, to find sessions by memory. Written together with the receipt.

    `memory_id` is not a foreign key: the row outlives the memory.
    """

    session = models.ForeignKey("sessions_app.Session", on_delete=models.CASCADE, related_name="injected")
    memory_id = models.PositiveBigIntegerField()

    class Meta:
        verbose_name = "injected memory"
        verbose_name_plural = "injected memories"
        db_table = "injected_memories"
        constraints = [models.UniqueConstraint(fields=["memory_id", "session"], name="injected_memories_once")]

    def __str__(self) -> str:
        return f"memory {self.memory_id} in session {self.session_id}"


class How(models.TextChoices):
    """How a session used a memory."""

    NAMED = "named", "named in its text"
    ANSWERED = "answered", "named in its structured answer"
    QUOTED = "quoted", "recalled and quoted"
    INJECTED = "injected", "in its prompt"


class UsedMemory(models.Model):
    """A memory that a session was shown and used, one row each; `how` is what was found first.

    `helped` follows from the session's end: True when it completed, False when it failed, None at any other end and
    until then. `credited_at` (UTC) is when the end was credited to the memory, or passed over; None until then.
    `memory_id` is not a foreign key: the row outlives the memory.
    """

    session = models.ForeignKey("sessions_app.Session", on_delete=models.CASCADE, related_name="used")
    memory_id = models.PositiveBigIntegerField()
    how = models.CharField(max_length=16, choices=How.choices)
    helped = models.BooleanField(null=True, blank=True)
    credited_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "used memory"
        verbose_name_plural = "used memories"
        db_table = "used_memories"
        constraints = [models.UniqueConstraint(fields=["memory_id", "session"], name="used_memories_once")]
        indexes = [
            # What a worker left uncredited when it died.
            models.Index(fields=["session"], condition=Q(credited_at=None), name="used_memories_uncredited"),
            # How often a memory was used and helped, counted without reading the rows.
            models.Index(fields=["memory_id", "helped"], name="used_memories_counted"),
        ]

    def __str__(self) -> str:
        return f"memory {self.memory_id} used by session {self.session_id}"
