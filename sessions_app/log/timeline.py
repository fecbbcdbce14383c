"""Read a session's turns and calls from its log entries, for the timeline. What is read of a long log is capped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from django.db.models import Count, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Substr

from claudeops.lib.charts.timeline import Call, Timeline, Turn, calls_alone, timeline
from sessions_app.log.entries import Counts
from sessions_app.models import LogEntry, LogKind, Session

HEAD, TAIL = 800, 120
"""Log entries that are read from the start and from the end. What is between is summed up by the database."""
MOST_SUMMED = 20_000
"""Entries that are summed up or looked through at most. What is not known then, is left out."""
MOST_ERRORS = 100
LABEL = 160
"""Characters of a label, and of a result in which its exit code is looked for."""
DEEPEST = 3
LATEST = 8
"""Calls of a running session that are listed beside its log."""
NEAR_END = 1000
"""Lines at the end of its log among which they are looked for."""

EXIT = re.compile(r"Error: Exit code (\d+)")
DENIED = re.compile(r"Error: Permission to use \S+ has been denied")
DESCRIBED = re.compile(r'\{"description": "([^"\\]+)"')
"""An argument that is JSON and begins with a description, such as that of a subagent."""
ENDED = {
    "error_max_turns": "limit of turns reached",
    "error_max_budget_usd": "limit of cost reached",
    "error_max_structured_output_retries": "no valid structured answer",
    "error_during_execution": "an error stopped it",
}
"""Words for the subtypes of result lines that state an error."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A log entry with the first characters of its text."""

    seq: int
    at: datetime
    kind: str
    turn: int
    call: int | None
    is_error: bool | None
    tokens: int | None
    cost_usd: float | None
    words: str

    @property
    def first_line(self) -> str:
        return self.words.strip().split("\n", 1)[0]


COLUMNS = ("seq", "at", "kind", "turn", "call", "is_error", "tokens", "cost_usd")


@dataclass(frozen=True, slots=True)
class SessionTimeline:
    """`chart` is None when no turns are known: the log has none yet, was pruned, or was stored by an older version.

    `turns` counts those of the whole session. `left_out` are errors that are not shown.
    """

    chart: Timeline | None
    turns: int = 0
    left_out: int = 0


def timeline_of(
    session: Session, counts: Counts, *, only_errors: bool = False, start: int = 1, now: datetime
) -> SessionTimeline:
    """Return the timeline from the log entry `start` on, or of all errors. What still runs is drawn until `now`."""
    rows = LogEntry.objects.filter(session=session)
    last = rows.order_by("-seq").values_list("turn", "at").first()
    first = rows.order_by("seq").values_list("at").first()
    if last is None or first is None or last[0] is None:
        return SessionTimeline(None)
    begin = min(session.started_at or first[0], first[0])
    end = max(session.ended_at or (now if session.is_open else last[1]), last[1])
    reader = _Reader(session, begin, (end - begin).total_seconds(), last[0])
    if only_errors:
        chart = calls_alone(reader.errors(), reader.length)
        return SessionTimeline(chart, last[0], max(counts.errors - MOST_ERRORS, 0))
    return SessionTimeline(timeline(reader.turns(start), reader.length), last[0])


@dataclass(frozen=True, slots=True)
class LatestCall:
    """A call with the time at which it began (UTC) and what it took in seconds; None while it runs."""

    call: Call
    at: datetime
    seconds: float | None


def latest_calls(session: Session, *, now: datetime) -> list[LatestCall]:
    """Return the last `LATEST` calls of an open session among the last `NEAR_END` lines of its log, newest first."""
    if not session.is_open or session.started_at is None:
        return []
    begin = session.started_at
    reader = _Reader(session, begin, (now - begin).total_seconds(), 0)
    last = LogEntry.objects.filter(session=session).order_by("-seq").values("seq")[:1]
    uses = _read(reader.rows.filter(kind=LogKind.TOOL_USE, seq__gt=Subquery(last) - NEAR_END).order_by("-seq")[:LATEST])
    if not uses:
        return []
    results = reader.rows.filter(kind=LogKind.TOOL_RESULT, seq__gt=uses[-1].seq, call__in=[use.seq for use in uses])
    reader.take_answers(_read(results))
    calls = [reader.call(use, 0) for use in uses]
    return [LatestCall(call, begin + timedelta(seconds=call.start), _took(call)) for call in calls]


def _took(call: Call) -> float | None:
    return None if call.end is None or call.outcome == "running" else max(call.end - call.start, 0.0)


class _Reader:
    """Reads one session. Seconds are from `begin`; `length` is how long it took, or takes until now."""

    def __init__(self, session: Session, begin: datetime, length: float, last_turn: int) -> None:
        self.begin, self.length, self.last_turn = begin, length, last_turn
        self.is_open = session.is_open
        self.rows = LogEntry.objects.filter(session=session, turn__isnull=False)
        self.answers: dict[int, Entry] = {}
        self.unknown: set[int] = set()

    def turns(self, start: int) -> list[Turn]:
        beginning = _read(self.rows.filter(seq__gte=start).order_by("seq")[: HEAD + 1])
        tail: list[Entry] = []
        if len(beginning) > HEAD:
            tail = _read(self.rows.filter(seq__gt=beginning[-1].seq).order_by("-seq")[:TAIL])[::-1]
        if len(tail) < TAIL:  # that is all of it
            self.take_answers([*beginning, *tail])
            return self._built(_by_turn([*beginning, *tail]), 0.0)
        # The last turn at the head and the first one at the tail may be cut: they are summed up with what is between.
        groups = _by_turn(beginning)
        before, after = groups[:-1] or groups, _by_turn(tail)[1:]
        entries = [entry for group in (*before, *after) for entry in group]
        self.take_answers(entries)
        self._look_for_answers(entries, beginning[-1].seq)
        head = self._built(before, 0.0)
        upto = after[0][0].seq - 1 if after else None
        ended = max((entry.at for entry in tail if upto is None or entry.seq <= upto), default=beginning[-1].at)
        between = self._sum(before[-1][-1].seq + 1, upto, head[-1], self._seconds(ended))
        if between.last < between.number:  # all of it belongs to one turn
            more, errors = head[-1].more_calls + between.more_calls, head[-1].errors + between.errors
            head[-1] = replace(head[-1], end=max(head[-1].end, between.end), more_calls=more, errors=errors)
            return [*head, *self._built(after, head[-1].end)]
        if after:
            between = replace(between, last=after[0][0].turn - 1)
        return [*head, between, *self._built(after, between.end)]

    def errors(self) -> list[Call]:
        """Return the session's first errors, one row each: a failed call, or a result line that states an error."""
        failed = _read(self.rows.filter(is_error=True).order_by("seq")[:MOST_ERRORS])
        self.answers = {entry.call: entry for entry in failed if entry.call}
        uses = _read(self.rows.filter(seq__in=list(self.answers)).order_by("seq"))
        by_seq = {entry.seq: entry for entry in uses}
        return [self._error(entry, by_seq.get(entry.call or 0)) for entry in failed]

    def _error(self, entry: Entry, use: Entry | None) -> Call:
        if use is not None:
            return self.call(use, 0)
        at = self._seconds(entry.at)
        if entry.kind == LogKind.RESULT:
            return Call(entry.seq, _ended(entry).capitalize(), "", at, None, "failed", turn=entry.turn)
        label = entry.first_line.removeprefix("Error: ")
        return Call(entry.seq, label, "", at, None, "failed", _failure(entry), turn=entry.turn)

    def _seconds(self, at: datetime) -> float:
        return (at - self.begin).total_seconds()

    def take_answers(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if entry.kind == LogKind.TOOL_RESULT and entry.call:
                self.answers.setdefault(entry.call, entry)

    def _look_for_answers(self, known: Iterable[Entry], behind: int) -> None:
        """Look for results of shown calls among the entries that are summed up."""
        self.unknown = {entry.seq for entry in known if entry.kind == LogKind.TOOL_USE} - set(self.answers)
        if self.unknown:
            place = Q(seq__gt=behind, seq__lte=behind + MOST_SUMMED, call__in=self.unknown)
            self.take_answers(_read(self.rows.filter(place, kind=LogKind.TOOL_RESULT)))
        if self.last_seq() <= behind + MOST_SUMMED:
            self.unknown = set()

    def last_seq(self) -> int:
        return self.rows.order_by("-seq").values_list("seq", flat=True)[0]

    def _built(self, groups: Sequence[Sequence[Entry]], start: float) -> list[Turn]:
        turns = []
        for group in groups:
            end = max(start, max(self._seconds(entry.at) for entry in group))
            if self.is_open and group[0].turn == self.last_turn:
                end = max(end, self.length)
            turns.append(self._turn(group, start, end))
            start = end
        return turns

    def _turn(self, group: Sequence[Entry], start: float, end: float) -> Turn:
        word = next((_ended(entry) for entry in group if entry.kind == LogKind.RESULT and entry.is_error), "")
        tokens = [entry.tokens for entry in group if entry.tokens is not None]
        costs = [entry.cost_usd for entry in group if entry.cost_usd is not None]
        return Turn(
            number=group[0].turn,
            line=group[0].seq,
            label=_label(group),
            start=start,
            end=end,
            tokens=sum(tokens) if tokens else None,
            cost_usd=sum(costs) if costs else None,
            word=word,
            calls=tuple(self._calls([entry for entry in group if entry.kind == LogKind.TOOL_USE])),
        )

    def _calls(self, uses: Sequence[Entry]) -> Iterable[Call]:
        """Yield the calls of a turn, those of a subagent below the call that started it."""
        seqs = {use.seq for use in uses}
        below: dict[int | None, list[Entry]] = {}
        for use in uses:
            below.setdefault(use.call if use.call in seqs else None, []).append(use)
        waiting = [(use, int(use.call is not None)) for use in reversed(below.get(None, []))]
        while waiting:
            use, depth = waiting.pop()
            yield self.call(use, depth)
            waiting += [(inner, min(depth + 1, DEEPEST)) for inner in reversed(below.get(use.seq, []))]

    def call(self, use: Entry, depth: int) -> Call:
        tool, _, argument = use.first_line.partition(": ")
        described = DESCRIBED.match(argument)
        label = described[1] if described else argument or tool
        call = Call(use.seq, label, tool, self._seconds(use.at), None, depth=depth, turn=use.turn)
        answer = self.answers.get(use.seq)
        if answer is not None:
            outcome, word = ("failed", _failure(answer)) if answer.is_error else ("ok", "")
            return replace(call, end=self._seconds(answer.at), outcome=outcome, word=word)
        if self.is_open:
            return replace(call, end=self.length, outcome="running", word="running")
        return replace(call, outcome="none", word="" if use.seq in self.unknown else "no result")

    def _sum(self, first: int, upto: int | None, before: Turn, end: float) -> Turn:
        """Sum up the entries from `first` to `upto` (None: the last one); of too many only their turns are known."""
        last = self.last_seq() if upto is None else upto
        rows = self.rows.filter(seq__gte=first, seq__lte=last)
        sums = {}
        if last - first < MOST_SUMMED:
            sums = rows.aggregate(
                calls=Count("seq", filter=Q(kind=LogKind.TOOL_USE)), tokens=Sum("tokens"), cost=Sum("cost_usd")
            )
        return Turn(
            number=before.number + 1,
            last=self.last_turn,
            line=first,
            label="",
            start=before.end,
            end=max(before.end, end),
            tokens=sums.get("tokens"),
            cost_usd=sums.get("cost"),
            more_calls=sums.get("calls") or 0,
            errors=rows.filter(is_error=True).count(),
        )


def _read(rows: QuerySet[LogEntry]) -> list[Entry]:
    values = rows.annotate(words=Substr("text", 1, LABEL)).values_list(*COLUMNS, "words")
    return [Entry(*row) for row in values]


def _by_turn(entries: Iterable[Entry]) -> list[list[Entry]]:
    turns: dict[int, list[Entry]] = {}
    for entry in entries:
        turns.setdefault(entry.turn, []).append(entry)
    return [turns[number] for number in sorted(turns)]


def _label(group: Sequence[Entry]) -> str:
    """Return the first words of a turn; without any, the names of its tools."""
    first_text = next((entry for entry in group if entry.kind == LogKind.TEXT and entry.call is None), None)
    if first_text is not None:
        return first_text.first_line
    tools = {entry.words.partition(": ")[0]: None for entry in group if entry.kind == LogKind.TOOL_USE}
    return ", ".join(islice(tools, 3))


def _failure(answer: Entry) -> str:
    if match := EXIT.match(answer.words):
        return f"exit {match[1]}"
    return "denied" if DENIED.match(answer.words) else "error"


def _ended(entry: Entry) -> str:
    """Say how a result line ended, from its log entry: "failed: error_max_turns, 20 turns, $0.1420"."""
    subtype = entry.words.partition(",")[0].removeprefix("failed").removeprefix(": ")
    return ENDED.get(subtype, subtype.replace("_", " ") or "failed")
