"""One FilterSet for sessions: the page, its polling and the API narrow the same way.

Knows no page and no request. An unknown value is an error of the form, not an empty list.
"""

from __future__ import annotations

import django_filters
from django import forms
from django.db.models import QuerySet

from memories.models import Project
from sessions_app.models import Agent, Session, Status, Trigger

UNFINISHED, WENT_WRONG = "unfinished", "went_wrong"
GROUPS: dict[str, tuple[str, ...]] = {
    UNFINISHED: (Status.QUEUED, Status.RUNNING),
    WENT_WRONG: (Status.FAILED, Status.TIMED_OUT, Status.LOST),
}
NOBODY = "none"

STATUSES = [*Status.choices, (UNFINISHED, "queued or running"), (WENT_WRONG, "went wrong")]
TIERS = [(1, "1 observe"), (2, "2 investigate"), (3, "3 remediate")]


def _moment() -> forms.DateTimeInput:
    return forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class SessionFilterSet(django_filters.FilterSet):
    """Query parameters, all optional and all together:

    status (one, or `unfinished`, `went_wrong`), tier (1..3), agent (slug, or `none`), trigger, project (slug, or
    `none`), since and until (when it was asked for, UTC, both included).
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
    since = django_filters.DateTimeFilter(
        field_name="queued_at", lookup_expr="gte", label="From (UTC)", widget=_moment()
    )
    until = django_filters.DateTimeFilter(field_name="queued_at", lookup_expr="lte", label="To (UTC)", widget=_moment())

    class Meta:
        model = Session
        fields: list[str] = []  # each is declared above, so that a new column opens nothing by itself

    def by_status(self, queryset: QuerySet[Session], name: str, value: str) -> QuerySet[Session]:
        if value in GROUPS:
            return queryset.filter(status__in=GROUPS[value])
        return queryset.filter(status=value)
