"""Decision records for their page and their API: what a caller may see, and filters."""

from __future__ import annotations

import django_filters
from django.db.models import Q, QuerySet

from memories.access import Access
from memories.library.decisions.index import governs
from memories.library.decisions.record import STATUSES
from memories.models import Decision


class DecisionFilterSet(django_filters.FilterSet):
    """Query parameters, all optional and combined by AND.

    project (slug), status (a canonical one), path (a file or glob below the repository that it governs), tag, problem
    (true: only records with which something is wrong), text (every word of it in the title or the text).
    """

    project = django_filters.CharFilter(field_name="project__slug", label="Project", max_length=64)
    status = django_filters.ChoiceFilter(choices=[(one, one) for one in STATUSES], label="Status")
    path = django_filters.CharFilter(method="by_path", label="Governs", max_length=400)
    tag = django_filters.CharFilter(method="by_tag", label="Tag", max_length=80)
    problem = django_filters.BooleanFilter(method="by_problem", label="Something is wrong")
    text = django_filters.CharFilter(method="by_text", label="Text", max_length=200)

    class Meta:
        model = Decision
        fields: list[str] = []  # each is declared above, so that a new column adds no filter

    def by_path(self, queryset: QuerySet[Decision], name: str, value: str) -> QuerySet[Decision]:
        rows = queryset.exclude(paths=[]).only("paths")
        return queryset.filter(pk__in=[row.pk for row in rows if governs(row, value)])

    def by_tag(self, queryset: QuerySet[Decision], name: str, value: str) -> QuerySet[Decision]:
        rows = queryset.exclude(tags=[]).only("tags")
        wanted = value.casefold()
        return queryset.filter(pk__in=[row.pk for row in rows if wanted in (str(tag).casefold() for tag in row.tags)])

    def by_problem(self, queryset: QuerySet[Decision], name: str, value: bool) -> QuerySet[Decision]:
        return queryset.exclude(problems=[]) if value else queryset.filter(problems=[])

    def by_text(self, queryset: QuerySet[Decision], name: str, value: str) -> QuerySet[Decision]:
        for word in value.split():
            queryset = queryset.filter(Q(title__icontains=word) | Q(text__icontains=word))
        return queryset


def visible_decisions(access: Access) -> QuerySet[Decision]:
    """Filter to the decisions that a caller may see: with a project its own."""
    return Decision.objects.filter(project=access.project_id or 0) if access.confined else Decision.objects.all()
