"""The FilterSet of memories, for the page, "select all matching" and the API. Refuses unknown values."""

from __future__ import annotations

import math

import django_filters
from django import forms
from django.db import connection
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Collate
from django.db.models.lookups import IContains
from django.utils import timezone

from claudeops.lib.list_view.filters import Comparison, ComparisonFilter, PeriodFilter
from claudeops.lib.time_field import TimeFilter
from memories.access import Access
from memories.capture.fields import agent_id
from memories.capture.text import normalise_service
from memories.models import (
    By,
    Disagreement,
    DisagreementKind,
    Exposure,
    Inactive,
    Listed,
    Memory,
    MemoryChange,
    Project,
    Proposal,
    ProposalKind,
    ProposalState,
    Source,
    Tier,
    Trust,
    Verdict,
)
from memories.models.change import MemoryChangeQuerySet
from memories.models.fades import FADES_AT, NEVER
from memories.models.memory import MemoryQuerySet
from memories.taxonomy import AGENT, KNOWLEDGE, TAXONOMIES

CATEGORIES = sorted({category for taxonomy in TAXONOMIES.values() for category in taxonomy.categories})


HELD, ACTIVE, INACTIVE, REJECTED = "held", "active", "inactive", "rejected"
WAITING, UNCONFIRMED, CONTRADICTED = "waiting", "unconfirmed", "contradicted"
STATUSES = [
    (ACTIVE, "active"),
    (INACTIVE, "inactive"),
    (WAITING, "waiting for a person"),
    (HELD, "held for review"),
    (UNCONFIRMED, "unconfirmed"),
    (REJECTED, "rejected in review"),
    (CONTRADICTED, "in an open contradiction"),
]


def with_status(rows: MemoryQuerySet, status: str) -> MemoryQuerySet:
    """Filter by one status.

    Each memory is active, inactive, held or rejected. Active ones that CLAUDEOPS_TRUST keeps back are unconfirmed;
    these and the held ones are waiting. Those of an open contradiction may have any other status.
    """
    if status == WAITING:
        return rows.waiting()
    if status == UNCONFIRMED:
        return rows.unconfirmed()
    if status == CONTRADICTED:
        pairs = Disagreement.objects.open().filter(kind=DisagreementKind.CONTRADICTION)
        return rows.filter(Q(pk__in=pairs.values("older")) | Q(pk__in=pairs.values("newer")))
    if status in (HELD, REJECTED):
        held, rejected = rows.filter(verdict=Verdict.HOLD), Q(inactive_reason=Inactive.OPERATOR)
        return held.filter(rejected) if status == REJECTED else held.exclude(rejected)
    return rows.filter(verdict=Verdict.ALLOW, active=status == ACTIVE)


def yes_or_no() -> forms.Select:
    """Offer "any" where nothing is chosen; Django's own widget for a boolean calls that "Unknown"."""
    return forms.Select(choices=[("", "any"), ("true", "yes"), ("false", "no")])


class IdFilter(django_filters.Filter):
    field_class = forms.IntegerField


class MemoryFilterSet(django_filters.FilterSet):
    """Query parameters, all optional and combined by AND.

    service (`general` = none), category, taxonomy, project (slug, or `global`), agent, status (each memory has one:
    held, rejected, or else active or inactive; of the active ones some are unconfirmed: these and the held ones are
    waiting), active, verdict, source, exposure (what its session had read), trust (the least
    of its lineage: operator, session, imported or external), persistent, confidence_min and
    confidence_max (0..1, both included), text (every word of it, anywhere), session (id), tier, fades (when it becomes
    inactive or expires unless it is confirmed, from now: `<14d`, `>2w`, `3d..10d`; active ones alone), told (how many
    sessions had it in their prompt: `0`, `>5`).
    """

    service = django_filters.CharFilter(
        method="by_service",
        label="Service",
        max_length=64,
        widget=forms.TextInput(attrs={"list": "services", "placeholder": "any, or general", "autocomplete": "off"}),
    )
    category = django_filters.ChoiceFilter(
        choices=[(name, name) for name in CATEGORIES], label="Category", empty_label="any"
    )
    taxonomy = django_filters.ChoiceFilter(
        choices=[(slug, slug) for slug in TAXONOMIES], label="Taxonomy", empty_label="any"
    )
    project = django_filters.CharFilter(method="by_project", label="Project", max_length=64)
    agent = django_filters.CharFilter(method="by_agent", label="Agent", max_length=64)
    status = django_filters.ChoiceFilter(choices=STATUSES, method="by_status", label="Status", empty_label="any")
    active = django_filters.BooleanFilter(label="Active", widget=yes_or_no())
    verdict = django_filters.ChoiceFilter(choices=Verdict.choices, label="Verdict", empty_label="any")
    source = django_filters.ChoiceFilter(choices=Source.choices, label="Source", empty_label="any")
    exposure = django_filters.ChoiceFilter(choices=Exposure.choices, label="Read before", empty_label="any")
    trust = django_filters.ChoiceFilter(choices=Trust.choices, label="Trusted as", empty_label="any")
    persistent = django_filters.BooleanFilter(label="Persistent", widget=yes_or_no())
    confidence_min = django_filters.NumberFilter(
        field_name="confidence", lookup_expr="gte", min_value=0, max_value=1, label="Confidence from"
    )
    confidence_max = django_filters.NumberFilter(
        field_name="confidence", lookup_expr="lte", min_value=0, max_value=1, label="Confidence to"
    )
    text = django_filters.CharFilter(method="by_text", label="Text", max_length=200)
    session = IdFilter(field_name="session_id", min_value=1, max_value=2**63 - 1, label="Session")
    tier = django_filters.ChoiceFilter(
        choices=[(tier, str(tier)) for tier in range(4)], label="Tier", empty_label="any"
    )

    told = ComparisonFilter(method="by_told", label="Told, as >5")
    fades = ComparisonFilter(method="by_fading", label="Fades or expires", spans=True)

    class Meta:
        model = Memory
        fields: list[str] = []  # declared above, so that a new column adds no filter

    def by_service(self, queryset: QuerySet[Memory], name: str, value: str) -> QuerySet[Memory]:
        return queryset.filter(service=normalise_service(value))

    def by_agent(self, queryset: QuerySet[Memory], name: str, value: str) -> QuerySet[Memory]:
        return queryset.filter(Q(agent=value) | Q(taxonomy=AGENT.slug, agent=agent_id(value)))

    def by_status(self, queryset: MemoryQuerySet, name: str, value: str) -> MemoryQuerySet:
        return with_status(queryset, value)

    def by_project(self, queryset: QuerySet[Memory], name: str, value: str) -> QuerySet[Memory]:
        if value == "global" and not Project.objects.filter(slug=value).exists():
            return queryset.filter(project=None)
        return queryset.filter(project__slug=value)

    def by_fading(self, queryset: QuerySet[Memory], name: str, value: Comparison) -> QuerySet[Memory]:
        now = timezone.now().timestamp()
        bounds = {f"fades__{lookup}": math.floor(now + seconds) for lookup, seconds in value.bounds}
        return queryset.alias(fades=FADES_AT).filter(**bounds).filter(fades__lt=NEVER)

    def by_told(self, queryset: QuerySet[Memory], name: str, value: Comparison) -> QuerySet[Memory]:
        return queryset.filter(**{f"told_count__{lookup}": bound for lookup, bound in value.bounds})

    def by_text(self, queryset: QuerySet[Memory], name: str, value: str) -> QuerySet[Memory]:
        for word in value.split():
            queryset = queryset.filter(_contains(word))
        return queryset


def _contains(word: str) -> Q | IContains:
    """Match the word case-insensitively; for ASCII, PostgreSQL's collation C gives the same several times as fast."""
    if connection.vendor == "postgresql" and word.isascii():
        return IContains(Collate(F("observation"), "C"), word)
    return Q(observation__icontains=word)


SEARCHED = 10_000
"""Changes among which words and a service are looked for: no index has them in the order of time."""


def _moment() -> forms.DateTimeInput:
    return forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class MemoryChangeFilterSet(django_filters.FilterSet):
    """Query parameters, all optional and combined by AND.

    kind (learned, confirmed, contradicted, faded, edited and others), by (`people`, `sessions`, `system`, or an actor:
    the name of an account, `agent:<slug>`), memory (id), session (id), during (as `24h`, `7d`, `30d`, `90d`, or two
    times with `..` between, the first one included), since and until (UTC, both included), service of the memory
    (`general` = none) and text (every word of it in the memory's text).

    Service and text are looked for in the newest SEARCHED of the changes that the other filters leave.
    """

    kind = django_filters.ChoiceFilter(
        field_name="listed_as", choices=Listed.choices, label="Change", empty_label="any change"
    )
    by = django_filters.CharFilter(method="by_whom", label="By people, sessions, system or a name", max_length=150)
    memory = IdFilter(field_name="memory_id", min_value=1, max_value=2**63 - 1, label="Memory")
    session = IdFilter(field_name="session_id", min_value=1, max_value=2**63 - 1, label="Session")
    during = PeriodFilter(field_name="at", label="Period, as 24h or from..to")
    since = TimeFilter(field_name="at", lookup_expr="gte", label="From (UTC)", widget=_moment())
    until = TimeFilter(field_name="at", lookup_expr="lte", label="To (UTC)", widget=_moment())
    # Declared last: filters are applied in this order, and these get what the others leave.
    service = django_filters.CharFilter(method="by_service", label="Service", max_length=64)
    text = django_filters.CharFilter(method="by_text", label="Text", max_length=200)

    class Meta:
        model = MemoryChange
        fields: list[str] = []  # each is declared above, so that a new column adds no filter

    def by_whom(self, queryset: MemoryChangeQuerySet, name: str, value: str) -> MemoryChangeQuerySet:
        if value == By.PEOPLE:
            return queryset.filter(by=By.PEOPLE)
        if value == By.SESSIONS:
            return queryset.filter(by=By.SESSIONS).said()  # not a sweep's, so that their index serves
        if value == By.SYSTEM:
            return queryset.filter(by=By.SYSTEM)
        return queryset.said().filter(actor=value)

    def by_service(self, queryset: QuerySet[MemoryChange], name: str, value: str) -> QuerySet[MemoryChange]:
        of_service = Memory.objects.filter(service=normalise_service(value))
        return _newest(queryset).filter(Q(memory__in=of_service))

    def by_text(self, queryset: QuerySet[MemoryChange], name: str, value: str) -> QuerySet[MemoryChange]:
        queryset = _newest(queryset)
        for word in value.split():
            queryset = queryset.filter(memory__observation__icontains=word)
        return queryset


def _newest(queryset: QuerySet[MemoryChange]) -> QuerySet[MemoryChange]:
    """Keep the newest SEARCHED changes; more where several have the time of the last one."""
    times = queryset.order_by("-at", "-id").values_list("at", flat=True)
    oldest = times[SEARCHED - 1 : SEARCHED].first()
    return queryset if oldest is None else queryset.filter(at__gte=oldest)


GLOBAL = "global"
"""The value of `project` that means the global file."""


class ProposalFilterSet(django_filters.FilterSet):
    """Query parameters, all optional, combined by AND: state, tier, kind, section, trust, project (slug or global)."""

    state = django_filters.ChoiceFilter(choices=ProposalState.choices, label="State")
    tier = django_filters.ChoiceFilter(choices=Tier.choices, label="Tier: 1 rules, 2 model, 3 person")
    kind = django_filters.ChoiceFilter(choices=ProposalKind.choices, label="Kind")
    section = django_filters.ChoiceFilter(choices=[(name, name) for name in KNOWLEDGE.categories], label="Section")
    trust = django_filters.ChoiceFilter(choices=Trust.choices, label="Trust")
    project = django_filters.ModelChoiceFilter(
        queryset=Project.objects.only("id", "slug"),
        field_name="file__project",
        to_field_name="slug",
        label="Project of the file, or global",
        null_label=GLOBAL,
        null_value=GLOBAL,
    )

    class Meta:
        model = Proposal
        fields: list[str] = []  # each is declared above, so that a new column adds no filter


def visible_proposals(access: Access) -> QuerySet[Proposal]:
    """Filter to what a caller may see: with a project those of its file and of the global one."""
    rows = Proposal.objects.select_related("file__project")
    if not access.confined:
        return rows
    return rows.filter(Q(file__project=None) | Q(file__project=access.project_id))
