"""django-q2's ORM broker, with an address for each host and an order.

A session's process and log are on one host: what concerns them is sent to `<cluster>@<host>` and only read
there, before anything else. The plain broker reads one queue, in no order, and hoards: a host that is busy for
an hour must not hold on to a session that another one could run now.
"""

from __future__ import annotations

from time import monotonic, sleep
from typing import Any

from django.conf import settings
from django.db.models import Case, IntegerField, Value, When
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf

from sessions_app.models import Session
from sessions_app.queue.tasks import SESSIONS, address

SETTLE = 2.0
"""Seconds from taking a wake-up to its session being seen running."""


class HostBroker(ORM):
    """Serves the queue it is named after and this host's own."""

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self._taken: list[float] = []

    def __setstate__(self, state: tuple[str, Any]) -> None:
        super().__setstate__(state)
        self._taken = []

    def _has_room(self) -> bool:
        """Whether a worker of this host would take a wake-up up at once."""
        if self.list_key != SESSIONS:
            return True
        self._taken = [moment for moment in self._taken if monotonic() - moment < SETTLE]
        running = Session.objects.running().filter(host=settings.CLAUDEOPS_HOST).count()
        return running + len(self._taken) < settings.CLAUDEOPS_SESSION_WORKERS

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Up to `bulk` tasks as (id, payload), taken by conditional UPDATE; None after a pause when none waits."""
        own = address(self.list_key, settings.CLAUDEOPS_HOST)
        first = Case(When(key=own, then=Value(0)), default=Value(1), output_field=IntegerField())
        keys = [own, self.list_key] if self._has_room() else [own]
        rows = self.get_connection().filter(key__in=keys, lock__lt=timezone.now())
        waiting = list(rows.order_by(first, "id")[: Conf.BULK])
        taken = []
        for task in waiting:
            # Not 1: another cluster was faster.
            if self.get_connection().filter(id=task.id, lock=task.lock).update(lock=self.timeout(task)):
                taken.append((task.pk, task.payload))
                if task.key != own:
                    self._taken.append(monotonic())
        if not waiting:
            sleep(Conf.POLL)
            return None
        return taken
