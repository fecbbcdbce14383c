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

from claudeops.lib.list_view.filters import Comparison, ComparisonFilter
from memories.capture.agent_id import agent_id
from memories.capture.text import normalise_service
from memories.models import Disagreement, DisagreementKind, Exposure, Inactive, Memory, Project, Source, Trust, Verdict
from memories.models.fades import FADES_AT, NEVER
from memories.models.memory import MemoryQuerySet
from memories.taxonomy import AGENT, TAXONOMIES

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
