"""The overview's charts of one range: sessions, cost, events and changes of memories, from the counts by hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db.models import Min
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from claudeops.lib import hour_counts, humanize, local_time, periods
from claudeops.lib.capped import Count, count_of
from claudeops.lib.charts.bars import Bars, Kind, Label, Part, bars
from claudeops.lib.charts.cumulative import HOURS, Cumulative, Expected, cumulative, expectation
from claudeops.lib.charts.multiples import Multiple, multiple
from claudeops.lib.periods import HOUR, Range
from memories.counts import FADED
from memories.models import Change, Listed, Memory, MemoryChangeCount
from memories.queries.filters import MemoryFilterSet
from sessions_app.models import EventCount, Level, SessionCount, Status
from sessions_app.queries.outcomes import OUTCOMES, by_outcome
from sessions_app.queue.dispatch import day_of

SECONDS = 60
"""How long the numbers of a range are kept for all browsers; the overview's state changes each minute."""
EARLIER = 7
"""Days before today whose hours tell what the rest of today will cost."""
FADES = "<14d"
MICROS = 1_000_000

LEVELS = (
    Kind(Level.CRITICAL, "failed", "critical", "hatched"),
    Kind(Level.WARNING, "stopped", "warning"),
    Kind(Level.INFO, "skipped", "info"),
)
PAID = (Kind("paid", "ok", "spent"),)
CHANGES: dict[str, tuple[str, ...]] = {
    Listed.LEARNED.value: (Change.CREATED,),
    Listed.CONFIRMED.value: (Change.REINFORCED, Change.BACKED),
    Listed.CONTRADICTED.value: (Change.CONTRADICTED,),
    Listed.FADED.value: (FADED, Change.EXPIRED),
}
"""What is shown of the memories, as their list of changes names it, and the names of the counts that it adds up."""
CHANGED = tuple(Kind(name, "ok", name) for name in CHANGES)


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of one range. `edges` (UTC) are where its parts begin and end; the lists have one entry a part.

    `changes` are the changes of memories by the keys of CHANGES; `before` sums them over the range before. `spent` is
    today's (UTC) cost in dollars with what runs; `today` and the `earlier` days have 24 dollars each, by hour.
    """

    range: Range
    at: datetime
    edges: tuple[datetime, ...]
    sessions: list[Counter[str]]
    paid: list[Decimal]
    events: list[Counter[str]]
    changes: list[Counter[str]]
    before: Counter[str]
    day: datetime
    spent: Decimal
    today: list[float]
    earlier: list[list[float]]
    fading: Count
    """Active memories that fade or expire within FADES unless they are confirmed."""

    @property
    def elapsed(self) -> float:
        """The hours since the start of the UTC day."""
        return (self.at - self.day) / HOUR

    @property
    def expected(self) -> Expected:
        return expectation(float(self.spent), self.elapsed, self.earlier)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the chart of memories: its small bars, and the difference to the range before.

    `url` leads to the changes that it counts; `parts` are the bars that are links, with their place.
    """

    name: str
    bars: Multiple
    difference: int
    url: str
    parts: list[tuple[float, Part]]

    @property
    def change(self) -> str:
        """The difference for people: "+5", "−3" or "same"."""
        return f"{self.difference:+,}".replace("-", "\N{MINUS SIGN}") if self.difference else "same"


@dataclass(frozen=True, slots=True)
class Charts:
    """What `overview/_charts.html` shows. `today` is drawn for 24 hours, `paid` for longer ranges."""

    numbers: Numbers
    sessions: Bars
    completed: int | None
    """Whole percent of the sessions that completed; None without any."""
    events: Bars
    today: Cumulative
    today_said: str
    today_rows: list[tuple[datetime, float]]
    """Until when (aware) today had cost how much, for each hour with a cost."""
    day_end: datetime
    day_labels: list[Label]
    paid: Bars
    limit: float
    expected: float
    """What today is expected to cost, to the cent."""
    memories: list[Line]
    changes: Bars
    """The same changes in one chart, for the table behind them."""


def numbers(one: Range, state: str, spent: Decimal) -> Numbers:
    """Return the numbers of a range up to now, in days of the active zone; read once for each state of the overview.

    `state` is its snapshot's, `spent` what today has cost, in dollars.
    """
    zone = timezone.get_current_timezone()
    key = f"overview-charts-{state}-{one.name}-{zone}"
    figures: Numbers | None = cache.get(key)
    if figures is None:
        figures = read(one, spent, timezone.now())
        cache.set(key, figures, SECONDS)
    return figures


def read(one: Range, spent: Decimal, at: datetime) -> Numbers:
    """Read the numbers of a range as of the minute of `at` (aware)."""
    at = at.replace(second=0, microsecond=0)
    edges = periods.edges_of(one, at, timezone.get_current_timezone())
    day = day_of(at)
    wanted = [kind for kinds in CHANGES.values() for kind in kinds]
    [counted] = hour_counts.in_parts(MemoryChangeCount, (edges[0] - one.length, *edges), names=wanted)
    before, *changes = (
        Counter({name: sum(part[kind] for kind in kinds) for name, kinds in CHANGES.items()}) for part in counted
    )
    sessions, paid = hour_counts.in_parts(SessionCount, edges, "number", "paid_micros")
    [events] = hour_counts.in_parts(EventCount, edges)
    earlier, today = _paid_by_hour(day)
    return Numbers(
        range=one,
        at=at,
        edges=edges,
        sessions=sessions,
        paid=[_dollars(part) for part in paid],
        events=events,
        changes=changes,
        before=before,
        day=day,
        spent=spent,
        today=today,
        earlier=earlier,
        fading=count_of(MemoryFilterSet({"fades": FADES}, queryset=Memory.objects.all()).qs),
    )


def _dollars(micros: Counter[str]) -> Decimal:
    return Decimal(micros.total()) / MICROS


def _paid_by_hour(day: datetime) -> tuple[list[list[float]], list[float]]:
    """Return the dollars by hour of the EARLIER days before `day` since the first session, and of `day`."""
    first = SessionCount.objects.aggregate(first=Min("hour"))["first"] or day
    start = max(day - timedelta(days=EARLIER), day_of(first))
    hours = (day + timedelta(days=1) - start) // HOUR
    edges = [start + HOUR * n for n in range(hours + 1)]
    [micros] = hour_counts.in_parts(SessionCount, edges, "paid_micros")
    paid = [float(_dollars(hour)) for hour in micros]
    days = [paid[n : n + HOURS] for n in range(0, len(paid), HOURS)]
    return days[:-1], days[-1]


def html(found: Numbers, active: Count) -> str:
    """Draw the charts as `overview/_charts.html` does, with times in the active zone; `active` memories there are.

    What was drawn last for a range and zone is kept for all browsers, and used only for equal numbers.
    """
    key = f"overview-charts-drawn-{found.range.name}-{timezone.get_current_timezone()}"
    numbers, drawn = cache.get(key) or (None, "")
    if numbers != (found, active):
        drawn = render_to_string("overview/_charts.html", {"charts": draw(found), "active": active})
        cache.set(key, ((found, active), drawn), SECONDS)
    return drawn


def draw(found: Numbers) -> Charts:
    """Draw the charts of a range, with times in the active zone."""
    one = found.range
    by = f"by {one.part}, {one.words}"
    limit = float(settings.CLAUDEOPS_DAILY_BUDGET_USD)
    today = cumulative(found.today, float(found.spent), found.elapsed, limit, found.expected)
    paid = [{"paid": float(amount)} for amount in found.paid]
    spans = _spans(found)
    outcomes = [by_outcome(counts) for counts in found.sessions]
    sessions = bars(f"Sessions {by}", _parts(spans, "sessions", "ended", outcomes), OUTCOMES)
    completed = sum(counts[Status.COMPLETED] for counts in found.sessions)
    changed = _parts(spans, "memory-changes", "during", found.changes)
    lines = [_line(found, name, changed) for name in CHANGES]
    return Charts(
        numbers=found,
        sessions=sessions,
        completed=round(100 * completed / sessions.total) if sessions.total else None,
        events=bars(f"Events {by}", _parts(spans, "events", "during", found.events), LEVELS),
        today=today,
        today_said=_said_of_today(today, limit),
        today_rows=[(found.day + HOUR * hour, amount) for hour, amount in today.rows],
        day_end=found.day + HOUR * HOURS,
        day_labels=[
            Label(100 * hour / HOURS, f"{timezone.localtime(found.day + HOUR * hour):%H:%M}", anchor)
            for hour, anchor in ((0, "start"), (HOURS // 2, "middle"), (HOURS, "end"))
        ],
        paid=bars(
            f"Cost {by}",
            _parts(spans, "sessions", "ended", paid),
            PAID,
            labels=3,
            limit=limit if one.hours == HOURS else 0,
            written=humanize.dollars,
        ),
        limit=limit,
        expected=round(found.expected.amount, 2),
        memories=lines,
        changes=bars(f"Changes of memories {by}", changed, CHANGED),
    )


def _line(figures: Numbers, name: str, changed: Sequence[Part]) -> Line:
    small = multiple([part[name] for part in figures.changes])
    page = f"{reverse('memory-changes')}?kind={name}&during="
    return Line(
        name,
        small,
        small.total - figures.before[name],
        page + figures.range.name,
        [
            (x, replace(part, url=f"{part.url}&kind={name}", words=f"{part.words}: {part.numbers[name]} {name}"))
            for x, part in zip(small.places, changed, strict=True)
            if part.numbers[name]
        ],
    )


def _said_of_today(today: Cumulative, limit: float) -> str:
    of = f", limit {humanize.dollars(limit)}" if limit else ", no limit"
    expected = humanize.dollars(round(today.expected.amount, 2))
    return f"Cost since midnight UTC: {humanize.dollars(today.so_far)}, {expected} expected by midnight{of}."


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the range, for all of its charts: for the axis, in a sentence, in an address."""

    label: str
    words: str
    period: str


def _spans(figures: Numbers) -> list[Span]:
    return [
        Span(
            local_time.label_of_part(figures.range, since),
            local_time.words_of_part(figures.range, since, until),
            periods.write(since, until),
        )
        for since, until in pairwise(figures.edges)
    ]


def _parts(spans: Sequence[Span], page: str, parameter: str, counts: Sequence[Mapping[str, float]]) -> list[Part]:
    address = f"{reverse(page)}?{parameter}="
    return [
        Part(span.label, span.words, address + span.period, numbers)
        for span, numbers in zip(spans, counts, strict=True)
    ]


def as_json(found: Numbers) -> dict[str, Any]:
    """Return the numbers for a program: times in UTC (ISO 8601), money in US dollars as text."""
    edges = [at.isoformat() for at in found.edges]
    parts = zip(edges, edges[1:], found.sessions, found.paid, found.events, found.changes, strict=False)
    expected = found.expected
    return {
        "range": found.range.name,
        "since": edges[0],
        "until": found.at.isoformat(),
        "parts": [
            {
                "since": since,
                "until": until,
                "sessions": _present(sessions),
                "paid_usd": f"{paid:.6f}",
                "events": _present(events),
                "memories": _present(changes),
            }
            for since, until, sessions, paid, events, changes in parts
        ],
        "memories_before": dict(found.before),
        "today": {
            "since": found.day.isoformat(),
            "spent_usd": f"{found.spent:.6f}",
            "expected_usd": f"{expected.amount:.6f}",
            "expected_by": expected.basis,
            "limit_usd": settings.CLAUDEOPS_DAILY_BUDGET_USD or None,
        },
    }


def _present(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: number for name, number in sorted(counts.items()) if number}
