"""The counts by hour agree with the rows, whoever writes those, on both databases."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections, transaction
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib import hour_counts
from memories import counts
from memories.lifecycle import merge, verbs
from memories.lifecycle.bulk_write import delete_all
from memories.lifecycle.merge import erase_all
from memories.lifecycle.sweep import sweep
from memories.lifecycle.write import Why
from memories.models import Change, Memory, MemoryChange, MemoryChangeCount
from sessions_app import queue
from sessions_app.counts import tables
from sessions_app.models import Agent, AgentCount, Event, EventCount, Session, SessionCount, Status, Trigger
from sessions_app.runner.importer import import_log
from sessions_app.runner.ingest import ingest
from sessions_app.runner.run import close
from tests.support.factories import AgentFactory, EventFactory, MemoryFactory, SessionFactory
from tests.support.streams import init, result, text, write

ALL = (*tables.ALL, *counts.ALL)
START = datetime(2026, 6, 1, 10, 30, tzinfo=UTC)
OBSERVED = "[MEMORY:timing:jellyfin] Takes {}s to start after restart"


def differences() -> list[hour_counts.Difference]:
    return [difference for what in ALL for difference in hour_counts.differences(what)]


def counted(model: type[hour_counts.HourCount]) -> dict[tuple[datetime, str], int]:
    rows = model.objects.exclude(number=0).values_list("hour", "name", "number")
    return {(hour, name): number for hour, name, number in rows}


class Steps:
    """One method for each way in which rows are written; `n` picks the row, the hour and the value."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def at(self, n: int) -> datetime:
        return START + timedelta(minutes=37 * n)

    def any_of(self, model, n: int):
        rows = list(model.objects.order_by("pk"))
        return rows[n % len(rows)] if rows else None

    def queue_and_stop(self, n: int) -> None:
        made = queue.request_session(agent=None, trigger=Trigger.MANUAL, by="operator")
        queue.request_stop(made.pk, by="operator")

    def run_and_close(self, n: int) -> None:
        row = SessionFactory(status=Status.RUNNING, started_at=self.at(n), cost_usd="0.123456", num_turns=n)
        row.log_file = f"sessions/counted-{row.uuid}.jsonl"
        row.save()
        log = Path(settings.CLAUDEOPS_DATA_DIR) / row.log_file
        log.parent.mkdir(exist_ok=True, parents=True)
        said = text(f"[EVENT:warning:jellyfin] Slow {n % 3}\n[EVENT:info] Fine\n{OBSERVED.format(n % 2)}", seconds=n)
        log.write_text(init() + said + result(), encoding="utf-8")
        ingest(row.pk, final=True)
        Session.objects.filter(pk=row.pk).update(ingest_offset=0)
        ingest(row.pk, final=True)
        close(row.pk, (Status.COMPLETED, Status.FAILED, Status.LOST)[n % 3], "", at=self.at(n))

    def import_twice(self, n: int) -> None:
        own = {"session_id": f"00000000-0000-4000-8000-00000000000{n}"}
        said = text("[EVENT:critical] Down", seconds=60 * n, **own)
        path = write(self.folder / f"{n}.jsonl", init(**own), said, result(**own))
        import_log(path, by="operator")
        import_log(path, by="operator")

    def give_to_an_agent(self, n: int) -> None:
        if row := self.any_of(Session, n):
            agent = self.any_of(Agent, n) if n % 3 else AgentFactory()
            Session.objects.filter(pk=row.pk).update(agent=agent)

    def delete_an_agent(self, n: int) -> None:
        if agent := self.any_of(Agent, n):
            agent.delete()

    def open_again(self, n: int) -> None:
        if row := self.any_of(Session, n):
            Session.objects.filter(pk=row.pk).update(status=Status.RUNNING, agent=None)

    def correct_by_hand(self, n: int) -> None:
        if row := self.any_of(Session, n):
            row.status, row.ended_at, row.cost_usd, row.num_turns = Status.STOPPED, self.at(n + 5), n, n
            row.save()

    def correct_events_by_sql(self, n: int) -> None:
        with connection.cursor() as cursor:
            ids = list(Event.objects.values_list("pk", flat=True)[: n + 1])
            cursor.executemany("UPDATE events SET level = %s WHERE id = %s", [("critical", pk) for pk in ids])

    def report_twice(self, n: int) -> None:
        session = SessionFactory()
        events = [EventFactory.build(session=session, fingerprint=str(k % 3), created_at=self.at(k)) for k in range(n)]
        Event.objects.bulk_create(events, ignore_conflicts=True)

    def delete_events(self, n: int) -> None:
        Event.objects.filter(pk__in=list(Event.objects.values_list("pk", flat=True)[:n])).delete()

    def delete_sessions(self, n: int) -> None:
        Session.objects.filter(pk__in=list(Session.objects.values_list("pk", flat=True)[:n])).delete()

    def change_memory(self, n: int) -> None:
        row = self.any_of(Memory, n) or MemoryFactory()
        verb = (verbs.deactivate, verbs.reactivate, verbs.reinforce, verbs.contradict)[n % 4]
        verb(row.pk, by="operator", at=self.at(n))

    def let_fade(self, n: int) -> None:
        MemoryFactory(confidence=0.35, category="timing", updated_at=self.at(n) - timedelta(days=60))
        MemoryFactory(expires_at=self.at(n))
        sweep(self.at(n) + timedelta(hours=1))

    def delete_memories(self, n: int) -> None:
        first = Memory.objects.filter(pk__in=list(Memory.objects.values_list("pk", flat=True)[:n]))
        (delete_all(first, Why("operator", self.at(n))) if n % 2 else erase_all(first))
        if n % 5 == 0 and (row := self.any_of(Memory, n)):
            merge.delete(row.pk, by="operator", at=self.at(n))

    def rebuild(self, n: int) -> None:
        call_command("counts", "rebuild", verbosity=0, stdout=open("/dev/null", "w"))  # noqa: SIM115


STEPS = sorted(name for name in vars(Steps) if not name.startswith("_") and name not in ("at", "any_of"))


@pytest.mark.django_db
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 7)), max_size=12))
def test_after_any_sequence_of_writes_the_counts_are_those_of_the_rows(tmp_path_factory, steps):
    with transaction.atomic():
        doing = Steps(tmp_path_factory.mktemp("logs"))
        for step, n in steps:
            getattr(doing, step)(n)
            assert differences() == [], (step, n)
        transaction.set_rollback(True)


@pytest.mark.django_db
@pytest.mark.parametrize("step", STEPS)
def test_each_way_of_writing_is_counted(tmp_path, step):
    doing = Steps(tmp_path)
    for n in range(6):
        doing.run_and_close(n)
    for n in range(6):
        getattr(doing, step)(n)
    assert differences() == []
    assert hour_counts.missing(ALL) == []


@pytest.mark.django_db
def test_a_session_counts_in_the_hour_in_which_it_ended_with_what_it_cost():
    for minute, cost in ((0, "0.5"), (59, "0.25")):
        SessionFactory(ended_at=START.replace(minute=minute), cost_usd=cost, num_turns=3)
    SessionFactory(ended_at=START, cost_usd=7, num_turns=9, trigger=Trigger.IMPORT)
    SessionFactory(ended_at=START + timedelta(hours=1), status=Status.FAILED, cost_usd=1)
    SessionFactory(status=Status.RUNNING)
    hour = START.replace(minute=0)
    assert counted(SessionCount) == {(hour, "completed"): 3, (hour + timedelta(hours=1), "failed"): 1}
    [paid] = SessionCount.objects.filter(name="completed").values_list("paid_micros", "paid_turns")
    assert paid == (750_000, 6)  # the import was paid elsewhere


@pytest.mark.django_db
def test_a_session_counts_for_its_agent_and_no_more_when_the_agent_is_deleted():
    watch, other = AgentFactory(), AgentFactory()
    SessionFactory(agent=watch, ended_at=START, cost_usd="0.5", num_turns=3)
    SessionFactory(agent=watch, ended_at=START, status=Status.FAILED)
    SessionFactory(agent=other, ended_at=START)
    SessionFactory(agent=None, ended_at=START)
    hour = START.replace(minute=0)
    names = [f"{watch.pk}:completed", f"{watch.pk}:failed", f"{other.pk}:completed"]
    assert counted(AgentCount) == {(hour, name): 1 for name in names}
    assert AgentCount.objects.get(name=names[0]).paid_micros == 500_000
    watch.delete()
    assert counted(AgentCount) == {(hour, names[2]): 1}


@pytest.mark.django_db
def test_events_count_by_level_and_once():
    session = SessionFactory()
    for level in ("info", "critical", "critical"):
        EventFactory(session=session, level=level, created_at=START)
    Event.objects.bulk_create(
        [EventFactory.build(session=session, fingerprint="same", created_at=START) for _ in range(3)],
        ignore_conflicts=True,
    )
    hour = START.replace(minute=0)
    assert counted(EventCount) == {(hour, "info"): 2, (hour, "critical"): 2}


@pytest.mark.django_db
def test_a_decay_that_makes_its_memory_inactive_is_counted_as_faded():
    MemoryFactory(confidence=0.35, category="timing", updated_at=START - timedelta(days=60))
    MemoryFactory(confidence=0.9, category="timing", updated_at=START - timedelta(days=40))
    MemoryFactory(expires_at=START - timedelta(days=1))
    sweep(START)
    hour = START.replace(minute=0)
    assert counted(MemoryChangeCount) == {(hour, "faded"): 1, (hour, "decayed"): 1, (hour, "expired"): 1}


@pytest.mark.django_db
def test_the_command_says_what_differs_and_mends_it(capsys):
    EventFactory(created_at=START)
    EventCount.objects.update(number=5)
    with pytest.raises(SystemExit) as ended:
        call_command("counts", "check", "--json")
    assert ended.value.code == 1
    said = json.loads(capsys.readouterr().out)
    assert not said["ok"]
    assert said["fix"] == "Run: manage.py counts rebuild"
    assert said["result"]["differences"] == [
        {"table": "event_counts", "hour": "2026-06-01 10:00:00", "name": "info", "surplus": {"number": 4}}
    ]
    with pytest.raises(SystemExit):
        call_command("counts", "check")
    assert "number +4" in capsys.readouterr().out
    call_command("counts", "rebuild", "--json")
    assert json.loads(capsys.readouterr().out)["result"]["counts"]["event_counts"] == 1
    call_command("counts", "check")
    assert "Every count agrees" in capsys.readouterr().out


@pytest.mark.django_db
def test_triggers_that_are_missing_come_back_with_the_next_migrate_and_what_was_not_counted_is_counted():
    for what in ALL:
        hour_counts.drop(what.counts, what.source, connection)
    EventFactory(created_at=START, session=SessionFactory(ended_at=START, agent=AgentFactory()))
    MemoryChange.objects.create(kind=Change.CREATED, at=START)
    assert sorted(hour_counts.missing(ALL)) == [
        *("agent_counts", "event_counts", "memory_change_counts", "session_counts", "telemetry_counts")
    ]
    assert len(differences()) == 4
    call_command("migrate", verbosity=0, interactive=False)
    assert hour_counts.missing(ALL) == []
    assert differences() == []
    assert hour_counts.keep(ALL) == []  # a further one does nothing


@pytest.mark.django_db(transaction=True)
def test_writers_in_opposite_orders_and_a_rebuild_beside_them_neither_deadlock_nor_lose_a_count():
    sessions = [SessionFactory() for _ in range(4)]
    begin = Barrier(len(sessions) + 1)

    def report(session) -> None:
        begin.wait()
        for turn in range(6):
            hours = range(8) if session.pk % 2 else reversed(range(8))
            Event.objects.bulk_create(
                EventFactory.build(session=session, fingerprint=f"{turn}-{n}", created_at=START + timedelta(hours=n))
                for n in hours
            )
        connections.close_all()

    def rebuild() -> None:
        begin.wait()
        for _ in range(3):
            hour_counts.rebuild(tables.EVENTS)
        connections.close_all()

    with ThreadPoolExecutor() as pool:
        done = [pool.submit(report, session) for session in sessions] + [pool.submit(rebuild)]
    for one in done:
        one.result()
    assert EventCount.objects.count() == 8
    assert set(EventCount.objects.values_list("number", flat=True)) == {24}
    assert differences() == []


@pytest.mark.django_db(transaction=True)
def test_an_emptied_database_has_no_counts():
    EventFactory(created_at=START, session=SessionFactory(ended_at=START))
    call_command("flush", interactive=False, verbosity=0)
    assert not EventCount.objects.exists()
    assert not SessionCount.objects.exists()
    EventFactory(created_at=START)
    assert list(counted(EventCount).values()) == [1]
