"""Read what happened on a day or in a week: learned, decided, done, found, failed, and what it cost. UTC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.urls import reverse

from claudeops.lib.humanize import quantity
from memories.models import Decision, JournalEntry, MemoryChange, ModelCall, Project
from memories.models.change import Listed
from sessions_app.models import Event, Session, Status
from sessions_app.models.event import Level

DAY, WEEK = "day", "week"
MOST = 20
"""Lines of a part; the rest is counted."""
FAILED = (Status.FAILED, Status.TIMED_OUT, Status.LOST)


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened. `text` is from outside; `url` is its permanent address."""

    text: str
    url: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What happened of one kind: `count` in all, the first of them as lines."""

    title: str
    count: int
    lines: tuple[Line, ...]
    nothing: str


@dataclass(frozen=True, slots=True)
class Summary:
    """`name` is 2026-11-27 or 2026-W48; the times are [since, until). `project` is a slug, "" for all."""

    kind: str
    name: str
    since: datetime
    until: datetime
    project: str
    parts: tuple[Part, ...]
    sessions: int
    cost_usd: Decimal
    models_usd: Decimal

    @property
    def is_empty(self) -> bool:
        return not self.sessions and not any(part.count for part in self.parts)

    @property
    def counts(self) -> str:
        """Return everything in one sentence of numbers, which holds no text from outside."""
        said = [f"{part.count:,} {part.title.lower()}" for part in self.parts if part.count]
        return ", ".join([*said, f"{quantity(self.sessions, 'session')} for ${self.cost_usd + self.models_usd:.2f}"])


def begin_of(kind: str, day: date) -> datetime:
    """Return when the day, or the week (from Monday) around it, begins."""
    first = day - timedelta(days=day.weekday()) if kind == WEEK else day
    return datetime.combine(first, time(), UTC)


def read(kind: str, day: date, project: Project | None = None) -> Summary:
    """Read the summary of a day or of the week around it, of one project or of all."""
    since = begin_of(kind, day)
    until = since + timedelta(days=7 if kind == WEEK else 1)
    year, week, _ = since.isocalendar()
    within = {"project": project} if project else {}
    sessions = Session.objects.filter(**within, ended_at__gte=since, ended_at__lt=until, dry_run=False)
    spent = sessions.aggregate(count=Count("pk"), cost=Sum("cost_usd"))
    calls = ModelCall.objects.filter(asked_at__gte=since, asked_at__lt=until)
    return Summary(
        kind,
        f"{year}-W{week:02d}" if kind == WEEK else since.date().isoformat(),
        since,
        until,
        project.slug if project else "",
        (
            _learned(since, until, project),
            _decided(since, until, project),
            _done(since, until, project),
            _found(since, until, project),
            _failed(sessions),
        ),
        sessions=spent["count"],
        cost_usd=spent["cost"] or Decimal(0),
        models_usd=Decimal(0) if project else calls.aggregate(cost=Sum("cost_usd"))["cost"] or Decimal(0),
    )


def _part(title: str, rows: QuerySet[Any], lines: Sequence[Line], nothing: str) -> Part:
    return Part(title, len(lines) if len(lines) < MOST else rows.count(), tuple(lines), nothing)


def _learned(since: datetime, until: datetime, project: Project | None) -> Part:
    rows = MemoryChange.objects.filter(listed_as=Listed.LEARNED, at__gte=since, at__lt=until, memory__isnull=False)
    rows = rows.filter(memory__project=project) if project else rows
    lines = [
        Line(one.memory.observation, reverse("memory", args=[one.memory.pk]), one.memory.service or "")
        for one in rows.select_related("memory").order_by("-at", "-id")[:MOST]
        if one.memory
    ]
    return _part("Learned", rows, lines, "Nothing new was learned.")


def _decided(since: datetime, until: datetime, project: Project | None) -> Part:
    rows = Decision.objects.filter(day__gte=since.date(), day__lt=until.date())
    rows = rows.filter(project=project) if project else rows
    found = rows.select_related("project").defer("text").order_by("project__slug", "number", "name")[:MOST]
    lines = [
        Line(f"{one.key}: {one.title}", reverse("decision-record", args=[one.project.slug, one.name]), one.status)
        for one in found
    ]
    return _part("Decided", rows, lines, "No decision has this date.")


def _done(since: datetime, until: datetime, project: Project | None) -> Part:
    rows = JournalEntry.objects.filter(at__gte=since, at__lt=until)
    rows = rows.filter(project=project.slug) if project else rows
    lines = [
        Line(f"{one.action} {one.tool}: {one.detail}", reverse("journal-entry", args=[one.uid]), one.agent or one.by)
        for one in rows.order_by("-at", "-id")[:MOST]
    ]
    return _part("Done", rows, lines, "The journal has no entry.")


def _found(since: datetime, until: datetime, project: Project | None) -> Part:
    rows = Event.objects.filter(~Q(session__dry_run=True), created_at__gte=since, created_at__lt=until)
    rows = rows.filter(level__in=(Level.CRITICAL, Level.WARNING))
    rows = rows.filter(session__project=project) if project else rows
    lines = [
        Line(one.message, _address_of(one), one.service or "") for one in rows.order_by("-created_at", "-id")[:MOST]
    ]
    return _part("Found", rows, lines, "No session reported a warning.")


def _address_of(event: Event) -> str:
    """Return the address of an event: in its session, or the list where it has none."""
    return f"{reverse('session', args=[event.session_id])}?tab=events" if event.session_id else reverse("events")


def _failed(sessions: QuerySet[Session]) -> Part:
    rows = sessions.filter(status__in=FAILED)
    lines = [
        Line(one.ended_with or one.get_status_display(), reverse("session", args=[one.pk]), _agent(one))
        for one in rows.select_related("agent").order_by("-ended_at", "-id")[:MOST]
    ]
    return _part("Failed", rows, lines, "No session failed.")


def _agent(session: Session) -> str:
    return session.agent.slug if session.agent else ""
