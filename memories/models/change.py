"""The history of memories: one append-only row for each change."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Case, CharField, F, GeneratedField, Q, Value, When
from django.utils import timezone

from claudeops.lib import times
from claudeops.lib.masked import MaskedCharField, MaskedJSONField
from memories.models.memory import Memory


class Change(models.TextChoices):
    CREATED = "created", "created"
    REINFORCED = "reinforced", "reinforced"
    CONTRADICTED = "contradicted", "contradicted"
    DECAYED = "decayed", "decayed"
    EXPIRED = "expired", "expired"
    EDITED = "edited", "edited"
    CONFIDENCE_SET = "confidence_set", "confidence set"
    DEACTIVATED = "deactivated", "deactivated"
    REACTIVATED = "reactivated", "reactivated"
    PERSISTENT_SET = "persistent_set", "persistence set"
    APPROVED = "approved", "approved"
    MERGED = "merged", "merged"
    SUPERSEDED = "superseded", "superseded"
    BACKED = "backed", "backed by a person"
    CREDITED = "credited", "credited by a session's outcome"
    RESTORED = "restored", "restored"
    DELETED = "deleted", "deleted"


SAID = ~Q(kind=Change.DECAYED) & ~Q(kind=Change.EXPIRED)
"""All changes but those of the sweep. Two terms: SQLite does not match a list of values with its index's condition."""


class Listed(models.TextChoices):
    """The kinds under which lists and charts show a change: four of their own, for the others that of the change."""

    LEARNED = "learned", "learned"
    CONFIRMED = "confirmed", "confirmed"
    CONTRADICTED = "contradicted", "contradicted"
    FADED = "faded", "faded or expired"
    DECAYED = "decayed", "lowered by time"
    EDITED = "edited", "edited"
    CONFIDENCE_SET = "confidence_set", "confidence set"
    DEACTIVATED = "deactivated", "deactivated"
    REACTIVATED = "reactivated", "reactivated"
    PERSISTENT_SET = "persistent_set", "persistence set"
    APPROVED = "approved", "approved"
    MERGED = "merged", "merged"
    SUPERSEDED = "superseded", "superseded"
    CREDITED = "credited", "credited by a session's outcome"
    RESTORED = "restored", "restored"
    DELETED = "deleted", "deleted"


class By(models.TextChoices):
    """Who made a change, by its actor."""

    PEOPLE = "people", "people"
    SESSIONS = "sessions", "sessions"
    SYSTEM = "system", "the system"


def _listed_as() -> Case:
    """The kind of a change in a list. A decay that made its memory inactive let it fade."""
    return Case(
        When(kind=Change.CREATED, then=Value(Listed.LEARNED)),
        When(Q(kind=Change.REINFORCED) | Q(kind=Change.BACKED), then=Value(Listed.CONFIRMED)),
        When(Q(kind=Change.EXPIRED) | Q(kind=Change.DECAYED, after__active=False), then=Value(Listed.FADED)),
        default=F("kind"),
        output_field=CharField(),
    )


JUDGE = "judge:"
"""The actor of what follows from the judge's verdicts, before its model."""


NO_PERSON = ("agent:", "session:", JUDGE, "classifier:", "reflector:", "triage:")
"""How the actors begin that are sessions or models."""


MAINTAINED: dict[str, tuple[str, str]] = {
    Change.DECAYED: ("stale", "marked as stale"),
    Change.EXPIRED: ("closed", "closed"),
}
"""By kind, the step of the nightly maintenance that makes such a change too, and what the change is called then."""


def _by() -> Case:
    """Who made a change: the actor of a session is `agent:<slug>`, `session:<number>`, `import` or `mcp`.

    A model that decides by itself is its role and its name; another role here would rewrite the table again.
    """
    return Case(
        When(Q(actor="") | Q(actor="system"), then=Value(By.SYSTEM)),
        When(
            Q(actor__startswith=JUDGE)
            | Q(actor__startswith="classifier:")
            | Q(actor__startswith="reflector:")
            | Q(actor__startswith="triage:"),
            then=Value(By.SYSTEM),
        ),
        When(Q(actor="import") | Q(actor="mcp"), then=Value(By.SESSIONS)),
        When(Q(actor__startswith="agent:") | Q(actor__startswith="session:"), then=Value(By.SESSIONS)),
        default=Value(By.PEOPLE),
        output_field=CharField(),
    )


def is_person(actor: str) -> bool:
    """Whether a change by this actor is a person's, by the rule of `_by`."""
    return actor not in ("", "system", "import", "mcp") and not actor.startswith(NO_PERSON)


def stands_behind(actor: str) -> bool:
    """Whether a change by this actor is a person's own word: no token's, and not that of an uncommitted line."""
    return is_person(actor) and actor != "file" and not actor.startswith("token ")


COLUMNS = {field.attname: field for field in Memory._meta.concrete_fields if field.attname not in ("id", "uuid")}
"""The columns of a memory that a change may alter."""


class MemoryChangeQuerySet(models.QuerySet["MemoryChange"]):
    def said(self) -> MemoryChangeQuerySet:
        return self.filter(SAID)


class MemoryChange(models.Model):
    """One change of one memory; it outlives the memory, whose `memory_uuid` stays.

    `before` and `after` hold the columns that changed (for `created`, `after` holds the whole row; for `deleted`,
    `before` does). `evidence` is why: the text that arrived, the similarity, the signals. `candidate_key` identifies a
    statement of an agent's session, so that a replayed log changes nothing twice. `listed_as` (a Listed) and `by` (a
    By) are what lists and charts show of `kind` and `actor`.
    """

    memory = models.ForeignKey(  # served by the index on memory and at
        "memories.Memory", null=True, blank=True, on_delete=models.SET_NULL, related_name="changes", db_index=False
    )
    memory_uuid = models.UUIDField(default=uuid.uuid4)
    kind = models.CharField(max_length=20, choices=Change.choices)
    at = models.DateTimeField(default=timezone.now)
    before = MaskedJSONField(default=dict, blank=True)
    after = MaskedJSONField(default=dict, blank=True)
    reason = MaskedCharField(max_length=500, blank=True, default="")
    evidence = MaskedJSONField(default=dict, blank=True)
    actor = models.CharField(max_length=150, blank=True, default="", help_text="A user name, agent:<slug>, or system.")
    session = models.ForeignKey(
        "sessions_app.Session",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="memory_changes",
        db_index=False,
    )
    candidate_key = models.CharField(max_length=64, null=True, blank=True)
    # Computed by the database, since changes are written past the ORM in places.
    listed_as = GeneratedField(
        expression=_listed_as(), output_field=models.CharField(max_length=20, choices=Listed.choices), db_persist=True
    )
    by = GeneratedField(
        expression=_by(), output_field=models.CharField(max_length=10, choices=By.choices), db_persist=True
    )

    objects = MemoryChangeQuerySet.as_manager()

    class Meta:
        db_table = "memory_changes"
        ordering = ["at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["session", "candidate_key"],
                condition=Q(candidate_key__isnull=False),
                name="memory_changes_once_a_session",
            ),
        ]
        indexes = [
            models.Index(fields=["memory", "at"], name="memory_changes_memory"),
            # Partial, because the changes of the sweep have no session and are most of the rows.
            models.Index(fields=["session"], condition=Q(session__isnull=False), name="memory_changes_session"),
            models.Index(fields=["-at"], name="memory_changes_at"),
            # The changes of people and sessions, newest first, among millions of the sweep.
            models.Index(fields=["-at", "-id"], condition=SAID, name="memory_changes_said"),
            models.Index(fields=["listed_as", "-at", "-id"], name="memory_changes_listed"),
            # A sweep changes thousands of memories at once, a session several: those of people are few.
            models.Index(fields=["by", "-at", "-id"], condition=Q(by=By.PEOPLE), name="memory_changes_by_people"),
        ]

    @property
    def step(self) -> str:
        """The step of the nightly maintenance, "stale" or "closed", that made this change; "" for every other."""
        if self.kind not in MAINTAINED:  # before the evidence, which a list may not have read
            return ""
        step, _ = MAINTAINED[self.kind]
        evidence = self.evidence if isinstance(self.evidence, dict) else {}
        return step if "maintenance" in evidence and evidence.get("step") == step else ""

    @property
    def label(self) -> str:
        """The kind in words: that of the choice, unless the nightly maintenance did something else under it."""
        return MAINTAINED[self.kind][1] if self.step else self.get_kind_display()

    @property
    def listed_label(self) -> str:
        """The kind in a list, in words."""
        return self.label if self.step else Listed(self.listed_as).label

    def __str__(self) -> str:
        return f"{self.kind} {self.memory_uuid} at {self.at:%Y-%m-%d %H:%M:%S} UTC"


def to_utc(at: datetime | None) -> datetime:
    """Convert `at` to UTC; now when it is None. Raises ValueError for a time without a zone or out of range."""
    return timezone.now() if at is None else times.in_utc(at)


def states_before(changes: Iterable[MemoryChange], *, keep_lost_links: bool = False) -> dict[int, dict[str, Any]]:
    """Return by memory id the columns before `changes` (latest first); lost links are None unless `keep_lost_links`."""
    by_id: dict[int, dict[str, Any]] = defaultdict(dict)
    for change in changes:
        if change.memory_id is not None:
            by_id[change.memory_id].update(change.before)
    states = {
        pk: {name: COLUMNS[name].to_python(value) for name, value in state.items() if name in COLUMNS}
        for pk, state in by_id.items()
    }
    if not keep_lost_links:
        drop_lost_links(states.values())
    return states


def drop_lost_links(states: Collection[dict[str, Any]]) -> None:
    """Set the links in `states` (columns by attname) that point to a deleted row to None."""
    for name, field in COLUMNS.items():
        remote = field.remote_field
        wanted = {state[name] for state in states if remote and state.get(name) is not None}
        if remote is None or not wanted:
            continue
        there = set(remote.model._base_manager.filter(pk__in=wanted).values_list("pk", flat=True))
        for state in states:
            if state.get(name) in wanted - there:
                state[name] = None
