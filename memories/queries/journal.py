"""Entries of the journal for its page, its command and its API: filters, and counts by day."""

from __future__ import annotations

from datetime import date, datetime

import django_filters
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import TruncDate

from claudeops.lib.list_view.filters import PeriodFilter
from memories.access import Access
from memories.models import JournalEntry, MemoryChange, Project
from memories.queries.filters import IdFilter

SEARCHED = 20_000
"""Entries among which words are looked for: no index has them."""


class JournalFilterSet(django_filters.FilterSet):
    """Query parameters, all optional and combined by AND.

    action (a verb), tool (a noun), project (slug), agent (slug), session (id), by (who wrote it), host, during (as
    `24h`, `7d`, `30d`, `90d`, or two times with `..` between, the first one included), and text (every word of it in
    the detail, the reason, the tool or the action). Text is looked for in the newest SEARCHED of the entries that the
    other filters leave.
    """

    action = django_filters.CharFilter(label="Action", max_length=40)
    tool = django_filters.CharFilter(label="Tool", max_length=80)
    project = django_filters.CharFilter(label="Project", max_length=64)
    agent = django_filters.CharFilter(label="Agent", max_length=64)
    session = IdFilter(field_name="session_id", min_value=1, max_value=2**63 - 1, label="Session")
    by = django_filters.CharFilter(label="Written by", max_length=150)
    host = django_filters.CharFilter(label="Host", max_length=255)
    during = PeriodFilter(field_name="at", label="Period, as 24h or from..to")
    text = django_filters.CharFilter(method="by_text", label="Text", max_length=200)

    class Meta:
        model = JournalEntry
        fields: list[str] = []  # each is declared above, so that a new column adds no filter

    def by_text(self, queryset: QuerySet[JournalEntry], name: str, value: str) -> QuerySet[JournalEntry]:
        rows = queryset.filter(pk__in=queryset.order_by("-at", "-pk").values("pk")[:SEARCHED])
        for word in value.split():
            said = Q(detail__icontains=word) | Q(reason__icontains=word)
            rows = rows.filter(said | Q(tool__icontains=word) | Q(action__icontains=word))
        return rows


def visible_entries(access: Access) -> QuerySet[JournalEntry]:
    """Filter to the entries that a caller may see: with a project its own and those of none."""
    rows = JournalEntry.objects.all()
    if not access.confined:
        return rows
    slug = Project.objects.filter(pk=access.project_id or 0).values_list("slug", flat=True).first()
    return rows.filter(project__in=["", slug] if slug else [""])


def with_sessions(rows: QuerySet[JournalEntry]) -> QuerySet[JournalEntry]:
    """Say of each entry whether its session is still there: a line outlives it."""
    sessions = MemoryChange._meta.get_field("session").related_model
    there = sessions._base_manager.filter(pk=OuterRef("session_id"))
    return rows.annotate(has_session=Exists(there))


def by_day(rows: QuerySet[JournalEntry], since: datetime) -> dict[date, tuple[int, int]]:
    """Return the entries of agents and of others by day (UTC)."""
    grouped = rows.filter(at__gte=since).order_by().values_list(TruncDate("at"))
    counts = grouped.annotate(agents=Count("pk", filter=~Q(agent="")), others=Count("pk", filter=Q(agent="")))
    return {day: (agents, others) for day, agents, others in counts}
