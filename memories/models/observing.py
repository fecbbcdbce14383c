"""Observed transcripts: their parts, the stages of each part, its segments, and the facts in them. Times are UTC."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.masked import MaskedCharField, MaskedJSONField, MaskedTextField
from memories.models.memory import Exposure, Source


class TranscriptKind(models.TextChoices):
    CLAUDE = "claude", "transcript of Claude Code"
    STREAM = "stream", "stream-json log"
    TEXT = "text", "plain text"


class ArrivedBy(models.TextChoices):
    """What brought a transcript first."""

    SESSION = "session", "the end of a session"
    HOOK = "hook", "a hook"
    SWEEP = "sweep", "the sweep"
    COMMAND = "command", "the command"


class Transcript(models.Model):
    """A session's transcript, ours (`session`) or a developer's. The file is the truth; this says what was observed.

    `key` is its natural key: `session:<id of the CLI>`, or `text:<SHA-256 of the first 4,096 bytes>` without an id.
    `observed_to` is the byte up to which its parts reach, `prefix_sha256` that of the bytes before it. `state` is what
    the reader needs to go on there. `ended_at` is when its end was heard of; None: it may go on.
    """

    key = models.CharField(max_length=200, unique=True)
    kind = models.CharField(max_length=8, choices=TranscriptKind.choices)
    arrived_by = models.CharField(max_length=8, choices=ArrivedBy.choices)
    installation = models.CharField(max_length=80, blank=True, default="", help_text="Whose hook named it.")
    cli_session_id = models.CharField(max_length=100, blank=True, default="")
    session = models.ForeignKey(
        "sessions_app.Session", null=True, blank=True, on_delete=models.SET_NULL, related_name="transcripts"
    )
    project = models.ForeignKey(
        "memories.Project", null=True, blank=True, on_delete=models.SET_NULL, related_name="transcripts"
    )
    agent = models.CharField(max_length=64, null=True, blank=True)
    host = models.CharField(max_length=255, help_text="The host that has the file.")
    path = MaskedTextField()
    folder = MaskedTextField(blank=True, default="", help_text="The folder in which the session worked.")
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes, when it was last seen.")
    modified_ns = models.BigIntegerField(default=0)
    observed_to = models.PositiveBigIntegerField(default=0)
    prefix_sha256 = models.CharField(max_length=64, blank=True, default="")
    state = MaskedJSONField(default=dict, blank=True)
    exposure = models.CharField(max_length=8, choices=Exposure.choices, default=Exposure.NOTHING)
    exposed_to = MaskedJSONField(default=list, blank=True)
    first_at = models.DateTimeField(null=True, blank=True, help_text="The time stamp of its first line.")
    last_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    problem = MaskedCharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "transcripts"
        ordering = ["-seen_at", "-id"]
        indexes = [
            models.Index(fields=["-seen_at", "-id"], name="transcripts_seen"),
            models.Index(fields=["cli_session_id"], name="transcripts_cli_session"),
            models.Index(fields=["project", "-seen_at", "-id"], name="transcripts_project"),
        ]

    def __str__(self) -> str:
        return f"transcript {self.pk}"

    @property
    def source_name(self) -> str:
        """The name of its session in the source of a fact: `session-12`, or the id of the CLI."""
        if self.session_id is not None:
            return f"session-{self.session_id}"
        return f"session-{self.cli_session_id or self.key.partition(':')[2][:12]}"


class PartState(models.TextChoices):
    """`failed`: a stage was tried as often as it may be; a person can send it again.

    `unreadable`: the observer's answer could not be read. It is asked again later, until its stage has failed.
    """

    WAITING = "waiting", "waiting"
    DONE = "done", "done"
    FAILED = "failed", "failed"
    UNREADABLE = "unreadable", "unreadable"


class TranscriptPart(models.Model):
    """One piece of a transcript, observed by one call: the bytes from `start` to `end`, whole lines.

    `prepared` is what the model is shown (credentials masked), kept until the part is done; `removed` counts what
    was taken out of it, by reason. `answer` is the model's raw answer, `unread` what of it could not be read, in words.
    """

    transcript = models.ForeignKey(Transcript, on_delete=models.CASCADE, related_name="parts", db_index=False)
    number = models.PositiveIntegerField(help_text="From 1.")
    start = models.PositiveBigIntegerField()
    end = models.PositiveBigIntegerField()
    state = models.CharField(max_length=10, choices=PartState.choices, default=PartState.WAITING)
    prepared = MaskedTextField(blank=True, default="")
    prepared_sha256 = models.CharField(max_length=64, blank=True, default="")
    removed = models.JSONField(default=dict, blank=True)
    answer = MaskedTextField(blank=True, default="")
    prompt_hash = models.CharField(max_length=64, blank=True, default="")
    call = models.ForeignKey("memories.ModelCall", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    model = models.CharField(max_length=100, blank=True, default="")
    unread = MaskedJSONField(default=list, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "transcript_parts"
        ordering = ["transcript", "number"]
        constraints = [
            models.UniqueConstraint(fields=["transcript", "number"], name="transcript_parts_number"),
            models.UniqueConstraint(fields=["transcript", "start"], name="transcript_parts_start"),
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(state="waiting"), name="transcript_parts_waiting"),
            models.Index(fields=["id"], condition=Q(state="failed"), name="transcript_parts_failed"),
            models.Index(fields=["id"], condition=Q(state="unreadable"), name="transcript_parts_unreadable"),
        ]

    def __str__(self) -> str:
        return f"part {self.number} of transcript {self.transcript_id}"


class StageName(models.TextChoices):
    """The stages of a part, in their order."""

    PREPARE = "prepare", "prepare"
    CALL = "call", "call"
    PARSE = "parse", "parse"
    CLASSIFY = "classify", "classify"
    GATE = "gate", "gate"
    MATCH = "match", "match"
    STORE = "store", "store"


class StageState(models.TextChoices):
    WAITING = "waiting", "waiting"
    RUNNING = "running", "running"
    DONE = "done", "done"
    FAILED = "failed", "failed"


class Stage(models.Model):
    """One stage of a part. `claimed_by` (host and process) runs it; a claim without a beat for a while is void.

    `not_before`: when it may be tried again. `counts` says what came in, what came out and what was dropped.
    """

    part = models.ForeignKey(TranscriptPart, on_delete=models.CASCADE, related_name="stages", db_index=False)
    name = models.CharField(max_length=8, choices=StageName.choices)
    position = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=8, choices=StageState.choices, default=StageState.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    claimed_by = models.CharField(max_length=300, blank=True, default="")
    claimed_at = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    counts = models.JSONField(default=dict, blank=True)
    problem = MaskedCharField(max_length=500, blank=True, default="", help_text="Why it waits or failed.")

    class Meta:
        db_table = "observation_stages"
        verbose_name = "observation stage"
        ordering = ["part", "position"]
        constraints = [models.UniqueConstraint(fields=["part", "name"], name="observation_stages_once")]
        indexes = [
            models.Index(
                fields=["not_before", "id"],
                condition=Q(state__in=("waiting", "running")),
                name="observation_stages_open",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of part {self.part_id}"


class Segment(models.Model):
    """One topic of a transcript: a narrative of 1 to 3 sentences. `number` counts within the transcript, from 1.

    `first_turn` and `last_turn` are its turns, `start` and `end` their bytes.
    """

    transcript = models.ForeignKey(Transcript, on_delete=models.CASCADE, related_name="segments", db_index=False)
    part = models.ForeignKey(TranscriptPart, on_delete=models.CASCADE, related_name="segments")
    number = models.PositiveIntegerField()
    narrative = MaskedTextField(blank=True, default="")
    first_turn = models.PositiveIntegerField(null=True, blank=True)
    last_turn = models.PositiveIntegerField(null=True, blank=True)
    start = models.PositiveBigIntegerField(default=0)
    end = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "segments"
        ordering = ["transcript", "number"]
        constraints = [models.UniqueConstraint(fields=["transcript", "number"], name="segments_number")]

    def __str__(self) -> str:
        return f"segment {self.number} of transcript {self.transcript_id}"


class Priority(models.IntegerChoices):
    RED = 1, "🔴 must"
    YELLOW = 2, "🟡 pattern"
    GREEN = 3, "🟢 note"


class FactKind(models.TextChoices):
    """The type of an observation."""

    CORRECTION = "correction", "correction"
    CONSTRAINT = "constraint", "constraint"
    REQUIREMENT = "requirement", "hard requirement"
    PATTERN = "pattern", "recurring pattern"
    NOTE = "note", "minor note"


class ClassifiedBy(models.TextChoices):
    OBSERVER = "observer", "observer"
    KEYWORDS = "keywords", "keywords"
    MODEL = "model", "model"


class FactOutcome(models.TextChoices):
    """What became of a fact; empty until it is stored."""

    CREATED = "created", "stored as a new memory"
    MERGED = "merged", "merged into a known memory"
    HELD = "held", "held for review"
    DISCARDED = "discarded", "discarded"
    DUPLICATE = "duplicate", "said before in this session"


class Fact(models.Model):
    """One statement that the observer distilled. `said_*` is the model's word; the others are what we made of it.

    `verdict` is the gate's (allow, hold, discard) with its `confidence` (0..1), its `reasons` (codes of
    `memories.capture.reasons`) and `reason` in words. `turn` is the number of its source turn and `excerpt` that turn's
    text, cut. `support` is who supports it, with quotes. `match` is what the text was compared with: {memory, relation,
    score}.
    """

    segment = models.ForeignKey(Segment, on_delete=models.CASCADE, related_name="facts", db_index=False)
    number = models.PositiveIntegerField(help_text="Within its segment, from 1.")
    text = MaskedTextField()
    source = models.CharField(max_length=200, help_text="For example session-12-segment-2.")
    kind = models.CharField(max_length=16, choices=FactKind.choices, default=FactKind.NOTE)
    priority = models.PositiveSmallIntegerField(choices=Priority.choices, default=Priority.GREEN)
    said_gate = models.CharField(max_length=16, blank=True, default="")
    said_confidence = models.FloatField(null=True, blank=True)
    said_category = MaskedCharField(max_length=64, blank=True, default="")
    category = models.CharField(max_length=32, blank=True, default="")
    category_confidence = models.FloatField(null=True, blank=True)
    classified_by = models.CharField(max_length=8, choices=ClassifiedBy.choices, blank=True, default="")
    taxonomy_version = models.PositiveSmallIntegerField(default=0)
    verdict = models.CharField(max_length=8, blank=True, default="")
    confidence = models.FloatField(null=True, blank=True)
    reasons = models.JSONField(default=list, blank=True)
    reason = MaskedCharField(max_length=500, blank=True, default="")
    turn = models.PositiveIntegerField(null=True, blank=True)
    excerpt = MaskedTextField(blank=True, default="")
    support = MaskedJSONField(default=dict, blank=True)
    match = MaskedJSONField(default=dict, blank=True)
    outcome = models.CharField(max_length=9, choices=FactOutcome.choices, blank=True, default="")
    memory = models.ForeignKey(
        "memories.Memory", null=True, blank=True, on_delete=models.SET_NULL, related_name="facts", db_index=False
    )
    stored_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "facts"
        ordering = ["segment", "number"]
        constraints = [models.UniqueConstraint(fields=["segment", "number"], name="facts_number")]
        indexes = [
            models.Index(fields=["memory", "-id"], condition=Q(memory__isnull=False), name="facts_memory"),
            models.Index(fields=["stored_at"], condition=Q(outcome="discarded"), name="facts_discarded"),
        ]

    def __str__(self) -> str:
        return f"fact {self.number} of segment {self.segment_id}"


class Label(models.TextChoices):
    """What a person did with what the gate decided; empty: nothing yet."""

    RELEASED = "released", "released"
    DISCARDED = "discarded", "discarded"
    EDITED = "edited", "edited"
    UNDONE = "undone", "undone"


class GateDecision(models.Model):
    """One decision of the gate, to be explained and calibrated. A row for each hold and discard, and for each fact.

    `reasons` are codes of `memories.capture.reasons`, the deciding one first; `words` says it for people. `text` is
    kept of what was discarded, which no memory holds (deleted after 14 days). `label` is what a person did with it
    since. `key` is its natural key, by which a replayed log leaves one row.
    """

    key = models.CharField(max_length=64, null=True, blank=True, unique=True, help_text="So that it is noted once.")
    at = models.DateTimeField(default=timezone.now)
    channel = models.CharField(max_length=16, help_text="text, structured, mcp, api, import, file, hook or observer.")
    taxonomy = models.CharField(max_length=16)
    verdict = models.CharField(max_length=8)
    reasons = models.JSONField(default=list, blank=True)
    words = MaskedCharField(max_length=500, blank=True, default="")
    said_gate = models.CharField(max_length=16, blank=True, default="")
    said_confidence = models.FloatField(null=True, blank=True)
    model = models.CharField(max_length=100, blank=True, default="")
    text = MaskedTextField(blank=True, default="")
    category = models.CharField(max_length=32, blank=True, default="")
    service = models.CharField(max_length=64, blank=True, default="")
    project = models.ForeignKey(
        "memories.Project", null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    agent = models.CharField(max_length=64, null=True, blank=True)
    session = models.ForeignKey(
        "sessions_app.Session", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    source = models.CharField(max_length=16, choices=Source.choices, default=Source.RUN)
    actor = models.CharField(max_length=150, blank=True, default="", help_text="Who said it, as in a memory's history.")
    exposure = models.CharField(max_length=8, choices=Exposure.choices, default=Exposure.NOTHING)
    exposed_to = MaskedJSONField(default=list, blank=True)
    memory = models.ForeignKey(
        "memories.Memory",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="gate_decisions",
        db_index=False,
    )
    fact = models.OneToOneField(
        Fact, null=True, blank=True, on_delete=models.CASCADE, related_name="decision", db_index=False
    )
    label = models.CharField(max_length=9, choices=Label.choices, blank=True, default="")
    labelled_by = models.CharField(max_length=150, blank=True, default="")
    labelled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "gate_decisions"
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["verdict", "-at", "-id"], name="gate_decisions_verdict"),
            models.Index(fields=["-at", "-id"], name="gate_decisions_at"),
            models.Index(fields=["memory"], condition=Q(memory__isnull=False), name="gate_decisions_memory"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} at {self.at:%Y-%m-%d %H:%M} UTC"


class GateThreshold(models.Model):
    """A threshold of the gate from `at` on: append-only, the latest row of a name counts. `before` is what it was."""

    name = models.CharField(max_length=40)
    value = models.FloatField()
    before = models.FloatField()
    at = models.DateTimeField(default=timezone.now)
    by = models.CharField(max_length=150)
    reason = MaskedCharField(max_length=500, blank=True, default="")

    class Meta:
        db_table = "gate_thresholds"
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"
