"""How often a service may be restarted or redeployed. The database is the one authority.

What counts is derived when it is asked: the actions within the window, after the moment at which two healthy
checks in a row reset the counting. Dry runs never count. A failed attempt counts: it was one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from memories.capture.text import normalise_service
from sessions_app.errors import InvalidSession
from sessions_app.models import CooldownAction, Remediation, ServiceCheck

CHECKS_READ = 200
"""Health checks looked back at for a reset; older ones lie before any window that is in use."""


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `most` actions within `window`."""

    most: int
    window: timedelta


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an action is allowed now, and why. `until` (UTC) is when it will be, when time decides."""

    action: str
    service: str
    allowed: bool
    reason: str
    used: int
    limit: int
    window_hours: float
    until: datetime | None = None


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
    at = at or timezone.now()
    limit = limit_of(action)
    name = normalise_service(service)
    if not name:
        raise InvalidSession("A cooldown is about one service; none was named.", "Give its name, like jellyfin.")
    since = at - limit.window
    reset = _reset_at(_checks_of(name, since, at))
    actions = CooldownAction.objects.filter(
        service=name, action=action, dry_run=False, created_at__gt=max(since, reset or since), created_at__lte=at
    )
    times = list(actions.order_by("-created_at").values_list("created_at", flat=True)[: max(limit.most, 1)])
    used = len(times) if len(times) < limit.most else actions.count()
    hours = limit.window.total_seconds() / 3600
    counted = f"{used} of {limit.most} {action}s of {name} in the last {hours:g} hours"
    if reset:
        counted += f" (not counting what lies before the healthy checks since {reset:%Y-%m-%d %H:%M} UTC)"
    if used < limit.most:
        return Decision(action, name, True, f"Allowed: {counted}.", used, limit.most, hours)
    if limit.most == 0:
        return Decision(action, name, False, f"Refused: {action}s are switched off (limit 0).", used, 0, hours)
    # The window opens when the oldest of the newest `most` actions leaves it.
    until = times[limit.most - 1] + limit.window
    reason = (
        f"Refused: {counted}. Allowed again at {until:%Y-%m-%d %H:%M} UTC, or after two healthy checks in a row. "
        "Do not work around this; report it and hand over to a person."
    )
    return Decision(action, name, False, reason, used, limit.most, hours, until)


def in_force(*, at: datetime | None = None) -> list[Decision]:
    """For every service with an action in a window: what is left of its limits, refused ones first."""
    at = at or timezone.now()
    decisions = []
    for action in Remediation.values:
        since = at - limit_of(action).window
        services = (
            CooldownAction.objects.filter(action=action, dry_run=False, created_at__gt=since, created_at__lte=at)
            .order_by("service")
            .values_list("service", flat=True)
            .distinct()
        )
        decisions += [check(action, service, at=at) for service in services]
    return sorted((d for d in decisions if d.used), key=lambda d: (d.allowed, d.service, d.action))


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


def _checks_of(service: str, since: datetime, at: datetime) -> list[tuple[datetime, bool]]:
    rows = ServiceCheck.objects.filter(service=service, checked_at__gt=since, checked_at__lte=at)
    newest = rows.order_by("-checked_at", "-id").values_list("checked_at", "healthy")[:CHECKS_READ]
    return list(newest)[::-1]


def _reset_at(checks: Iterable[tuple[datetime, bool]]) -> datetime | None:
    """The first of the last two healthy checks in a row; `checks` are in the order of time.

    Actions before it have been followed by both of them: they no longer count. An action between the two
    has been followed by one only, and still does.
    """
    reset = previous = None
    for moment, healthy in checks:
        if healthy and previous is not None:
            reset = previous
        previous = moment if healthy else None
    return reset
