"""What was done to each service, what ended its counting, and what may be done now: the page of cooldowns. Reads only.

Knows no request. The rule itself is `cooldowns`'.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Max, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from sessions_app import cooldowns
from sessions_app.cooldowns import Decision
from sessions_app.models import CooldownAction, CooldownClearance, ServiceCheck

LOOKED_BACK = timedelta(days=30)
SERVICES, ENTRIES, ENTRIES_OF_ONE = 50, 5, 200


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a service's history: an action, a clearance, or the first of two healthy checks in a row."""

    at: datetime
    row: CooldownAction | CooldownClearance | ServiceCheck
    counts: bool = False

    @property
    def kind(self) -> str:
        kinds = {CooldownAction: "action", CooldownClearance: "clearance", ServiceCheck: "check"}
        return kinds[type(self.row)]


@dataclass(frozen=True, slots=True)
class Service:
    """A service's limits and its history, newest first; `more` when it is cut."""

    name: str
    decisions: list[Decision]
    entries: list[Entry]
    more: bool

    @property
    def used(self) -> list[Decision]:
        return [decision for decision in self.decisions if decision.used]

    @property
    def refused(self) -> bool:
        return any(not decision.allowed for decision in self.decisions)

    @property
    def until(self) -> datetime | None:
        """When the next action leaves its window; None when none counts."""
        hours = {decision.action: decision.window_hours for decision in self.decisions}
        actions = [entry.row for entry in self.entries if entry.counts and isinstance(entry.row, CooldownAction)]
        return min((row.created_at + timedelta(hours=hours[row.action]) for row in actions), default=None)


def acted_on(*, at: datetime | None = None) -> list[str]:
    """The services something was done to in the last 30 days, the last one first; at most SERVICES + 1."""
    at = at or timezone.now()
    rows = CooldownAction.objects.filter(created_at__gt=at - LOOKED_BACK, created_at__lte=at).order_by()
    return list(
        rows.values("service")
        .annotate(last=Max("created_at"))
        .order_by("-last", "service")
        .values_list("service", flat=True)[: SERVICES + 1]
    )


def services(names: list[str], *, entries: int = ENTRIES, at: datetime | None = None) -> list[Service]:
    """Each of `names` with its newest `entries`; refused ones first, then those with something that counts.

    Six queries, whatever the number of services.
    """
    at = at or timezone.now()
    decisions: dict[str, list[Decision]] = defaultdict(list)
    for decision in cooldowns.standing(names, at=at):
        decisions[decision.service].append(decision)
    lines: dict[str, list[Entry]] = defaultdict(list)
    for row in _newest(names, entries, at):
        since = {decision.action: decision.since for decision in decisions[row.service]}[row.action]
        counts = not row.dry_run and since is not None and row.created_at > since
        lines[row.service].append(Entry(row.created_at, row, counts))
    for check in _resets(decisions):
        if any(_ended(entry, check, at) for entry in lines[check.service]):
            lines[check.service].append(Entry(check.checked_at, check))
    for cleared in CooldownClearance.objects.filter(service__in=names, cleared_at__lte=at)[: SERVICES * entries]:
        lines[cleared.service].append(Entry(cleared.cleared_at, cleared))
    found = []
    for name in names:
        ordered = sorted(lines[name], key=lambda entry: entry.at, reverse=True)
        found.append(Service(name, decisions[name], ordered[:entries], len(ordered) > entries))
    return sorted(found, key=lambda service: (not service.refused, not service.used))


def _newest(names: list[str], most: int, at: datetime) -> list[CooldownAction]:
    """The newest actions of each service, one more than `most`."""
    place = Window(RowNumber(), partition_by="service", order_by=[F("created_at").desc(), F("id").desc()])
    rows = CooldownAction.objects.filter(service__in=names, created_at__lte=at).select_related("session__agent")
    return list(
        rows.annotate(place=place)
        .filter(place__lte=most + 1)
        .only("action", "service", "outcome", "message", "dry_run", "created_at", "session__id", "session__agent__slug")
        .order_by("-created_at", "-id")
    )


def _resets(decisions: dict[str, list[Decision]]) -> list[ServiceCheck]:
    """The healthy checks from which counting begins now."""
    moments = {(name, decision.since) for name, some in decisions.items() for decision in some}
    rows = ServiceCheck.objects.filter(
        service__in=list(decisions), healthy=True, checked_at__in={moment for _, moment in moments}
    )
    found = {
        (row.service, row.checked_at): row
        for row in rows.select_related("session__agent").defer("session__prompt", "session__response")
    }
    return [row for key, row in found.items() if key in moments]


def _ended(entry: Entry, check: ServiceCheck, at: datetime) -> bool:
    """Whether the action would count now, but for the check."""
    row = entry.row
    if not isinstance(row, CooldownAction) or row.dry_run:
        return False
    return at - cooldowns.limit_of(row.action).window < row.created_at <= check.checked_at
