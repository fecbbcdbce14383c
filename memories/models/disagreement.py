"""Disagreements: pairs of memories that contradict each other or may be duplicates, with an operator's answers."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.masked import MaskedJSONField, MaskedTextField


class DisagreementKind(models.TextChoices):
    CONTRADICTION = "contradiction", "contradiction"
    DUPLICATE = "duplicate", "suspected duplicate"


class DisagreementState(models.TextChoices):
    OPEN = "open", "open"
    ANSWERED = "answered", "answered"


class Answer(models.TextChoices):
    """An operator's answer; the first three are for a contradiction, the others for a duplicate."""

    SUPERSEDES = "supersedes", "the newer supersedes the older"
    BOTH = "both", "both hold"
    WRONG = "wrong", "the newer is wrong"
    MERGED = "merged", "duplicates"
    KEPT = "kept", "not duplicates"


ANSWERS = {
    DisagreementKind.CONTRADICTION: (Answer.SUPERSEDES, Answer.BOTH, Answer.WRONG),
    DisagreementKind.DUPLICATE: (Answer.MERGED, Answer.KEPT),
}

LABELS = {
    Answer.SUPERSEDES: "contradicts",
    Answer.WRONG: "contradicts",
    Answer.BOTH: "distinct",
    Answer.MERGED: "reinforces",
    Answer.KEPT: "distinct",
}
"""The relation of the two texts that an answer states."""


class DisagreementQuerySet(models.QuerySet["Disagreement"]):
    def open(self) -> DisagreementQuerySet:
        """Filter to open pairs whose memories both exist and were not replaced."""
        replaced = ("merged", "superseded", "expired")
        return (
            self.filter(state=DisagreementState.OPEN, older__isnull=False, newer__isnull=False)
            .exclude(older__inactive_reason__in=replaced)
            .exclude(newer__inactive_reason__in=(*replaced, "operator"))
        )

    def unjudged(self) -> DisagreementQuerySet:
        """Filter to open pairs that no model was asked about yet."""
        return self.open().filter(judged_at=None)

    def answered(self) -> DisagreementQuerySet:
        return self.filter(state=DisagreementState.ANSWERED)


class Disagreement(models.Model):
    """A pair of memories, unique by kind; `newer` was stored against, or beside, `older`.

    `changes` are the change rows of the answer, in order, for its undo. Texts and scope are copies, for evaluation.
    `judged` is the model's verdict: relation, reason, model, call, the SHA-256 of the texts, the action that followed
    (`memories.judging.rules.Action`), and why it was left to a person. It is stored before anything follows from it;
    `judged_at` is set together with what follows.
    """

    older = models.ForeignKey(
        "memories.Memory", null=True, on_delete=models.SET_NULL, related_name="disagreements_as_older", db_index=False
    )
    newer = models.ForeignKey(
        "memories.Memory", null=True, on_delete=models.SET_NULL, related_name="disagreements_as_newer"
    )
    kind = models.CharField(max_length=13, choices=DisagreementKind.choices)
    state = models.CharField(max_length=8, choices=DisagreementState.choices, default=DisagreementState.OPEN)
    answer = models.CharField(max_length=10, choices=Answer.choices, blank=True, default="")
    by = models.CharField(max_length=150, blank=True, default="")
    at = models.DateTimeField(null=True, blank=True, help_text="When it was answered.")
    created_at = models.DateTimeField(default=timezone.now)
    evidence = MaskedJSONField(default=dict, blank=True)
    changes = MaskedJSONField(default=list, blank=True)
    judged_at = models.DateTimeField(null=True, blank=True, help_text="When a model was asked about it last.")
    judged = MaskedJSONField(default=dict, blank=True, help_text="What it said, and what followed from it.")
    judging_until = models.DateTimeField(null=True, blank=True, help_text="Until then a worker asks about it.")
    judge_tries = models.PositiveSmallIntegerField(default=0, help_text="How often it was asked about in vain.")
    older_text = MaskedTextField()
    newer_text = MaskedTextField()
    service = models.CharField(max_length=100, blank=True, default="")
    category = models.CharField(max_length=50, blank=True, default="")

    objects = DisagreementQuerySet.as_manager()

    class Meta:
        db_table = "disagreements"
        constraints = [
            models.UniqueConstraint(fields=["older", "newer", "kind"], name="disagreements_once_a_pair"),
        ]
        indexes = [
            models.Index(fields=["-id"], condition=Q(state="open"), name="disagreements_open"),
            models.Index(fields=["id"], condition=Q(state="open", judged_at=None), name="disagreements_unjudged"),
            models.Index(fields=["-at", "-id"], condition=Q(state="answered"), name="disagreements_answered"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of memories {self.older_id} and {self.newer_id}"

    @property
    def allowed_answers(self) -> tuple[Answer, ...]:
        return ANSWERS[DisagreementKind(self.kind)]
