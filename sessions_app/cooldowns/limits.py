"""How often a service may be restarted or redeployed. The database is the one authority.

What counts is derived when it is asked: the actions within the window, after the moment at which two healthy
checks in a row reset the counting or a person cleared it. Dry runs never count. A failed attempt counts: it was one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from memories.capture.text import fold, normalise_service
from memories.models import moment_of
from sessions_app.errors import InvalidSession
from sessions_app.models import CooldownAction, CooldownClearance, Remediation

CHECKS_READ = 200
"""Health checks of a service looked back at for a reset; older ones lie before any window that is in use."""

LONGEST_REASON, LONGEST_NAME = 500, 150

# The database finds the two in a row: a service is checked every few minutes, and one time of it is wanted.
RESETS = """
SELECT service, MAX(checked_at) FROM (
    SELECT service, checked_at, healthy, LAG(healthy) OVER backwards AS later, ROW_NUMBER() OVER backwards AS place
    FROM service_checks WHERE service IN ({services}) AND checked_at > %s AND checked_at <= %s
    WINDOW backwards AS (PARTITION BY service ORDER BY checked_at DESC, id DESC)
) looked_at WHERE place <= %s AND healthy AND later GROUP BY service
"""


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `most` actions within `window`."""

    most: int
    window: timedelta

    @property
    def hours(self) -> str:
        return f"{self.window.total_seconds() / 3600:g}"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an action is allowed now, and why. `until` (UTC) is when it will be, when time decides.

    Actions after `since` (UTC) count.
    """

    action: str
    service: str
    allowed: bool
    reason: str
    used: int
    limit: int
    window_hours: float
    until: datetime | None = None
    since: datetime | None = None


def limit_of(action: str) -> Limit:
    """The configured limit of an action. Raises InvalidSession for an unknown one."""
    if action == Remediation.RESTART:
        return Limit(settings.CLAUDEOPS_RESTART_LIMIT, timedelta(hours=settings.CLAUDEOPS_RESTART_WINDOW_HOURS))
    if action == Remediation.REDEPLOYMENT:
        return Limit(
            settings.CLAUDEOPS_REDEPLOYMENT_LIMIT, timedelta(hours=settings.CLAUDEOPS_REDEPLOYMENT_WINDOW_HOURS)
        )
    raise InvalidSession(
        f"{action!r} is no action with a cooldown.", "Allowed are: " + ", ".join(Remediation.values) + "."
    )


def check(action: str, service: str, *, at: datetime | None = None) -> Decision:
    """May `service` be restarted or redeployed at `at` (UTC, now by default)?

    Raises InvalidSession for an unknown action or a service without a name.
    """
    limit_of(action)
    decisions = standing([_named(service)], at=at)
    return next(decision for decision in decisions if decision.action == action)


def standing(services: Collection[str], *, at: datetime | None = None) -> list[Decision]:
    """What is allowed of each action for each of `services` (names as they are stored); three queries for all."""
    at = at or timezone.now()
    since = _since(at)
    times: dict[tuple[str, str], list[datetime]] = defaultdict(list)
    actions = CooldownAction.objects.filter(
        service__in=services, dry_run=False, created_at__gt=since, created_at__lte=at
    )
    for service, action, moment in actions.order_by("-created_at").values_list("service", "action", "created_at"):
        times[service, action].append(moment)
    resets = _resets_of(services, since, at)
    cleared = _cleared_at(services, since, at)
    return [
        _decide(action, name, times[name, action], resets.get(name), cleared.get((name, action)), at)
        for name in services
        for action in Remediation.values
    ]


def _decide(
    action: str, name: str, times: list[datetime], reset: datetime | None, cleared: datetime | None, at: datetime
) -> Decision:
    """`times` of the actions, newest first, and what ended their counting: the rule itself. Pure but for the limits."""
    limit = limit_of(action)
    since = max(moment for moment in (at - limit.window, reset, cleared) if moment is not None)
    counting = [moment for moment in times if moment > since]
    used, hours = len(counting), limit.window.total_seconds() / 3600
    counted = f"{used} of {limit.most} {action}s of {name} in the last {hours:g} hours"
    if since == cleared:
        counted += f" (not counting what lies before {since:%Y-%m-%d %H:%M} UTC, when a person cleared it)"
    elif since == reset:
        counted += f" (not counting what lies before the healthy checks since {since:%Y-%m-%d %H:%M} UTC)"
    if limit.most == 0:
        reason = f"Refused: {action}s are switched off (limit 0)."
        return Decision(action, name, False, reason, used, 0, hours, since=since)
    if used < limit.most:
        return Decision(action, name, True, f"Allowed: {counted}.", used, limit.most, hours, since=since)
    # The window opens when the oldest of the newest `most` actions leaves it.
    until = counting[limit.most - 1] + limit.window
    reason = (
        f"Refused: {counted}. Allowed again at {until:%Y-%m-%d %H:%M} UTC, or after two healthy checks in a row. "
        "Do not work around this; report it and hand over to a person."
    )
    return Decision(action, name, False, reason, used, limit.most, hours, until, since)


def in_force(*, at: datetime | None = None) -> list[Decision]:
    """For every service with an action in a window: what is left of its limits, refused ones first."""
    at = at or timezone.now()
    services = list(_acted(at).order_by("service").values_list("service", flat=True).distinct())
    found = [decision for decision in standing(services, at=at) if decision.used]
    return sorted(found, key=lambda d: (d.allowed, d.service, d.action))


def refused(*, at: datetime | None = None) -> list[Decision]:
    """What may not be done now because of what was done before: the cooldowns that are in force."""
    at = at or timezone.now()
    # Only what was done as often as its limit can be refused: nothing else is looked at any closer.
    enough = Q()
    for action in Remediation.values:
        enough |= Q(action=action, times__gte=max(1, limit_of(action).most))
    often = _acted(at).order_by().values("service", "action").annotate(times=Count("id")).filter(enough)
    services = sorted(set(often.values_list("service", flat=True)))
    found = [decision for decision in standing(services, at=at) if decision.used and not decision.allowed]
    return sorted(found, key=lambda d: (d.service, d.action))


def _acted(at: datetime) -> QuerySet[CooldownAction]:
    """What was done within the longest window; dry runs do not count."""
    return CooldownAction.objects.filter(dry_run=False, created_at__gt=_since(at), created_at__lte=at)


def _since(at: datetime) -> datetime:
    """When the longest window began."""
    return at - max(limit_of(action).window for action in Remediation.values)


def clear(
    service: str, action: str | None = None, *, by: str, reason: str, at: datetime | None = None
) -> CooldownClearance:
    """From `at` (UTC, now by default) on, what was done to `service` before counts no more: one action, or both.

    Raises InvalidSession for an unknown action, a missing service, person or reason, and when nothing counts.
    """
    if action:
        limit_of(action)
    name, who, why = _named(service), fold(by), fold(reason)
    if not who or len(who) > LONGEST_NAME:
        raise InvalidSession("Who clears it must be named.", f"In at most {LONGEST_NAME} characters.")
    if not why or len(why) > LONGEST_REASON:
        raise InvalidSession(
            "A cooldown is cleared with a reason.",
            f"Say in at most {LONGEST_REASON} characters why it may be done again.",
        )
    at = at or timezone.now()
    with transaction.atomic():
        if not any(decision.used and action in (None, "", decision.action) for decision in standing([name], at=at)):
            raise InvalidSession(
                f"No {action or 'action'} of {name} counts now, so there is nothing to clear.",
                "See which ones do in the list of cooldowns.",
            )
        return CooldownClearance.objects.create(service=name, action=action or "", cleared_at=at, by=who, reason=why)


def limits_text(*, at: datetime | None = None) -> str:
    """The limits and what is used of them, for a prompt."""
    lines = []
    for action in Remediation.values:
        limit = limit_of(action)
        hours = limit.window.total_seconds() / 3600
        lines.append(f"- {action}: at most {limit.most} per service within {hours:g} hours")
    running = in_force(at=at)
    if running:
        lines += ["", "In force now:"]
        lines += [f"- {decision.reason}" for decision in running]
    else:
        lines += ["", "No service has used any of them now."]
    return "\n".join(lines)


def _named(service: str) -> str:
    name = normalise_service(service)
    if not name:
        raise InvalidSession("A cooldown is about one service; none was named.", "Give its name, like jellyfin.")
    return name


def _cleared_at(services: Collection[str], since: datetime, at: datetime) -> dict[tuple[str, str], datetime]:
    """The latest clearance by service and action."""
    rows = CooldownClearance.objects.filter(service__in=services, cleared_at__gt=since, cleared_at__lte=at)
    found: dict[tuple[str, str], datetime] = {}
    for service, action, moment in rows.order_by("cleared_at").values_list("service", "action", "cleared_at"):
        found |= {(service, one): moment for one in ([action] if action else Remediation.values)}
    return found


def _resets_of(services: Collection[str], since: datetime, at: datetime) -> dict[str, datetime]:
    """By service the first of the last two healthy checks in a row.

    Actions before it have been followed by both of them: they no longer count. An action between the two
    has been followed by one only, and still does.
    """
    if not services:
        return {}
    adapted = (connection.ops.adapt_datetimefield_value(moment) for moment in (since, at))
    with connection.cursor() as cursor:
        cursor.execute(RESETS.format(services=", ".join(["%s"] * len(services))), [*services, *adapted, CHECKS_READ])
        return {service: moment_of(moment) for service, moment in cursor.fetchall()}
