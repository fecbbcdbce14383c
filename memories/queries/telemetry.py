"""Telemetry records for their page: filters, and how many there were of each level in the parts of a range."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import django_filters
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from claudeops.lib import hour_counts
from claudeops.lib.list_view.filters import PeriodFilter
from memories.models import RecordLevel, TelemetryCount, TelemetryRecord

SEARCHED = 5_000
"""Records among which words are looked for: no index has them."""
COUNTED = 10_000
"""Newest records that a chart counts where the counts by hour do not answer."""
BY_HOUR = {"level", "component", "during"}
"""The filters that the counts by hour answer."""


class TelemetryFilterSet(django_filters.FilterSet):
    """Query parameters, all optional and combined by AND.

    level (info, warning, error), component, source, action (the whole name, or with `*` at the end its beginning),
    success (yes, no), during (as `24h`, `7d`, `30d`, `90d`, or two times with `..` between, the first one included),
    and text (every word of it in the action or the metadata).

    Text is looked for in the newest SEARCHED of the records that the other filters leave.
    """

    level = django_filters.ChoiceFilter(
        choices=RecordLevel.choices, method="by_level", label="Level", empty_label="any level"
    )
    success = django_filters.ChoiceFilter(
        choices=[("yes", "succeeded"), ("no", "failed")], method="by_success", label="Success", empty_label="any"
    )
    component = django_filters.CharFilter(label="Component", max_length=40)
    source = django_filters.CharFilter(label="Source", max_length=40)
    action = django_filters.CharFilter(method="by_action", label="Action", max_length=64)
    during = PeriodFilter(field_name="at", label="Period, as 24h or from..to")
    # Declared last: filters are applied in this order, and this one gets what the others leave.
    text = django_filters.CharFilter(method="by_text", label="Text", max_length=200)

    class Meta:
        model = TelemetryRecord
        fields: list[str] = []  # each is declared above, so that a new column adds no filter

    def by_level(self, queryset: QuerySet[TelemetryRecord], name: str, value: str) -> QuerySet[TelemetryRecord]:
        # The index of levels leaves out info: a query uses it only when it says so, too.
        rows = queryset.filter(level=value)
        return rows if value == RecordLevel.INFO else rows.filter(~Q(level=RecordLevel.INFO))

    def by_success(self, queryset: QuerySet[TelemetryRecord], name: str, value: str) -> QuerySet[TelemetryRecord]:
        return queryset.filter(success=value == "yes")

    def by_action(self, queryset: QuerySet[TelemetryRecord], name: str, value: str) -> QuerySet[TelemetryRecord]:
        if not value.endswith("*"):
            return queryset.filter(action=value)
        begin = value.rstrip("*")
        # A range, which the index of actions has; LIKE has none.
        return queryset.filter(action__gte=begin, action__lt=begin + "\uffff") if begin else queryset

    def by_text(self, queryset: QuerySet[TelemetryRecord], name: str, value: str) -> QuerySet[TelemetryRecord]:
        newest = queryset.order_by("-at", "-id").values("pk")[:SEARCHED]
        records = TelemetryRecord.objects.filter(pk__in=newest).annotate(words=Cast("metadata", TextField()))
        for word in value.split():
            records = records.filter(Q(action__icontains=word) | Q(words__icontains=word))
        return records


def levels_in_parts(given: Mapping[str, Any], edges: Sequence[datetime]) -> tuple[list[Counter[str]], bool]:
    """Count the records by level in each part between two `edges` (UTC, whole hours, ascending).

    `given` are the cleaned values of the filters. True beside the counts: they are of the newest COUNTED alone.
    """
    filters = {name for name, value in given.items() if value not in (None, "")}
    if not filters <= BY_HOUR:
        return _of_rows(given, edges)
    parts: list[Counter[str]] = [Counter() for _ in edges[1:]]
    names = None
    if component := given.get("component"):
        names = [f"{component}:{level}" for level in RecordLevel.values]
    [counted] = hour_counts.in_parts(TelemetryCount, edges, names=names)
    for part, numbers in zip(parts, counted, strict=True):
        for name, number in numbers.items():
            level = name.rpartition(":")[2]
            if given.get("level") in ("", None, level):
                part[level] += number
    return parts, False


def _of_rows(cleaned: Mapping[str, Any], edges: Sequence[datetime]) -> tuple[list[Counter[str]], bool]:
    filters = {name: value for name, value in cleaned.items() if name != "during" and value not in (None, "")}
    rows = TelemetryFilterSet(filters, queryset=TelemetryRecord.objects.filter(at__gte=edges[0], at__lt=edges[-1])).qs
    newest = list(rows.order_by("-at", "-id").values_list("at", "level")[: COUNTED + 1])
    parts: list[Counter[str]] = [Counter() for _ in edges[1:]]
    for at, level in newest[:COUNTED]:
        parts[bisect_right(edges, at) - 1][level] += 1
    return parts, len(newest) > COUNTED
