"""The curated memory: MEMORY.md files, their commits, reflections, and proposals with their triage. Times are UTC."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from claudeops.lib.masked import MaskedCharField, MaskedJSONField, MaskedTextField
from memories.models.memory import Trust


class MemoryFile(models.Model):
    """One MEMORY.md, global (`project` None) or of a project: the file in its git repository as it was last read.

    The repository is the truth. `text` is what sessions are told, also on hosts without the repository; `commit` is the
    commit it is of, `blame` has for each line of `text` the number of its commit's row or null. `branch` is the branch
    it was found on first: another one is not followed. `pending` is a change that is being made: what a crash leaves,
    the next run completes. `problem` says why the file cannot be read or written; "" when it can.
    """

    project = models.OneToOneField(
        "memories.Project", null=True, blank=True, on_delete=models.CASCADE, related_name="memory_file"
    )
    host = models.CharField(max_length=255, help_text="The host that has the repository.")
    repository = MaskedTextField(help_text="The folder of the repository on that host.")
    path = MaskedCharField(max_length=500, help_text="Of the file, below the repository.")
    branch = models.CharField(max_length=255, blank=True, default="")
    commit = models.CharField(max_length=64, blank=True, default="")
    text = MaskedTextField(blank=True, default="")
    sha256 = models.CharField(max_length=64, blank=True, default="", help_text="Of the file's bytes.")
    entries = models.PositiveIntegerField(default=0)
    blame = models.JSONField(default=list, blank=True)
    pending = MaskedJSONField(default=dict, blank=True)
    problem = MaskedCharField(max_length=500, blank=True, default="")
    problem_since = models.DateTimeField(null=True, blank=True)
    read_at = models.DateTimeField(null=True, blank=True)
    stamp = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="What the file and HEAD looked like then."
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "memory_files"
        ordering = [F("project__slug").asc(nulls_first=True)]
        constraints = [
            models.UniqueConstraint(Coalesce("project", Value(0)), name="memory_files_one_a_scope"),
        ]

    def __str__(self) -> str:
        return f"MEMORY.md of {self.project.slug}" if self.project else "MEMORY.md"


class CommitKind(models.TextChoices):
    """`edit`: a person's, made by hand or on the page."""

    PROMOTION = "promotion", "promotion"
    EDIT = "edit", "edit"
    REVERT = "revert", "revert"
    FIRST = "first", "first version"


class MemoryFileCommit(models.Model):
    """A commit that changed a memory file, as git has it; made again from git at any time."""

    file = models.ForeignKey(MemoryFile, on_delete=models.CASCADE, related_name="commits", db_index=False)
    sha = models.CharField(max_length=64)
    at = models.DateTimeField()
    kind = models.CharField(max_length=9, choices=CommitKind.choices)
    author = MaskedCharField(max_length=200)
    email = MaskedCharField(max_length=200, blank=True, default="", help_text="The author's.")
    signer = MaskedCharField(max_length=200, blank=True, default="", help_text="Whose key signed it, by the project.")
    agents = models.CharField(max_length=200, blank=True, default="", help_text="Who was at work when it came.")
    is_ours = models.BooleanField(default=False, help_text="claudeops made it.")
    subject = MaskedCharField(max_length=500, blank=True, default="")
    body = MaskedTextField(blank=True, default="")
    added = models.PositiveIntegerField(default=0)
    removed = models.PositiveIntegerField(default=0)
    proposal = models.ForeignKey(
        "memories.Proposal", null=True, blank=True, on_delete=models.SET_NULL, related_name="commits"
    )

    class Meta:
        db_table = "memory_file_commits"
        ordering = ["-at", "-id"]
        constraints = [models.UniqueConstraint(fields=["file", "sha"], name="memory_file_commits_once")]
        indexes = [models.Index(fields=["file", "-at", "-id"], name="memory_file_commits_at")]

    def __str__(self) -> str:
        return f"{self.sha[:7]} {self.subject}"


class ReflectionState(models.TextChoices):
    """`asked`: its observations are chosen, the model has not answered. `answered`: the answer is stored, not read."""

    ASKED = "asked", "waits for the model"
    ANSWERED = "answered", "answered"
    DONE = "done", "done"
    FAILED = "failed", "failed"


class Reflection(models.Model):
    """One call of the reflector for one file: its observations, and the proposals that its answer became.

    `observations` are their ids in the order in which the model was shown them, as they were at `until`; `text` is that
    message (until it is done), `shown_sha256` that of the file's text.
    `target_tokens` is the compression target, as (least, most). `unread` says what of the answer could not be read.
    """

    file = models.ForeignKey(MemoryFile, on_delete=models.CASCADE, related_name="reflections", db_index=False)
    number = models.PositiveIntegerField(help_text="Within its file, from 1.")
    state = models.CharField(max_length=8, choices=ReflectionState.choices, default=ReflectionState.ASKED)
    until = models.DateTimeField()
    observations = models.JSONField(default=list, blank=True)
    text = MaskedTextField(blank=True, default="")
    shown_sha256 = models.CharField(max_length=64, blank=True, default="")
    target_tokens = models.JSONField(default=list, blank=True)
    answer = MaskedTextField(blank=True, default="")
    prompt_hash = models.CharField(max_length=64, blank=True, default="")
    model = models.CharField(max_length=100, blank=True, default="")
    call = models.ForeignKey("memories.ModelCall", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    unread = MaskedJSONField(default=list, blank=True)
    counts = models.JSONField(default=dict, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    claimed_by = models.CharField(max_length=300, blank=True, default="")
    claimed_until = models.DateTimeField(null=True, blank=True)
    problem = MaskedCharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "reflections"
        ordering = ["-created_at", "-id"]
        constraints = [models.UniqueConstraint(fields=["file", "number"], name="reflections_number")]
        indexes = [
            models.Index(fields=["id"], condition=Q(state__in=("asked", "answered")), name="reflections_open"),
        ]

    def __str__(self) -> str:
        return f"reflection {self.number} of {self.file}"


class ProposalKind(models.TextChoices):
    ADD = "add", "add"
    CHANGE = "change", "change"
    REMOVE = "remove", "remove"


class ProposalState(models.TextChoices):
    """`approved`: decided, and waiting for its commit."""

    WAITING = "waiting", "waiting"
    APPROVED = "approved", "approved"
    PROMOTED = "promoted", "in MEMORY.md"
    MERGED = "merged", "merged into an entry"
    REJECTED = "rejected", "rejected"
    EXPIRED = "expired", "expired"


class Tier(models.IntegerChoices):
    """Who decides: the tier that a waiting proposal is at, or that decided it."""

    RULES = 1, "rules"
    MODEL = 2, "model"
    PERSON = 3, "person"


class Proposal(models.Model):
    """One change of a memory file that waits for triage, or what became of it.

    `section` is the slug of a category of the taxonomy knowledge. `target` is the text of the entry to change or
    remove, as it was proposed; "" for an addition. `text` is the entry as it would be written ("" for a removal), and
    `proposed_text` what the reflector wrote. `trust` is the lowest of its evidence. With `conflict` ({base, theirs,
    ours, line}) a person edited the same lines meanwhile, and a person chooses. `key` is its natural key: a run that
    is repeated proposes nothing twice. `claimed_until` is the claim of a triage worker. `commit` is the promotion's.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    key = models.CharField(max_length=64, unique=True)
    file = models.ForeignKey(MemoryFile, on_delete=models.CASCADE, related_name="proposals", db_index=False)
    reflection = models.ForeignKey(
        Reflection, null=True, blank=True, on_delete=models.SET_NULL, related_name="proposals"
    )
    kind = models.CharField(max_length=6, choices=ProposalKind.choices)
    section = models.CharField(max_length=32)
    target = MaskedTextField(blank=True, default="")
    text = MaskedTextField(blank=True, default="")
    proposed_text = MaskedTextField(blank=True, default="")
    state = models.CharField(max_length=8, choices=ProposalState.choices, default=ProposalState.WAITING)
    tier = models.PositiveSmallIntegerField(choices=Tier.choices, default=Tier.RULES)
    confidence = models.FloatField(null=True, blank=True, help_text="0 to 1.")
    trust = models.CharField(max_length=8, choices=Trust.choices, default=Trust.EXTERNAL)
    why = MaskedCharField(max_length=500, blank=True, default="", help_text="The reason of its last decision.")
    conflict = MaskedJSONField(default=dict, blank=True)
    by = models.CharField(max_length=150, blank=True, default="", help_text="Who proposed it: reflector:MODEL, a user.")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    merged_count = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Proposals that were merged into the entry that it wrote."
    )
    tries = models.PositiveSmallIntegerField(default=0, help_text="Calls of tier 2 without a usable answer about it.")
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=150, blank=True, default="")
    commit = models.CharField(max_length=64, blank=True, default="")
    problem = MaskedCharField(max_length=500, blank=True, default="", help_text="Why it could not be committed yet.")
    notified_at = models.DateTimeField(null=True, blank=True, help_text="When its task item was sent.")

    class Meta:
        db_table = "proposals"
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["tier", "id"], condition=Q(state="waiting"), name="proposals_waiting"),
            models.Index(fields=["id"], condition=Q(state="approved"), name="proposals_approved"),
            models.Index(fields=["expires_at"], condition=Q(state="waiting"), name="proposals_expiry"),
            models.Index(fields=["state", "-decided_at", "-id"], name="proposals_decided"),
            models.Index(fields=["file", "-created_at", "-id"], name="proposals_file"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.text or self.target}"[:120]


class ProposalEvidence(models.Model):
    """An observation that a proposal came from. The copy of its text and trust outlives the memory."""

    proposal = models.ForeignKey(Proposal, on_delete=models.CASCADE, related_name="evidence", db_index=False)
    memory = models.ForeignKey(
        "memories.Memory", null=True, blank=True, on_delete=models.SET_NULL, related_name="proposal_evidence"
    )
    memory_uuid = models.UUIDField()
    text = MaskedTextField(blank=True, default="")
    trust = models.CharField(max_length=8, choices=Trust.choices)
    session = models.ForeignKey(
        "sessions_app.Session", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        db_table = "proposal_evidence"
        verbose_name_plural = "proposal evidence"
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["proposal", "memory_uuid"], name="proposal_evidence_once")]

    def __str__(self) -> str:
        return f"memory {self.memory_id or self.memory_uuid} for proposal {self.proposal_id}"


class ProposalVerdict(models.TextChoices):
    PROMOTE = "promote", "promote"
    REJECT = "reject", "reject"
    MERGE = "merge", "merge"
    REVIEW = "review", "a person decides"
    EXPIRE = "expire", "expired"
    EDIT = "edit", "edited"
    UNDO = "undo", "taken back"
    REOPEN = "reopen", "opened again"


class ProposalDecision(models.Model):
    """One decision on a proposal, append-only: its tier, its reason, who decided, and the text before and after.

    `rule` is the code of a rule of tier 1. `undone_at` is set when a later decision took it back.
    """

    proposal = models.ForeignKey(Proposal, on_delete=models.CASCADE, related_name="decisions", db_index=False)
    tier = models.PositiveSmallIntegerField(choices=Tier.choices)
    verdict = models.CharField(max_length=7, choices=ProposalVerdict.choices)
    rule = models.CharField(max_length=32, blank=True, default="")
    reason = MaskedCharField(max_length=500, blank=True, default="")
    by = models.CharField(max_length=150)
    at = models.DateTimeField(default=timezone.now)
    before = MaskedTextField(blank=True, default="")
    after = MaskedTextField(blank=True, default="")
    model = models.CharField(max_length=100, blank=True, default="")
    call = models.ForeignKey("memories.ModelCall", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "proposal_decisions"
        ordering = ["at", "id"]
        indexes = [
            models.Index(fields=["proposal", "at"], name="proposal_decisions_of"),
            models.Index(fields=["-at", "-id"], name="proposal_decisions_at"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} of proposal {self.proposal_id}"
