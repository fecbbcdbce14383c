"""django-q2's ORM broker, with an address for each host and an order.

A session's process and log are on one host: what concerns them is sent to `<cluster>@<host>` and only read
there, before anything else. The plain broker reads one queue, in no order.
"""

from __future__ import annotations

from time import sleep

from django.conf import settings
from django.db.models import Case, IntegerField, Value, When
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf

from sessions_app.queue.wakeups import address


class HostBroker(ORM):
    """Serves the queue it is named after and this host's own."""

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Up to `bulk` tasks as (id, payload), taken by conditional UPDATE; None after a pause when none waits."""
        own = address(self.list_key, settings.CLAUDEOPS_HOST)
        first = Case(When(key=own, then=Value(0)), default=Value(1), output_field=IntegerField())
        rows = self.get_connection().filter(key__in=[own, self.list_key], lock__lt=timezone.now())
        waiting = list(rows.order_by(first, "id")[: Conf.BULK])
        taken = []
        for task in waiting:
            # Not 1: another cluster was faster.
            if self.get_connection().filter(id=task.id, lock=task.lock).update(lock=self.timeout(task)):
                taken.append((task.pk, task.payload))
        if not waiting:
            sleep(Conf.POLL)
            return None
        return taken
