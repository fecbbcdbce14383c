"""Decide whether a service may be restarted or redeployed now, and clear its cooldown.

Actions within the window count, from the last two healthy checks in a row and the last clearance on. Failed attempts
count, dry runs do not.
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
from memories.library import journal
from memories.models import moment_of
from sessions_app.errors import InvalidSession
from sessions_app.models import CooldownAction, CooldownClearance, Remediation

CHECKS_READ = 200
"""Most health checks of a service that are searched for a reset, the newest first."""

LONGEST_REASON, LONGEST_NAME = 500, 150

# By service the time of its last healthy check that a healthy one follows. In SQL, because the ORM cannot group by the
# result of a window: its other forms took four times as long on PostgreSQL (50 services, 14,400 checks).
RESETS_SQL = """
SELECT service, MAX(checked_at) FROM (
    SELECT service, checked_at, healthy, LAG(healthy) OVER backwards AS later, ROW_NUMBER() OVER backwards AS place
    FROM service_checks WHERE service IN ({services}) AND checked_at > %s AND checked_at <= %s
    WINDOW backwards AS (PARTITION BY service ORDER BY checked_at DESC, id DESC)
) looked_at WHERE place <= %s AND healthy AND later GROUP BY service
"""


@dataclass(frozen=True, slots=True)
class Limit:
    most: int
    window: timedelta

    @property
    def hours(self) -> str:
        return f"{self.window.total_seconds() / 3600:g}"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an action is allowed now, and why. `until` (UTC) is when a refused one is allowed again.

    `used` counts the actions after `since` (UTC).
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
    """Return the configured limit of an action. Raises InvalidSession for an unknown action."""
    if action == Remediation.RESTART:
        most, hours = settings.CLAUDEOPS_RESTART_LIMIT
    elif action == Remediation.REDEPLOYMENT:
        most, hours = settings.CLAUDEOPS_REDEPLOYMENT_LIMIT
    else:
        raise InvalidSession(f"There is no action {action!r}.", "Known actions: " + ", ".join(Remediation.values) + ".")
    return Limit(most, timedelta(hours=hours))


def check(action: str, service: str, *, at: datetime | None = None) -> Decision:
    """Decide whether `action` is allowed for `service` at `at` (UTC; now when None). Raises InvalidSession."""
    limit_of(action)
    decisions = decisions_for([_service_name(service)], at=at)
    return next(decision for decision in decisions if decision.action == action)


def decisions_for(services: Collection[str], *, at: datetime | None = None) -> list[Decision]:
    """Decide on each action for each of `services` (normalised names), in three queries."""
    at = at or timezone.now()
    since = _longest_window_start(at)
    times: dict[tuple[str, str], list[datetime]] = defaultdict(list)
    actions = CooldownAction.objects.filter(
        service__in=services, dry_run=False, created_at__gt=since, created_at__lte=at
    )
    for service, action, done_at in actions.order_by("-created_at").values_list("service", "action", "created_at"):
        times[service, action].append(done_at)
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
    """Apply the rule. `times` of the actions are newest first; `reset` and `cleared` ended an earlier count."""
    limit = limit_of(action)
    since = max(time for time in (at - limit.window, reset, cleared) if time is not None)
    counting = [time for time in times if time > since]
    used, hours = len(counting), limit.window.total_seconds() / 3600
    counted = f"{used} of {limit.most} {action}s of {name} in the last {limit.hours} hours"
    if since == cleared:
        counted += f" (not counting those before {since:%Y-%m-%d %H:%M} UTC, when a person cleared it)"
    elif since == reset:
        counted += f" (not counting those before the healthy checks since {since:%Y-%m-%d %H:%M} UTC)"
    if limit.most == 0:
        reason = f"Refused: {action}s are switched off (limit 0)."
        return Decision(action, name, False, reason, used, 0, hours, since=since)
    if used < limit.most:
        return Decision(action, name, True, f"Allowed: {counted}.", used, limit.most, hours, since=since)
    # The action is allowed again when the oldest of the last `most` actions leaves the window.
    until = counting[limit.most - 1] + limit.window
    reason = (
        f"Refused: {counted}. Allowed again at {until:%Y-%m-%d %H:%M} UTC, or after two healthy checks in a row. "
        "Do not work around this limit; report it and hand over to a person."
    )
    return Decision(action, name, False, reason, used, limit.most, hours, until, since)


def in_force(*, at: datetime | None = None) -> list[Decision]:
    """Return decisions on every service whose limits are partly used, refused ones first."""
    at = at or timezone.now()
    services = list(_actions(at).order_by("service").values_list("service", flat=True).distinct())
    decisions = [decision for decision in decisions_for(services, at=at) if decision.used]
    return sorted(decisions, key=lambda d: (d.allowed, d.service, d.action))


def refused(*, at: datetime | None = None) -> list[Decision]:
    """Return the decisions that refuse an action because of earlier ones."""
    at = at or timezone.now()
    # Only actions taken as often as their limit can be refused.
    enough = Q()
    for action in Remediation.values:
        enough |= Q(action=action, times__gte=max(1, limit_of(action).most))
    often = _actions(at).order_by().values("service", "action").annotate(times=Count("id")).filter(enough)
    services = sorted(set(often.values_list("service", flat=True)))
    decisions = [decision for decision in decisions_for(services, at=at) if decision.used and not decision.allowed]
    return sorted(decisions, key=lambda d: (d.service, d.action))


def _actions(at: datetime) -> QuerySet[CooldownAction]:
    return CooldownAction.objects.filter(dry_run=False, created_at__gt=_longest_window_start(at), created_at__lte=at)


def _longest_window_start(at: datetime) -> datetime:
    return at - max(limit_of(action).window for action in Remediation.values)


def clear(
    service: str, action: str | None = None, *, by: str, reason: str, at: datetime | None = None
) -> CooldownClearance:
    """Clear the cooldown of `service`: actions before `at` (UTC; now when None) no longer count. One action, or both.

    Raises InvalidSession for an unknown action, an empty service, person or reason, and when no action counts.
    """
    if action:
        limit_of(action)
    name, who, why = _service_name(service), fold(by), fold(reason)
    if not who or len(who) > LONGEST_NAME:
        raise InvalidSession(
            "The person who clears a cooldown must be named.", f"Give at most {LONGEST_NAME} characters."
        )
    if not why or len(why) > LONGEST_REASON:
        raise InvalidSession(
            "A cooldown is cleared with a reason.",
            f"Say in at most {LONGEST_REASON} characters why the action is allowed again.",
        )
    at = at or timezone.now()
    with transaction.atomic():
        if not any(
            decision.used and action in (None, "", decision.action) for decision in decisions_for([name], at=at)
        ):
            raise InvalidSession(
                f"No {action or 'action'} of {name} counts now, so there is nothing to clear.",
                "`manage.py cooldown list` shows the services whose limits are in use.",
            )
        journal.note(
            "clear", name, f"The cooldown of {action or 'each action'} was cleared.", reason=why, by=who, at=at
        )
        return CooldownClearance.objects.create(service=name, action=action or "", cleared_at=at, by=who, reason=why)


def limits_text(*, at: datetime | None = None) -> str:
    lines = []
    for action in Remediation.values:
        limit = limit_of(action)
        lines.append(f"- {action}: at most {limit.most} per service within {limit.hours} hours")
    used = [f"- {decision.reason}" for decision in in_force(at=at)]
    lines += ["", "In use now:", *used] if used else ["", "No service has used any of them now."]
    return "\n".join(lines)


def _service_name(service: str) -> str:
    name = normalise_service(service)
    if not name:
        raise InvalidSession("A cooldown needs a service; none was named.", "Give its name, like jellyfin.")
    return name


def _cleared_at(services: Collection[str], since: datetime, at: datetime) -> dict[tuple[str, str], datetime]:
    rows = CooldownClearance.objects.filter(service__in=services, cleared_at__gt=since, cleared_at__lte=at)
    by_action: dict[tuple[str, str], datetime] = {}
    for service, action, cleared_at in rows.order_by("cleared_at").values_list("service", "action", "cleared_at"):
        by_action |= {(service, one): cleared_at for one in ([action] if action else Remediation.values)}
    return by_action


def _resets_of(services: Collection[str], since: datetime, at: datetime) -> dict[str, datetime]:
    """Map each service to the first of its last two healthy checks in a row; an action between the two still counts."""
    if not services:
        return {}
    adapted = (connection.ops.adapt_datetimefield_value(time) for time in (since, at))
    with connection.cursor() as cursor:
        cursor.execute(
            RESETS_SQL.format(services=", ".join(["%s"] * len(services))), [*services, *adapted, CHECKS_READ]
        )
        return {service: moment_of(checked_at) for service, checked_at in cursor.fetchall()}
