"""The model of a memory: one durable observation. Reads only; `store.py` and `lifecycle/` write."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Now
from django.utils import timezone

from claudeops.lib.masked import MaskedCharField, MaskedJSONField, MaskedTextField
from memories.models.fades import FADES_AT
from memories.models.trust import kept_back, kept_back_condition
from memories.taxonomy import AGENT, DEFAULT_CONFIDENCE, DEFAULT_RELEVANCE, GENERAL, TAXONOMIES, TAXONOMY_VERSION

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

    from memories.models.project import Project

SERVICE_PATTERN = r"^[a-zA-Z0-9._-]+\Z"
valid_service = RegexValidator(
    SERVICE_PATTERN, "A service is one word of letters, digits, dots, hyphens and underscores."
)


SERVICE_TEXT = Func(F("service"), template="COALESCE(%(expressions)s, '')", output_field=models.CharField())
"""The service for sorting, general first. Without a parameter, or SQLite would not use the index."""

TEXT_START = Func(F("observation"), template="LOWER(SUBSTR(%(expressions)s, 1, 100))", output_field=models.CharField())
"""The beginning of a text, for the index that finds equal texts."""

PROMPT_RANK = Func(
    F("confidence"),
    Func(F("relevance_score"), template=f"COALESCE(%(expressions)s, {DEFAULT_RELEVANCE})"),
    arg_joiner=" * ",  # before the template, as a migration writes them: their order is compared
    output_field=models.FloatField(),
    template="(%(expressions)s)",
)
"""Confidence × relevance, for the index in the order of a project's prompt. Without a parameter, as above."""


UNSHOWN = Q(reflected_at=None) | Q(updated_at__gt=F("reflected_at"))
"""What no reflection has shown as it is now; for the index as well."""

ANY_PROJECT: Literal["any"] = "any"
ANY_AGENT = "*"
"""Not a slug, so no agent can have this name."""


class Source(models.TextChoices):
    HUMAN = "human", "a person"
    RUN = "run", "a session"
    LEARNING = "learning", "reflection"
    IMPORT = "import", "an import"


class Verdict(models.TextChoices):
    """The gate's verdict on a stored memory; what it discards is not stored."""

    ALLOW = "allow", "allowed"
    HOLD = "hold", "held for review"


class Exposure(models.TextChoices):
    """What the session had read when it said a memory, least first."""

    NOTHING = "nothing", "nothing from outside"
    HOUSE = "house", "its own machines"
    OUTSIDE = "outside", "outside text"


class Trust(models.TextChoices):
    """How far a memory can be trusted, most first: that of the least trusted in its lineage."""

    OPERATOR = "operator", "an operator"
    SESSION = "session", "a session of its own"
    IMPORTED = "imported", "an import"
    EXTERNAL = "external", "outside text"


IMPORTED_FILE, IMPORTED_PACK = "import", "memory pack"
"""The names under which an import counts as outside text, since nobody knows what was read before it was said."""


def trust_of(source: str, exposure: str, exposed_to: Collection[str] = ()) -> Trust:
    """Return how far the words of a source can be trusted, with what had been read before they were said.

    An import of which nothing more is known than that it is one is an import, not outside text.
    """
    if exposure == Exposure.OUTSIDE:
        alone = source == Source.IMPORT and exposed_to and {IMPORTED_FILE, IMPORTED_PACK}.issuperset(exposed_to)
        return Trust.IMPORTED if alone else Trust.EXTERNAL
    own = {Source.HUMAN.value: Trust.OPERATOR, Source.IMPORT.value: Trust.IMPORTED}
    return own.get(source, Trust.SESSION)


def lowest(*trusts: str) -> Trust:
    """Return the least of them."""
    return max(map(Trust, trusts), key=list(Trust).index)


def is_lower(one: str, other: str) -> bool:
    """Whether `one` can be trusted less than `other`."""
    return one != other and lowest(one, other) == one


class TrustField(models.CharField):
    """Holds a Trust; when it is empty, a row is stored with what its source and its exposure say."""

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        value = super().pre_save(model_instance, add)
        if not value:
            instance: Any = model_instance
            value = trust_of(instance.source, instance.exposure, instance.exposed_to).value
            setattr(model_instance, self.attname, value)
        return value


class Inactive(models.TextChoices):
    DECAYED = "decayed", "not confirmed for too long"
    CONTRADICTED = "contradicted", "contradicted"
    OPERATOR = "operator", "deactivated by a person"
    LOWERED = "lowered", "confidence set below the threshold"
    EXPIRED = "expired", "expired"
    SUPERSEDED = "superseded", "superseded"
    MERGED = "merged", "merged into another"
    CLOSED = "closed", "stale for too long"


SAID_BY = {
    "person": "a person typed it",
    "house": "outputs of the own machines show it",
    "outside": "outside text said it",
    "nobody": "nobody: the agent concluded it",
}


class RandomUUID(Func):
    """A random UUID (version 4) as Django stores it, made by the database."""

    template = "gen_random_uuid()"
    arity = 0
    output_field = models.UUIDField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        random = (
            "lower(hex(randomblob(6)) || '4' || substr(hex(randomblob(2)), 2) "
            "|| substr('89ab', (random() & 3) + 1, 1) || substr(hex(randomblob(8)), 2))"
        )
        return self.as_sql(compiler, connection, template=random, **context)


class MemoryQuerySet(models.QuerySet["Memory"]):
    def active(self) -> MemoryQuerySet:
        return self.filter(active=True)

    def held(self) -> MemoryQuerySet:
        return self.filter(verdict=Verdict.HOLD)

    def awaiting_review(self) -> MemoryQuerySet:
        """Held, and not rejected: a person who deactivates a held memory has reviewed it."""
        return self.held().exclude(inactive_reason=Inactive.OPERATOR)

    def rejected(self) -> MemoryQuerySet:
        """Deactivated by a person, held or not."""
        return self.filter(active=False, inactive_reason=Inactive.OPERATOR)

    def allowed(self) -> MemoryQuerySet:
        return self.filter(verdict=Verdict.ALLOW)

    def trusted(self) -> MemoryQuerySet:
        """Leave out what waits for its confirmation, by CLAUDEOPS_TRUST."""
        return self.exclude(kept_back_condition())

    def unconfirmed(self) -> MemoryQuerySet:
        """Active ones that the gate allows and that wait for their confirmation, by CLAUDEOPS_TRUST."""
        return self.filter(kept_back_condition(), active=True, verdict=Verdict.ALLOW)

    def waiting(self) -> MemoryQuerySet:
        """All that waits for a person: held, or unconfirmed."""
        held = Q(verdict=Verdict.HOLD) & ~Q(inactive_reason=Inactive.OPERATOR)
        return self.filter(held | (Q(active=True, verdict=Verdict.ALLOW) & kept_back_condition()))

    def isolated_to(
        self, project: int | Literal["any"] | None, agent: str | None, *, file_of: str = ""
    ) -> MemoryQuerySet:
        """Limit to a scope.

        `project`: an id gives that project's memories and the global ones, None the global ones alone, ANY_PROJECT all.
        `agent`: a slug gives its own memories and those of no agent, None only those of no agent, ANY_AGENT all.
        `file_of`: the agent's id, by which the memories of its file are its own too.
        """
        rows = self
        if project is None:
            rows = rows.filter(project=None)
        elif project != ANY_PROJECT:
            rows = rows.filter(Q(project=None) | Q(project=project))
        if agent is None:
            return rows.filter(agent=None)
        if agent == ANY_AGENT:
            return rows
        own = Q(agent=agent)
        if file_of and file_of != agent:
            own |= Q(taxonomy=AGENT.slug, agent=file_of)
        return rows.filter(Q(agent=None) | own)

    def general(self) -> MemoryQuerySet:
        return self.filter(service=None)

    def visible_to(self, project: Project | None) -> MemoryQuerySet:
        """Global memories and those of `project`; nothing of another project."""
        if project is None:
            return self.filter(project=None)
        return self.filter(Q(project=None) | Q(project=project))


class Memory(models.Model):
    """One durable observation, in one line.

    `updated_at` is its last confirmation or edit, `decayed_until` up to when decay was applied. All times are UTC.
    Every column has a default in the database: service, category and observation make a row.
    """

    uuid = models.UUIDField(default=uuid.uuid4, db_default=RandomUUID(), unique=True, editable=False)
    taxonomy = models.CharField(
        max_length=16, default="ops", db_default="ops", choices=[(slug, slug) for slug in TAXONOMIES]
    )
    taxonomy_version = models.PositiveSmallIntegerField(default=TAXONOMY_VERSION, db_default=TAXONOMY_VERSION)
    project = models.ForeignKey(
        "memories.Project",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="memories",
        db_index=False,
    )
    agent = models.CharField(max_length=64, null=True, blank=True)
    service = models.CharField(
        max_length=64, null=True, blank=True, validators=[valid_service], help_text="Empty = general."
    )
    category = models.CharField(max_length=32)
    observation = MaskedTextField()
    confidence = models.FloatField(default=DEFAULT_CONFIDENCE, db_default=DEFAULT_CONFIDENCE)
    active = models.BooleanField(default=True, db_default=True)
    inactive_reason = models.CharField(max_length=16, blank=True, default="", db_default="", choices=Inactive.choices)
    created_at = models.DateTimeField(default=timezone.now, db_default=Now())
    updated_at = models.DateTimeField(default=timezone.now, db_default=Now())
    session = models.ForeignKey(
        "sessions_app.Session",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="memories",
        help_text="The session that found it out; empty = made by a person.",
    )
    tier = models.PositiveSmallIntegerField(default=1, db_default=1, help_text="0 = the operator.")
    # A raw INSERT was typed by nobody in a form: it is trusted as an import.
    source = models.CharField(max_length=16, default=Source.HUMAN, db_default=Source.IMPORT, choices=Source.choices)
    verdict = models.CharField(max_length=8, default=Verdict.ALLOW, db_default=Verdict.ALLOW, choices=Verdict.choices)
    verdict_reason = MaskedCharField(max_length=500, blank=True, default="", db_default="")
    exposure = models.CharField(
        max_length=8,
        default=Exposure.NOTHING,
        db_default=Exposure.NOTHING,
        choices=Exposure.choices,
        help_text="What its session had read before it said this.",
    )
    exposed_to = MaskedJSONField(
        default=list, db_default=Value([], models.JSONField()), blank=True, help_text="The outside sources, by name."
    )
    trust = TrustField(
        max_length=8,
        blank=True,
        default="",
        editable=False,
        db_default=Trust.IMPORTED,
        choices=Trust.choices,
        help_text="The lowest of its lineage; set when it is stored.",
    )
    support = MaskedJSONField(
        default=dict,
        db_default=Value({}, models.JSONField()),
        blank=True,
        help_text="Who supports its words, with the quotes that do; empty where its session's turns are not known.",
    )
    provisional = MaskedCharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="Why it needs a confirmation before it is injected; empty = it needs none.",
    )
    confirmed_at = models.DateTimeField(
        null=True, blank=True, help_text="When a person or an independent session confirmed it."
    )
    # Written by the API of project memories (`relevanceScore`, issue 16).
    relevance_score = models.FloatField(null=True, blank=True)
    tags = MaskedJSONField(default=list, db_default=Value([], models.JSONField()), blank=True)
    persistent = models.BooleanField(default=False, db_default=False, help_text="Never decays.")
    expires_at = models.DateTimeField(null=True, blank=True)
    surface = MaskedCharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="When it is told without being asked for, such as “first monday”; empty = by its rank alone.",
    )
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
    )
    approved_at = models.DateTimeField(null=True, blank=True)
    decayed_until = models.DateTimeField(null=True, blank=True)
    merged_count = models.PositiveIntegerField(default=0, db_default=0)
    recall_count = models.PositiveIntegerField(default=0, db_default=0)
    last_recalled_at = models.DateTimeField(null=True, blank=True)
    told_count = models.PositiveIntegerField(
        default=0, db_default=0, help_text="How many sessions had it in their prompt."
    )
    last_told_at = models.DateTimeField(null=True, blank=True)
    # Written by the nightly maintenance (never recalled for 90 days, issue 19).
    stale_at = models.DateTimeField(null=True, blank=True)
    reflected_at = models.DateTimeField(
        null=True, blank=True, help_text="The time as of which a reflection on its file has shown it."
    )
    superseded_by = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="supersedes", db_index=False
    )

    sequence = models.CharField(
        max_length=200, blank=True, default="", db_default="", help_text="What it is a part of, such as a conversation."
    )
    position = models.IntegerField(null=True, blank=True, help_text="Its place there, counted from 0.")

    objects = MemoryQuerySet.as_manager()

    class Meta:
        db_table = "memories"
        verbose_name_plural = "memories"
        ordering = ["-updated_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(confidence__gte=0.0, confidence__lte=1.0), name="memories_confidence_0_to_1"
            ),
        ]
        # Each index is read by a query of the product (tests/claudeops/test_plans.py): an index costs every change of
        # its columns, and on PostgreSQL every change of the row.
        indexes = [
            models.Index(fields=["service", "active"], name="memories_service_active"),
            # The list's filters in its default order; SQLite would sort all matching rows for the first page.
            models.Index(fields=["category", "-updated_at", "-id"], name="memories_category"),
            models.Index(fields=["taxonomy", "-updated_at", "-id"], name="memories_taxonomy"),
            models.Index(fields=["source", "-updated_at", "-id"], name="memories_source"),
            # The list's orders.
            models.Index(fields=["-updated_at", "-id"], name="memories_updated"),
            models.Index(fields=["-confidence", "-id"], name="memories_by_confidence"),
            models.Index(SERVICE_TEXT, "id", name="memories_by_service"),
            models.Index(FADES_AT, "id", name="memories_by_fading"),
            # With the columns of "Never told", to count it without reading the rows.
            models.Index(fields=["-told_count", "-id", "active", "verdict"], name="memories_by_told"),
            # The scope within which a new statement is compared with the known memories.
            models.Index(fields=["taxonomy", "category", "service"], name="memories_scope"),
            # Equal texts, in a scope of any size. An index on whole texts would be as big as the table.
            models.Index(TEXT_START, name="memories_by_text"),
            # Injection, highest confidence first. SQLite also needs the condition's columns in the index, to count
            # without reading the rows.
            models.Index(
                fields=[
                    *("taxonomy", "-confidence", "id", "project", "active", "verdict"),
                    *("provisional", "confirmed_at"),
                ],
                condition=Q(active=True, verdict="allow"),
                name="memories_injection",
            ),
            # Counts of the lists and the overview: few rows among many, from the index alone (see above).
            models.Index(
                fields=["-updated_at", "-id", "verdict", "inactive_reason"],
                condition=Q(verdict="hold"),
                name="memories_held",
            ),
            models.Index(
                fields=["-updated_at", "-id", "active", "verdict"],
                condition=Q(active=False, verdict="allow"),
                name="memories_inactive",
            ),
            # What waits for its confirmation (CLAUDEOPS_TRUST=guarded).
            models.Index(
                fields=["-updated_at", "-id", "active", "verdict", "provisional", "confirmed_at"],
                condition=Q(active=True, verdict="allow", confirmed_at=None) & ~Q(provisional=""),
                name="memories_unconfirmed",
            ),
            # Rare links: partial, because PostgreSQL writes an update into every index of the row.
            # The memories of a project in the order in which they end, and how many of them are active.
            models.Index(
                F("project"),
                FADES_AT,
                F("id"),
                F("active"),
                condition=Q(project__isnull=False),
                name="memories_project",
            ),
            # The list of a project's memories by page and offset, newest first, and its total, from the index alone.
            models.Index(
                fields=[
                    *("project", "taxonomy", "-id", "active", "verdict", "category"),
                    *("provisional", "confirmed_at"),
                ],
                condition=Q(project__isnull=False, taxonomy="project"),
                name="memories_of_project",
            ),
            # The project memories of a prompt, the best first, with what decides whether one may be in it.
            models.Index(
                F("project").asc(),
                PROMPT_RANK.desc(),
                F("created_at").asc(),
                F("id").asc(),
                *map(F, ("taxonomy", "active", "verdict", "confidence", "expires_at", "provisional", "confirmed_at")),
                condition=Q(taxonomy="project", active=True, verdict="allow", confidence__gte=0.3),
                name="memories_project_rank",
            ),
            # A recall in a project also reads the global memories, which may be few among many.
            models.Index(fields=["id"], condition=Q(project__isnull=True), name="memories_global"),
            models.Index(fields=["approved_by"], condition=Q(approved_by__isnull=False), name="memories_approved_by"),
            models.Index(
                fields=["superseded_by"], condition=Q(superseded_by__isnull=False), name="memories_superseded_by"
            ),
            # The neighbours of a turn in a conversation.
            models.Index(fields=["sequence", "position"], condition=~Q(sequence=""), name="memories_sequence"),
            # The sweep, with all columns of its conditions, so that SQLite prefers it to memories_taxonomy.
            models.Index(
                fields=["taxonomy", "updated_at", "decayed_until", "verdict", "active", "persistent"],
                condition=Q(active=True, persistent=False),
                name="memories_decay",
            ),
            models.Index(
                fields=["expires_at"],
                condition=Q(active=True, expires_at__isnull=False),
                name="memories_expiry",
            ),
            # Memories with a window of time are few; what is told looks through all of them.
            models.Index(fields=["id"], condition=~Q(surface=""), name="memories_surface"),
            # What no reflection has shown as it is now, the newest first.
            models.Index(
                fields=["project", "-updated_at", "-id"],
                condition=Q(active=True, verdict="allow", agent=None) & UNSHOWN,
                name="memories_unshown",
            ),
            # The list's filter by trust.
            models.Index(fields=["trust", "-updated_at", "-id"], name="memories_trust"),
        ]

    def __str__(self) -> str:
        text = self.observation if len(self.observation) <= 80 else self.observation[:79] + "…"
        return f"[{self.category}:{self.service or GENERAL}] {text}"

    @property
    def read_before(self) -> str:
        """Say what its session had read: "outside text (logs: jellyfin)"."""
        named = ", ".join(str(name) for name in self.exposed_to or ())
        return str(Exposure(self.exposure).label) + (f" ({named})" if named else "")

    @property
    def said_by(self) -> str:
        """Say who supports its words: a person, the own machines, outside text, or nobody."""
        if self.source == Source.HUMAN:
            return "a person wrote it"
        voice = self.support.get("by", "") if isinstance(self.support, dict) else ""
        return SAID_BY.get(voice, "not known")

    @property
    def awaits_review(self) -> bool:
        return self.verdict == Verdict.HOLD and self.inactive_reason != Inactive.OPERATOR

    @property
    def unconfirmed(self) -> str:
        """Why it waits for its confirmation, by CLAUDEOPS_TRUST; empty when it does not."""
        return kept_back(self) if self.active and self.verdict == Verdict.ALLOW else ""

    @property
    def waits(self) -> bool:
        """Whether it waits for a person: held, or unconfirmed."""
        return self.awaits_review or bool(self.unconfirmed)

    @property
    def scope_label(self) -> str:
        return self.service or GENERAL
