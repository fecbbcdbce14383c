"""The registry of actions on many sessions. Each session is a transaction of its own: one refusal stops no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from django.db.models import Q, QuerySet

from sessions_app import queue
from sessions_app.errors import SessionsError
from sessions_app.models import Session
from sessions_app.models.session import OPEN_STATUSES


@dataclass(frozen=True, slots=True)
class BulkResult:
    """`done` are the sessions that were stopped, or the new ones; `refused` are sentences, one a session."""

    done: list[int]
    refused: list[str]
    message: str


@dataclass(frozen=True, slots=True)
class BulkAction:
    """One action: `applies` limits it to the sessions it is for, `verb(session, by)` returns the id of what it made.

    It is for at most `most` sessions at once. `said` follows the number in its message.
    """

    name: str
    label: str
    permission: str
    applies: Q
    most: int
    verb: Callable[[Session, str], int]
    said: str

    def among(self, rows: QuerySet[Session]) -> QuerySet[Session]:
        return rows.filter(self.applies)

    def run(self, rows: QuerySet[Session], *, by: str) -> BulkResult:
        """Run on the sessions of `rows` that it applies to, the oldest first."""
        ids: list[int] = []
        refused: list[str] = []
        for session in self.among(rows).select_related("agent", "project").order_by("pk")[: self.most]:
            try:
                ids.append(self.verb(session, by))
            except SessionsError as error:
                refused.append(f"Session {session.pk}: {error}")
        rest = f" {len(refused)} not: {refused[0]}" if refused else ""
        number = "1 session is" if len(ids) == 1 else f"{len(ids):,} sessions are"
        return BulkResult(ids, refused, f"{number} {self.said}.{rest}")


def _stop(session: Session, by: str) -> int:
    queue.request_stop(session.pk, by=by)
    return session.pk


def _again(session: Session, by: str) -> int:
    return queue.request_again(session, by=by).pk


BULK_ACTIONS: Mapping[str, BulkAction] = MappingProxyType(
    {
        action.name: action
        for action in (
            BulkAction(
                *("stop", "Stop", "sessions_app.stop_session", Q(status__in=OPEN_STATUSES), 500, _stop, "stopping")
            ),
            BulkAction(
                *("again", "Run again", "sessions_app.run_session", ~Q(status__in=OPEN_STATUSES), 50, _again),
                "queued again",
            ),
        )
    }
)
