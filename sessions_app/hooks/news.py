"""Read what happened in a project within a day, for a briefing, and which alerts joined a running session. Bounded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

from django.db.models import Q

from claudeops.lib.humanize import ago
from memories.capture import gate
from memories.capture.text import fold
from memories.capture.topics import topics
from memories.models import JournalEntry, Project
from sessions_app.alerts import receive as alerts
from sessions_app.cooldowns import limits
from sessions_app.hooks.briefing import Line, line
from sessions_app.hooks.events import HANDLERS, HookAnswer, HookCall
from sessions_app.models import Event, Session, Status
from sessions_app.models.event import Level

DAY = timedelta(days=1)
MOST_LIMITS, MOST_EVENTS, MOST_SESSIONS, MOST_JOURNAL = 5, 6, 4, 4
COLUMNS = ("id", "status", "status_reason", "summary", "queued_at", "agent__slug")
WENT_WRONG = (Status.FAILED, Status.TIMED_OUT, Status.LOST, Status.ESCALATED)
NOT_SHOWN = "(see it in the operations room)"


def limits_in_force(at: datetime) -> list[Line]:
    """Say which restarts and redeployments are refused now."""
    return [line(one.reason, label=one.service) for one in limits.refused(at=at)[:MOST_LIMITS]]


def events_of(project: Project, at: datetime) -> list[Line]:
    """Say what sessions of the project, or of none, reported within a day: the critical first, then warnings."""
    whose = (Q(session__project=project) | Q(session__project=None)) & ~Q(session__dry_run=True)
    lines: list[Line] = []
    for level in (Level.CRITICAL, Level.WARNING):
        rows = Event.objects.filter(whose, level=level, created_at__gt=at - DAY, created_at__lte=at)
        newest = rows.order_by("-created_at", "-id").values_list("service", "message", "created_at")
        for service, message, created_at in newest[: MOST_EVENTS - len(lines)]:
            text = f"{ago(created_at, at)}: {words_of(message)}"
            lines.append(line(text, label=f"{level.value}, {service}" if service else level.value))
    return lines


def journal_of(project: Project, at: datetime) -> list[Line]:
    """Say what was done in the project within a week, the latest first; nothing that the gate holds."""
    rows = JournalEntry.objects.filter(project=project.slug, held="", at__gt=at - 7 * DAY, at__lte=at)
    return [
        line(f"{ago(row.at, at)}: {words_of(row.detail)}", label=f"{row.action} {row.tool}")
        for row in rows.order_by("-at", "-pk")[:MOST_JOURNAL]
    ]


def sessions_of(project: Project, at: datetime) -> list[Line]:
    """Say which sessions of the project, or of none, ran within a day: what went wrong first, then the newest."""
    sessions: list[Session] = []
    for which in (Q(status__in=WENT_WRONG), ~Q(status__in=WENT_WRONG)):
        rows: list[Session] = []
        for whose in (Q(project=project), Q(project=None)):  # each is a range of the index
            day = Session.objects.filter(whose, which, queued_at__gt=at - DAY, queued_at__lte=at, dry_run=False)
            newest = day.select_related("agent").only(*COLUMNS).order_by("-queued_at", "-id")
            rows += newest[: MOST_SESSIONS - len(sessions)]
        sessions += sorted(rows, key=lambda one: (one.queued_at, one.pk), reverse=True)[: MOST_SESSIONS - len(sessions)]
        if len(sessions) == MOST_SESSIONS:
            break
    return [line(_said(one, at), label=one.get_status_display()) for one in sessions]


def of_alerts(call: HookCall) -> HookAnswer | None:
    """Tell a session of ours the alerts that joined it since it began."""
    if call.session is None or not call.session.alert_key:
        return None
    text, new = alerts.news_of(call.session)
    return HookAnswer(context=text, keep=partial(alerts.mark_told, new, call.session, call.at)) if text else None


HANDLERS["PreToolUse"].append(of_alerts)


def _said(session: Session, at: datetime) -> str:
    who = f"{session.agent.slug}, " if session.agent else ""
    head = f"session {session.pk} ({who}{ago(session.queued_at, at)})"
    return f"{head}: {words_of(session.ended_with)}" if session.ended_with else head


def words_of(text: str) -> str:
    """Return what an agent said, unless it would not be injected as a memory: the same gate, and the same wide net."""
    first = next(_paragraphs(text), "")
    allowed = gate.judge(first, fold(first)).verdict == "allow" and not topics(first)
    return first if allowed else NOT_SHOWN


def _paragraphs(text: str) -> Iterator[str]:
    return (part.strip() for part in text.split("\n\n") if part.strip())
