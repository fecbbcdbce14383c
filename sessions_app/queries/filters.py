"""FilterSets of sessions and of events; an unknown value is an error of the form, not an empty list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import django_filters
from django import forms
from django.db.models import Q, QuerySet
from django.utils import timezone

from claudeops.lib.list_view.filters import Comparison, ComparisonFilter, PeriodFilter
from claudeops.lib.periods import Period
from claudeops.lib.time_field import TimeFilter
from memories.capture.text import normalise_service
from memories.models import Project
from memories.queries.filters import IdFilter
from sessions_app.models import Agent, Event, Level, Session, Status, Trigger
from sessions_app.models.event import OPEN
from sessions_app.models.session import OPEN_STATUSES, SessionQuerySet
from sessions_app.queue.dispatch import day_of

UNFINISHED, WENT_WRONG = "unfinished", "went_wrong"
GROUPS: dict[str, tuple[str, ...]] = {
    UNFINISHED: (Status.QUEUED, Status.RUNNING),
    WENT_WRONG: (Status.FAILED, Status.TIMED_OUT, Status.LOST),
}
NOBODY = "none"

STATUSES = [*Status.choices, (UNFINISHED, "queued or running"), (WENT_WRONG, "failed, timed out or lost")]
TODAY, WEEK = "today", "week"
SPENT = [(TODAY, "today, including running"), (WEEK, "in the last 7 days")]
AGES = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=30)}
AGE_CHOICES = [(name, f"the last {name}") for name in AGES]
SEARCHED = 10_000
"""Events among which words are looked for: messages have no index."""
TIERS = [(1, "1 observe"), (2, "2 investigate"), (3, "3 remediate")]


def _moment() -> forms.DateTimeInput:
    return forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class SessionFilterSet(django_filters.FilterSet):
    """Query parameters, all optional and combined:

    text (every word of it in the summary, the reason of the status or the task), age (queued within the last hour, day,
    week or month), cost (US dollars: `>0.5`, `0.1..1`), by (name of the account that requested it),

    status (one, or `unfinished`, `went_wrong`), tier (1..3), agent (slug, or `none`), trigger, project (slug, or
    `none`), spent (sessions whose cost counts `today`, UTC, or in the last `week`: not imported logs), since and until
    (when it was queued, UTC, both included), ended (when it ended, as `24h`, `7d`, `30d`, `90d`, or two times with `..`
    between, the first one included).
    """

    status = django_filters.ChoiceFilter(choices=STATUSES, method="by_status", label="Status", empty_label="any status")
    tier = django_filters.ChoiceFilter(
        choices=[(str(tier), name) for tier, name in TIERS], label="Tier", empty_label="any tier"
    )
    agent = django_filters.ModelChoiceFilter(
        queryset=Agent.objects.only("id", "slug"),
        to_field_name="slug",
        label="Agent",
        empty_label="any agent",
        null_label="no agent",
        null_value=NOBODY,
    )
    trigger = django_filters.ChoiceFilter(choices=Trigger.choices, label="Trigger", empty_label="any trigger")
    project = django_filters.ModelChoiceFilter(
        queryset=Project.objects.only("id", "slug"),
        to_field_name="slug",
        label="Project",
        empty_label="any project",
        null_label="no project",
        null_value=NOBODY,
    )
    spent = django_filters.ChoiceFilter(choices=SPENT, method="by_spent", label="Period", empty_label="any")
    age = django_filters.ChoiceFilter(choices=AGE_CHOICES, method="by_age", label="Queued", empty_label="any time")
    ended = PeriodFilter(method="by_ended", label="Ended, as 24h or from..to")
    cost = ComparisonFilter(method="by_cost", label="Cost in $, as >0.5")
    by = django_filters.CharFilter(field_name="requested_by", label="Requested by", max_length=150)
    text = django_filters.CharFilter(method="by_text", label="Text", max_length=200)
    since = TimeFilter(field_name="queued_at", lookup_expr="gte", label="From (UTC)", widget=_moment())
    until = TimeFilter(field_name="queued_at", lookup_expr="lte", label="To (UTC)", widget=_moment())

    class Meta:
        model = Session
        fields: list[str] = []  # each is declared above, so that a new column adds no filter

    def by_status(self, queryset: QuerySet[Session], name: str, value: str) -> QuerySet[Session]:
        if value in GROUPS:
            return queryset.filter(status__in=GROUPS[value])
        return queryset.filter(status=value)

    def by_age(self, queryset: QuerySet[Session], name: str, value: str) -> QuerySet[Session]:
        return queryset.filter(queued_at__gte=timezone.now() - AGES[value])

    def by_ended(self, queryset: QuerySet[Session], name: str, value: Period) -> QuerySet[Session]:
        """Select what the counts by hour count: a session that is imported again is running, though it has ended."""
        bounds = {"ended_at__gte": value.since, "ended_at__lt": value.until}
        rows = queryset.filter(**{lookup: at for lookup, at in bounds.items() if at is not None})
        return rows.filter(ended_at__isnull=False).exclude(status__in=OPEN_STATUSES)

    def by_cost(self, queryset: QuerySet[Session], name: str, value: Comparison) -> QuerySet[Session]:
        return queryset.filter(**{f"cost_usd__{lookup}": bound for lookup, bound in value.bounds})

    def by_text(self, queryset: QuerySet[Session], name: str, value: str) -> QuerySet[Session]:
        for word in value.split():
            condition = Q(summary__icontains=word) | Q(status_reason__icontains=word) | Q(task__icontains=word)
            queryset = queryset.filter(condition)
        return queryset

    def by_spent(self, queryset: SessionQuerySet, name: str, value: str) -> QuerySet[Session]:
        now = timezone.now()
        return queryset.paid_on(day_of(now)) if value == TODAY else queryset.paid_since(now - AGES[WEEK])


class EventFilterSet(django_filters.FilterSet):
    """Query parameters, all optional and combined:

    level, open (`yes`: a warning or critical event that nobody has acknowledged; `no`: an acknowledged one), service
    (`general` = none), session (number), age (the last hour, day, week or month), during (as
    `24h`, `7d`, `30d`, `90d`, or two times with `..` between, the first one included), since and until (UTC, both
    included).
    """

    level = django_filters.ChoiceFilter(choices=Level.choices, label="Level", empty_label="any level")
    open = django_filters.ChoiceFilter(
        choices=[("yes", "open"), ("no", "acknowledged")], method="by_open", label="Open", empty_label="any"
    )
    service = django_filters.CharFilter(method="by_service", label="Service", max_length=64, widget=forms.Select)
    session = IdFilter(field_name="session_id", min_value=1, max_value=2**63 - 1, label="Session")
    age = django_filters.ChoiceFilter(choices=AGE_CHOICES, method="by_age", label="When", empty_label="any time")
    during = PeriodFilter(field_name="created_at", label="Period, as 24h or from..to")
    since = TimeFilter(field_name="created_at", lookup_expr="gte", label="From (UTC)", widget=_moment())
    until = TimeFilter(field_name="created_at", lookup_expr="lte", label="To (UTC)", widget=_moment())

    class Meta:
        model = Event
        fields: list[str] = []  # each is declared above, so that a new column adds no filter

    def offer_services(self, names: Sequence[str]) -> None:
        """Offer these services as choices; others are accepted too."""
        widget: Any = self.form.fields["service"].widget
        current = str(self.form["service"].value() or "")
        offered = names if not current or current in names else [*names, current]
        widget.choices = [("", "any service"), *((name, name) for name in offered)]

    def by_open(self, queryset: QuerySet[Event], name: str, value: str) -> QuerySet[Event]:
        return queryset.filter(OPEN if value == "yes" else Q(acknowledged_at__isnull=False))

    def by_service(self, queryset: QuerySet[Event], name: str, value: str) -> QuerySet[Event]:
        return queryset.filter(service=normalise_service(value))

    def by_age(self, queryset: QuerySet[Event], name: str, value: str) -> QuerySet[Event]:
        return queryset.filter(created_at__gte=timezone.now() - AGES[value])


class EventListFilterSet(EventFilterSet):
    """The filters of the page: those of the API, and text (every word of it in the message or the service).

    Words are looked for in the newest SEARCHED of the events that the other filters leave.
    """

    # Declared last: filters are applied in this order, and this one gets what the others leave.
    text = django_filters.CharFilter(method="by_text", label="Text", max_length=200)

    def by_text(self, queryset: QuerySet[Event], name: str, value: str) -> QuerySet[Event]:
        newest = queryset.order_by("-created_at", "-id").values_list("created_at", flat=True)
        if oldest := newest[SEARCHED - 1 : SEARCHED].first():
            queryset = queryset.filter(created_at__gte=oldest)
        for word in value.split():
            queryset = queryset.filter(Q(message__icontains=word) | Q(service__icontains=word))
        return queryset
