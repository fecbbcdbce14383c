"""`/library/journal`: what was done, with filters, a calendar and a field to write; and the page of one entry."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from functools import cached_property
from typing import Any

from django.contrib import messages
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from claudeops.lib import times
from claudeops.lib.answers import action, actor, in_words, moved, page
from claudeops.lib.charts.bars import Kind
from claudeops.lib.charts.calendar import Calendar, Day, calendar
from claudeops.lib.distinct import distinct_values
from claudeops.lib.domain_error import DomainError
from claudeops.lib.list_view.columns import BuiltIn, Column
from claudeops.lib.list_view.keyset import both
from claudeops.lib.list_view.view import ListView
from memories.library import journal
from memories.library.vocabulary import FIRST
from memories.models import JournalEntry, JournalFile
from memories.queries.journal import SEARCHED, JournalFilterSet, by_day, with_sessions

SEES, WRITES = "memories.view_journalentry", "memories.add_journalentry"
WEEKS = 12
KINDS = (Kind("agents", "ok", "by agents"), Kind("others", "skipped", "by people and claudeops"))
MOST_SUGGESTED = 40


class JournalList(ListView):
    name, heading, one, many = "journal", "Journal", "entry", "entries"
    template, row_template = "library/journal.html", "library/_journal_row.html"
    permission_required = SEES
    model, filterset = JournalEntry, JournalFilterSet
    searched = f"{SEARCHED:,}"
    fields = ("action", "tool", "project", "agent", "session", "by", "during")
    example = "action:restart tool:jellyfin during:7d, or words"
    built_in = (
        BuiltIn("All", ""),
        BuiltIn("Restarts", "action=restart", counted=False),
        BuiltIn("Deployments", "action=deploy", counted=False),
        BuiltIn("By claudeops", "by=claudeops", counted=False),
    )
    columns = (
        Column("when", "When", lambda row: row.at, sort="when", fixed=True),
        Column("action", "Action", lambda row: row.action, fixed=True),
        Column("tool", "Tool", lambda row: row.tool),
        Column("what", "What", lambda row: row.detail, fixed=True),
        Column("by", "By", lambda row: row.agent or row.by),
        Column("project", "Project", lambda row: row.project),
    )
    sorts, first = both("when", "when", F("at"), "at", times.parse), "-when"

    def all_rows(self) -> QuerySet[Any]:
        journal.catch_up()
        return with_sessions(super().all_rows())

    def suggested(self) -> tuple[str, ...]:
        words = {"action": self.known_actions, "tool": self.known_tools}
        return (
            *(f"{name}:{value}" for name, values in words.items() for value in values[:MOST_SUGGESTED]),
            *("during:24h", "during:7d", "during:30d"),
        )

    @cached_property
    def known_actions(self) -> list[str]:
        return distinct_values(JournalEntry, "action")

    @cached_property
    def known_tools(self) -> list[str]:
        return distinct_values(JournalEntry, "tool")

    def extra(self) -> dict[str, Any]:
        return {
            "calendar": self._calendar(),
            "weeks": WEEKS,
            "problems": JournalFile.objects.exclude(problem=""),
            "may_write": self.request.user.has_perm(WRITES),
            "words": sorted({*FIRST["action"], *self.known_actions}),
            "tools": self.known_tools,
        }

    def _calendar(self) -> Calendar:
        today = timezone.now().date()
        first = today - timedelta(days=today.weekday(), weeks=WEEKS - 1)
        counts = by_day(JournalEntry.objects.all(), datetime.combine(first, time(), UTC))
        days = []
        for number in range((today - first).days + 1):
            day = first + timedelta(days=number)
            agents, others = counts.get(day, (0, 0))
            address = f"{reverse(self.name)}?during={day}..{day + timedelta(days=1)}"
            days.append(Day(day, f"{day:%a %d %b}", address, {"agents": agents, "others": others}))
        return calendar(f"Entries by day, {WEEKS} weeks", days, KINDS)


@page(SEES)
def entry(request: HttpRequest, uid: str) -> HttpResponse:
    row = with_sessions(JournalEntry.objects.select_related("file")).filter(uid=uid).first()
    if row is None:
        raise Http404
    return render(request, "library/journal_entry.html", {"entry": row})


@action((SEES, WRITES))
def write(request: HttpRequest) -> HttpResponse:
    """Write an entry as the person who is signed in."""
    names = ("action", "tool", "detail", "reason", "project")
    what, tool, detail, reason, project = (request.POST.get(name, "") for name in names)
    try:
        written = journal.write(what, tool, detail, reason=reason, project=project, by=actor(request))
    except DomainError as error:
        return moved(request, reverse("journal"), in_words(error), level=messages.ERROR)
    near = "".join(f" {kind} {known} is known already." for kind, known in written.suggestions.items())
    return moved(request, reverse("journal"), f"Written.{near}")
