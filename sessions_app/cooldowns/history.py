"""Read the history of each service for the page of cooldowns; the rule itself is in `limits`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import F
from django.utils import timezone

from sessions_app.cooldowns import limits
from sessions_app.cooldowns.limits import Decision
from sessions_app.models import CooldownAction, CooldownClearance, ServiceCheck

LOOKED_BACK = timedelta(days=30)
SERVICES, ENTRIES, ENTRIES_OF_ONE = 25, 5, 200
AGENT = F("session__agent__slug")


# Jumps through the index from service to service, and to the newest row of each: the time does not grow with the rows.
ACTED_ON = """
WITH RECURSIVE found(service) AS (
    SELECT MIN(service) FROM cooldown_actions
    UNION ALL
    SELECT (SELECT MIN(service) FROM cooldown_actions WHERE service > found.service) FROM found
    WHERE found.service IS NOT NULL
), acted(service, last) AS (
    SELECT service, (
        SELECT MAX(created_at) FROM cooldown_actions acted WHERE acted.service = found.service AND created_at <= %s
    ) FROM found WHERE service IS NOT NULL
)
SELECT service, last FROM acted WHERE last > %s ORDER BY last DESC, service LIMIT %s OFFSET %s
"""
NEWEST = """SELECT id FROM (
    SELECT id FROM cooldown_actions WHERE service = %s AND created_at <= %s ORDER BY created_at DESC, id DESC LIMIT %s
) newest"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a service's history: an action, a clearance, or the first of two healthy checks in a row."""

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
        hours = {decision.action: decision.window_hours for decision in self.decisions}
        actions = [entry.row for entry in self.entries if entry.counts and isinstance(entry.row, CooldownAction)]
        return min((row.created_at + timedelta(hours=hours[row.action]) for row in actions), default=None)


def acted_on(*, skip: int = 0, at: datetime | None = None) -> list[str]:
    """Return up to SERVICES + 1 services with actions in the last 30 days, the latest first, after the first `skip`."""
    at = at or timezone.now()
    since, until = (connection.ops.adapt_datetimefield_value(moment) for moment in (at - LOOKED_BACK, at))
    with connection.cursor() as cursor:
        cursor.execute(ACTED_ON, [until, since, SERVICES + 1, skip])
        return [service for service, _last in cursor.fetchall()]


def services(names: list[str], *, entries: int = ENTRIES, at: datetime | None = None) -> list[Service]:
    """Return each of `names` with its newest `entries`, refused ones first. Six queries for any number of services."""
    at = at or timezone.now()
    decisions: dict[str, list[Decision]] = defaultdict(list)
    for decision in limits.decisions_for(names, at=at):
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
    all_services = []
    for name in names:
        ordered = sorted(lines[name], key=lambda entry: entry.at, reverse=True)
        all_services.append(Service(name, decisions[name], ordered[:entries], len(ordered) > entries))
    return sorted(all_services, key=lambda service: (not service.refused, not service.used))


def _newest(names: list[str], most: int, at: datetime) -> list[CooldownAction]:
    """Return up to `most` + 1 newest actions of each service, with one index look-up for each, in one statement."""
    if not names:
        return []
    until = connection.ops.adapt_datetimefield_value(at)
    with connection.cursor() as cursor:
        cursor.execute(
            " UNION ALL ".join([NEWEST] * len(names)), [v for name in names for v in (name, until, most + 1)]
        )
        ids = [pk for (pk,) in cursor.fetchall()]
    rows = CooldownAction.objects.filter(pk__in=ids).annotate(agent=AGENT)
    shown = rows.only("action", "service", "outcome", "message", "dry_run", "created_at", "session_id")
    return list(shown.order_by("-created_at", "-id"))


def _resets(decisions: dict[str, list[Decision]]) -> list[ServiceCheck]:
    moments = {(name, decision.since) for name, some in decisions.items() for decision in some}
    rows = ServiceCheck.objects.filter(
        service__in=list(decisions), healthy=True, checked_at__in={moment for _, moment in moments}
    )
    shown = rows.annotate(agent=AGENT).only("service", "status", "checked_at", "session_id")
    by_key = {(row.service, row.checked_at): row for row in shown}
    return [row for key, row in by_key.items() if key in moments]


def _ended(entry: Entry, check: ServiceCheck, at: datetime) -> bool:
    """Whether the action would count now if the check had not reset the count."""
    row = entry.row
    if not isinstance(row, CooldownAction) or row.dry_run:
        return False
    return at - limits.limit_of(row.action).window < row.created_at <= check.checked_at
