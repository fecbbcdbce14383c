"""What the tests of the queue share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from django_q.models import OrmQ

from sessions_app.models import Session

AT = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


def wakeups(function: str = "run_session") -> list[tuple[str, int]]:
    """(queue, session id) of every wake-up of `function` that django-q2 holds, oldest first."""
    return [
        (row.key, row.task["args"][0])
        for row in OrmQ.objects.order_by("id")
        if row.task["func"] == f"sessions_app.tasks.{function}"
    ]


def woken() -> list[int]:
    return [session_id for _, session_id in wakeups()]


def snapshot(rows: Iterable[Session]) -> list[dict[str, object]]:
    """Every field of the rows as they are in the database, to see that they did not move."""
    ids = [row.pk for row in rows]
    return list(Session.objects.filter(pk__in=ids).order_by("pk").values())
