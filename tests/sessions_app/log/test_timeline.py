"""The timeline read from log entries: what belongs to a turn, what a call took, and what is capped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from claudeops.lib.charts.timeline import Call, Turn
from sessions_app.log import timeline as module
from sessions_app.log.entries import counts_of
from sessions_app.log.timeline import latest_calls, timeline_of
from sessions_app.models import LogEntry, LogKind, Session, Status
from tests.support.factories import SessionFactory

pytestmark = pytest.mark.django_db

START = datetime(2026, 11, 17, 5, 30, tzinfo=UTC)
NOW = START + timedelta(seconds=100)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


@pytest.fixture
def session(db):
    return SessionFactory(status=Status.FAILED, started_at=START, ended_at=NOW)


class Log:
    """Writes entries of a session, as an ingest does."""

    def __init__(self, session: Session) -> None:
        self.session, self.rows = session, []

    def add(self, kind: str, at: float, text: str, turn: int | None, **fields) -> int:
        row = LogEntry(
            session=self.session, seq=len(self.rows) + 1, at=after(at), kind=kind, text=text, offset=0, turn=turn,
            **{"is_error": False, **fields},
        )  # fmt: skip
        self.rows.append(row)
        return row.seq

    def save(self) -> None:
        LogEntry.objects.bulk_create(self.rows)


def rows_of(session: Session, **given) -> list[Turn | Call]:
    found = timeline_of(session, counts_of(session), **{"now": NOW, **given})
    assert found.chart is not None
    return [row.item for block in found.chart.blocks for row in block.rows]


def test_a_turn_has_its_words_its_time_its_tokens_and_its_calls(session):
    log = Log(session)
    log.add("system", 1, "Claude Code", None)
    log.add("text", 4, "\nLooks at the lock.\nMore.", 1, tokens=5000, cost_usd=0.02)
    call = log.add("tool_use", 5, "Bash: restic check", 1, tokens=10, cost_usd=0.01)
    log.add("tool_result", 49, "Error: Exit code 1\nlocked", 1, call=call, is_error=True)
    log.add("tool_use", 60, "Read: /etc/a", 2)
    log.save()
    first, failed, second, open_ = rows_of(session)
    assert (first.number, first.line, first.label, first.tokens) == (1, 2, "Looks at the lock.", 5010)
    assert (first.start, first.end, round(first.cost_usd, 6)) == (0, 49, 0.03)
    assert (failed.label, failed.tool, failed.start, failed.end) == ("restic check", "Bash", 5, 49)
    assert (failed.outcome, failed.word, failed.line) == ("failed", "exit 1", call)
    assert (second.label, second.start, second.end, second.tokens) == ("Read", 49, 60, None)
    assert (open_.outcome, open_.word, open_.end) == ("none", "no result", None)


def test_calls_beside_each_other_are_answered_each_by_its_own_result(session):
    log = Log(session)
    first, second = log.add("tool_use", 1, "Bash: a", 1), log.add("tool_use", 1, "Bash: b", 1)
    log.add("tool_result", 3, "of b", 1, call=second)
    log.add("tool_result", 9, "of a", 1, call=first)
    log.save()
    assert [(call.label, call.end) for call in rows_of(session)[1:]] == [("a", 9), ("b", 3)]


def test_calls_of_a_subagent_stand_below_the_call_that_started_it(session):
    log = Log(session)
    agent = log.add("tool_use", 1, 'Agent: {"description": "Look at the NAS", "prompt": "…"}', 1)
    other = log.add("tool_use", 1, "Bash: other", 1)
    inner = log.add("tool_use", 2, "Read: a", 1, call=agent)
    log.add("tool_use", 3, "Read: of an unknown call", 1, call=0)
    log.add("text", 3, "of the subagent", 1, call=agent)
    log.add("tool_result", 4, "x", 1, call=inner)
    log.add("tool_result", 5, "x", 1, call=other)
    log.save()
    turn, *calls = rows_of(session)
    assert turn.label == "Agent, Bash, Read"
    assert [(call.label, call.depth) for call in calls] == [
        ("Look at the NAS", 0),
        ("a", 1),
        ("other", 0),
        ("of an unknown call", 1),
    ]


def test_what_a_running_session_waits_for_is_drawn_until_now():
    session = SessionFactory(status=Status.RUNNING, started_at=START)
    log = Log(session)
    log.add("tool_use", 10, "Bash: sleep 90", 1)
    log.save()
    turn, call = rows_of(session)
    assert (turn.end, call.end, call.outcome, call.word) == (100, 100, "running", "running")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Error: Exit code 137", "exit 137"),
        ("Error: Permission to use Bash has been denied because …", "denied"),
        ("Error: no such file", "error"),
    ],
)
def test_an_error_has_a_word(session, text, word):
    log = Log(session)
    log.add("tool_result", 3, text, 1, call=log.add("tool_use", 1, "Bash: a", 1), is_error=True)
    log.save()
    assert rows_of(session)[1].word == word


def test_the_turn_with_the_result_line_says_how_a_session_failed(session):
    log = Log(session)
    log.add("text", 3, "Waits.", 1)
    log.add("result", 4, "failed: error_max_turns, 20 turns, $0.1420", 1, is_error=True)
    log.save()
    assert rows_of(session)[0].word == "limit of turns reached"


def test_the_errors_alone_are_failed_calls_and_result_lines(session):
    log = Log(session)
    log.add("tool_result", 3, "Error: Exit code 2", 1, call=log.add("tool_use", 1, "Bash: a", 1), is_error=True)
    log.add("tool_result", 5, "fine", 2, call=log.add("tool_use", 4, "Bash: b", 2))
    log.add("tool_result", 6, "Error: of an unknown call", 2, is_error=True)
    log.add("result", 7, "failed: error_during_execution, 2 turns, $0.1", 2, is_error=True)
    log.save()
    found = rows_of(session, only_errors=True)
    assert [(call.turn, call.label, call.end, call.word) for call in found] == [
        (1, "a", 3, "exit 2"),
        (2, "of an unknown call", None, "error"),
        (2, "An error stopped it", None, ""),
    ]


def test_of_entries_that_an_older_version_stored_no_timeline_is_made_up(session):
    LogEntry.objects.create(session=session, seq=1, at=START, kind="tool_use", text="Bash: a", offset=0)
    assert timeline_of(session, counts_of(session), now=NOW).chart is None
    assert timeline_of(SessionFactory(), counts_of(session), now=NOW).chart is None


def test_a_log_whose_lines_have_one_time_has_rows_without_bars():
    session = SessionFactory(status=Status.COMPLETED, started_at=START, ended_at=START)
    log = Log(session)
    log.add("tool_use", 0, "Bash: a", 1)
    log.save()
    found = timeline_of(session, counts_of(session), now=NOW)
    assert found.chart is not None
    assert found.chart.ticks == ()
    assert [row.bar for row in found.chart.blocks[0].rows] == [None, None]


def long_log(session: Session, turns: int, *, calls: int = 1) -> None:
    log = Log(session)
    for turn in range(1, turns + 1):
        at = turn * 0.1
        log.add("text", at, f"Turn {turn}.", turn, tokens=10, cost_usd=0.25)
        for _ in range(calls):
            use = log.add("tool_use", at, f"Bash: command {turn}", turn)
            bad = turn % 10 == 0
            log.add("tool_result", at + 0.05, "Error: x" if bad else "x", turn, call=use, is_error=bad)
    log.save()


def numbers(items: list[Turn | Call]) -> list[int]:
    turns = (item for item in items if isinstance(item, Turn))
    return [number for turn in turns for number in range(turn.number, max(turn.last, turn.number) + 1)]


@pytest.mark.parametrize("turns", [40, 266, 267, 268, 306, 307, 400, 1000])
def test_of_a_long_log_every_turn_is_shown_or_counted_once(session, turns):
    long_log(session, turns)
    found = timeline_of(session, counts_of(session), now=NOW)
    assert found.chart is not None
    assert numbers(rows_of(session)) == list(range(1, turns + 1))
    fold = next(block.fold for block in found.chart.blocks if block.fold)
    outside = [row.item for block in found.chart.blocks if not block.fold for row in block.rows if row.is_turn]
    total = fold.item
    assert total.tokens == 10 * (turns - len(outside))
    assert total.errors == turns // 10 - sum(turn.failed for turn in outside)
    assert total.more_calls == turns - len(outside)
    assert all(call.outcome != "none" for call in rows_of(session) if isinstance(call, Call))


def test_a_part_of_a_long_log_is_read_from_a_line_on(session):
    long_log(session, 1000)
    line = LogEntry.objects.filter(session=session, turn=500).order_by("seq").values_list("seq", flat=True)[0]
    assert numbers(rows_of(session, start=line)) == list(range(500, 1001))


def test_a_turn_of_thousands_of_calls_shows_some_and_counts_the_others(session):
    long_log(session, 1, calls=1500)
    turn, *calls, _more = rows_of(session)
    assert turn.more_calls + len(calls) == 1500
    assert turn.last == 0


def test_a_result_behind_what_is_read_is_looked_for(session, monkeypatch):
    monkeypatch.setattr(module, "HEAD", 10)
    monkeypatch.setattr(module, "TAIL", 4)
    log = Log(session)
    use = log.add("tool_use", 1, "Agent: long", 1)
    for turn in range(2, 60):
        log.add("text", turn, "x", turn)
    log.add("tool_result", 70, "done", 59, call=use)
    for turn in range(60, 70):
        log.add("text", turn + 11, "x", turn)
    log.save()
    assert rows_of(session)[1].end == 70


def test_as_many_queries_for_a_long_log_as_for_a_short_one(session):
    def queries(turns: int) -> int:
        LogEntry.objects.all().delete()
        long_log(session, turns)
        with CaptureQueriesContext(connection) as found:
            timeline_of(session, counts_of(session), now=NOW)
        return len(found)

    assert queries(10) == queries(20)
    assert queries(1000) == queries(2000) <= 12


def test_errors_are_read_through_their_index(session):
    long_log(session, 50)
    rows = LogEntry.objects.filter(session=session, is_error=True).order_by("seq")
    if connection.vendor == "sqlite":
        assert "session_log_entries_errors" in rows.explain()


# -- the last calls of a running session ---------------------------------------------------------------------------


@pytest.fixture
def running(db):
    return SessionFactory(status=Status.RUNNING, started_at=START)


def test_the_last_calls_of_a_running_session_are_the_newest_first_with_what_they_took(running):
    log = Log(running)
    good = log.add("tool_use", 1, "Bash: curl a", 1)
    log.add("tool_result", 3, "ok", 1, call=good)
    bad = log.add("tool_use", 4, "Bash: curl b", 2)
    log.add("tool_result", 9, "Error: Exit code 22", 2, call=bad, is_error=True)
    log.add("tool_use", 86, "Bash: sleep 90", 3)
    log.save()
    found = latest_calls(running, now=NOW)
    assert [(row.call.label, row.call.outcome, row.call.word, row.seconds) for row in found] == [
        ("sleep 90", "running", "running", None),
        ("curl b", "failed", "exit 22", 5),
        ("curl a", "ok", "", 2),
    ]
    assert found[0].at == after(86)


def test_the_last_calls_are_bounded_by_number_and_by_lines_and_take_two_queries(running, monkeypatch):
    log = Log(running)
    for number in range(20):
        log.add(
            "tool_result", number, "ok", number + 1, call=log.add("tool_use", number, f"Read: {number}", number + 1)
        )
    log.save()
    with CaptureQueriesContext(connection) as queries:
        found = latest_calls(running, now=NOW)
    assert [row.call.label for row in found] == [f"{number}" for number in range(19, 19 - module.LATEST, -1)]
    assert len(queries) == 2
    monkeypatch.setattr(module, "NEAR_END", 4)
    assert [row.call.label for row in latest_calls(running, now=NOW)] == ["19", "18"]


def test_a_session_that_is_not_running_or_has_no_calls_yet_has_no_last_calls(session, running):
    assert latest_calls(running, now=NOW) == []
    log = Log(session)
    log.add(LogKind.TOOL_USE, 1, "Bash: a", 1)
    log.save()
    assert latest_calls(session, now=NOW) == []
    assert latest_calls(SessionFactory(status=Status.QUEUED, started_at=None), now=NOW) == []
