"""The app of sessions: runs of agents, their queue and schedules."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate

if TYPE_CHECKING:
    from datetime import datetime

    from memories.models import Project
    from memories.queries.numbers import Uses


class SessionsAppConfig(AppConfig):
    name = "sessions_app"
    verbose_name = "sessions"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from memories import committers
        from memories.queries import numbers
        from sessions_app import checks  # noqa: F401  (registers the system checks)

        numbers.count_uses_by(_counts_of)
        committers.know_agents_by(_at_work)

        post_migrate.connect(_after_migrate, sender=self, dispatch_uid="sessions_app.counts")


def _counts_of(memories: Collection[int]) -> Mapping[int, Uses]:
    """Count how often sessions used these memories. The import is here because few commands need it."""
    from sessions_app.credit.facts import counts_of

    return counts_of(memories)


def _at_work(project: Project | None, since: datetime, until: datetime) -> str:
    """Say which agent may have written in a project's folder. The import is here because few commands need it."""
    from sessions_app.hooks.proof import at_work

    return at_work(project, since, until)


def _after_migrate(using: str, **kwargs: Any) -> None:
    """Create the triggers of the counts and count what there is, where they are missing or outdated."""
    from claudeops.lib import hour_counts
    from sessions_app.counts import tables

    hour_counts.keep(tables.ALL, connections[using])
