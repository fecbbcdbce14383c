"""The list filters of the sessions' pages. Each narrows by what an index serves, or by few values."""

from __future__ import annotations

from collections.abc import Iterable

from claudeops.lib.admin_lists import age_filter, choice_filter
from sessions_app.models import Agent, Level, LogKind, Outcome, Remediation, Status, Trigger

MOST_AGENTS = 100


def _agents() -> Iterable[tuple[str, str]]:
    slugs = list(Agent.objects.order_by("slug").values_list("slug", flat=True)[:MOST_AGENTS])
    return [*((slug, slug) for slug in slugs), ("none", "no agent")] if slugs else []


StatusFilter = choice_filter("status", "status", lambda: Status.choices, lambda rows, value: rows.filter(status=value))
AgentFilter = choice_filter(
    "agent",
    "agent",
    _agents,
    lambda rows, value: rows.filter(agent=None) if value == "none" else rows.filter(agent__slug=value),
)
TierFilter = choice_filter(
    "tier",
    "tier",
    lambda: [("1", "1 observe"), ("2", "2 investigate"), ("3", "3 remediate")],
    lambda rows, value: rows.filter(tier=int(value)),
)
TriggerFilter = choice_filter(
    "trigger", "trigger", lambda: Trigger.choices, lambda rows, value: rows.filter(trigger=value)
)
DryRunFilter = choice_filter(
    "dry run",
    "dry_run",
    lambda: [("yes", "dry runs"), ("no", "real runs")],
    lambda rows, value: rows.filter(dry_run=value == "yes"),
)
LevelFilter = choice_filter("level", "level", lambda: Level.choices, lambda rows, value: rows.filter(level=value))
ActionFilter = choice_filter(
    "action", "action", lambda: Remediation.choices, lambda rows, value: rows.filter(action=value)
)
OutcomeFilter = choice_filter(
    "outcome", "outcome", lambda: Outcome.choices, lambda rows, value: rows.filter(outcome=value)
)
KindFilter = choice_filter("kind", "kind", lambda: LogKind.choices, lambda rows, value: rows.filter(kind=value))
HealthFilter = choice_filter(
    "health",
    "healthy",
    lambda: [("yes", "healthy"), ("no", "not healthy")],
    lambda rows, value: rows.filter(healthy=value == "yes"),
)

QueuedFilter = age_filter("queued_at", "asked for")
CreatedFilter = age_filter("created_at", "when")
CheckedFilter = age_filter("checked_at", "when")
ClearedFilter = age_filter("cleared_at", "when")
