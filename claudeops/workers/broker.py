"""django-q2's ORM broker with a queue for each host, which is read first.

A session's process and log are on one host: its tasks go to `<queue>@<host>`, which only that host reads. A host
without room for a session takes no wake-up that another host could use. A taken task names its worker in its key, so
that it can be given back when that worker is gone.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from django.conf import settings
from django.db.models import Case, IntegerField, Value, When
from django.utils import timezone
from django_q.brokers.orm import ORM

from sessions_app.checks import clusters
from sessions_app.models import Session
from sessions_app.queue.tasks import SESSIONS, TAKEN, address

SETTLE = 2.0
"""Seconds from taking a wake-up until its session is seen as running."""


class HostBroker(ORM):
    """Serves the queue `list_key` and this host's part of it."""

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self._taken: list[float] = []

    def __setstate__(self, state: tuple[str, Any]) -> None:
        super().__setstate__(state)
        self._taken = []

    def timeout(self, task: Any) -> Any:
        """Return when `task` is delivered again unless it is acknowledged: after this queue's own `retry`."""
        return timezone.now() + timedelta(seconds=dict(clusters())[self.list_key]["retry"])

    def hold_until(self, at: datetime) -> None:
        """Set until when (UTC) the tasks that this process took are its own."""
        self.get_connection().filter(key__in=self._taken_keys()).update(lock=at)

    def _taken_keys(self) -> tuple[str, str]:
        """Return the keys of tasks that this process took: one for any host, one addressed to this one."""
        own, pid = address(self.list_key, settings.CLAUDEOPS_HOST), os.getpid()
        return f"{own}{TAKEN * 2}{pid}", f"{own}{TAKEN}{pid}"

    def _has_room(self) -> bool:
        if self.list_key != SESSIONS:
            return True
        self._taken = [moment for moment in self._taken if monotonic() - moment < SETTLE]
        running = Session.objects.running().filter(host=settings.CLAUDEOPS_HOST).count()
        return running + len(self._taken) < settings.CLAUDEOPS_SESSION_WORKERS

    def dequeue(self) -> list[tuple[int, str]]:
        """Take the next task, [(id, payload)], by conditional UPDATE; [] when none waits or another worker took it."""
        own = address(self.list_key, settings.CLAUDEOPS_HOST)
        first = Case(When(key=own, then=Value(0)), default=Value(1), output_field=IntegerField())
        keys = [own, self.list_key] if self._has_room() else [own]
        rows = self.get_connection().filter(key__in=keys, lock__lt=timezone.now())
        task = rows.order_by(first, "id").first()
        if task is None:
            return []
        taken = self._taken_keys()[task.key == own]
        if not rows.filter(pk=task.pk).update(key=taken, lock=self.timeout(task)):
            return []
        if task.key != own:
            self._taken.append(monotonic())
        return [(task.pk, task.payload)]
