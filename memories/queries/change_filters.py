"""The FilterSet of the changes of memories, for their list. Refuses unknown values."""

from __future__ import annotations

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from claudeops.lib.list_view.filters import PeriodFilter
from claudeops.lib.time_field import TimeFilter
from memories.capture.text import normalise_service
from memories.models import By, Listed, Memory, MemoryChange
from memories.models.change import MemoryChangeQuerySet
from memories.queries.filters import IdFilter

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
