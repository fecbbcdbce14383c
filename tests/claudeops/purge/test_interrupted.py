"""A purge that is killed anywhere goes on, and is done as if it had not been."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from django.db import connection
from django.utils import timezone

from claudeops import tasks
from claudeops.features.doctor import WARNING, _purges
from claudeops.features.purge import run as purging
from claudeops.features.purge.choice import Choice, PurgeError
from claudeops.lib.locks import file_lock
from memories.models import Memory
from sessions_app.models import Purge, PurgeState, Session, Status
from sessions_app.runner.launch import folder_of
from tests.claudeops.purge.house import OTHER, TEXT, data_folder, furnish, places_of
from tests.support.commands import document, run
from tests.support.factories import MemoryFactory, SessionFactory
from tests.support.processes import killed
from tests.support.thorough import one_of

pytestmark = pytest.mark.django_db(transaction=True)

WORK = "from claudeops.features.purge.run import carry_out; carry_out({pk})"
POINTS = [
    ("call", "claudeops.features.purge.memory_files", "remove_lines", 1),
    ("return", "claudeops.features.purge.run", "note", 5),
    ("return", "claudeops.features.purge.rows", "remove", 1),
    ("call", "memories.lifecycle.merge", "erase_all", 1),
    ("return", "memories.lifecycle.merge", "erase_all", 1),
    ("call", "claudeops.features.purge.memory_files", "remove", 1),
    ("return", "claudeops.features.purge.memory_files", "remove", 1),
    ("return", "claudeops.features.purge.run", "note", 3),
    ("call", "claudeops.features.purge.columns", "_mark", 2),
    ("return", "claudeops.features.purge.columns", "_mark", 5),
    ("return", "claudeops.features.purge.columns", "count", 9),
    ("return", "claudeops.features.purge.columns", "scrub", 1),
    ("call", "claudeops.features.purge.needles", "removed_from_line", 4),
    ("call", "sessions_app.transcripts.files", "digest", 1),
    ("return", "claudeops.features.purge.files", "scrub", 1),
    ("call", "claudeops.features.purge.run", "check", 1),
    ("return", "claudeops.features.purge.run", "check", 1),
    ("return", "claudeops.features.purge.run", "emptied", 1),
    ("call", "claudeops.features.secret_scan.columns", "remove_leftovers", 1),
    ("return", "claudeops.features.purge.run", "free", 1),
    ("call", "memories.telemetry", "record", 1),
]


@pytest.mark.parametrize(("event", "module", "function", "nth"), one_of(POINTS))
def test_a_purge_that_is_killed_goes_on(event, module, function, nth):
    memory = furnish()
    purge = purging.begin(Choice(ids=(memory.pk,)), by="ann")
    killed(WORK.format(pk=purge.pk), event, module, function, nth=nth)
    assert [(one.level, one.subject) for one in _purges(timezone.now())] == [(WARNING, f"purge {purge.pk}")]
    code, answer = document("memory", "purge", "--resume")
    assert (code, [one["id"] for one in answer["result"]["purges"]]) == (0, [purge.pk])
    if connection.vendor == "sqlite":
        assert places_of() == []
    done = Purge.objects.get()
    assert (done.state, done.work, done.receipt["removed"]["memories"]) == (PurgeState.DONE, {}, 1)
    assert sorted(Memory.objects.values_list("observation", flat=True))[1] == OTHER
    assert not list(_purges(timezone.now()))


@contextmanager
def other_connection(pk):
    """Hold the lock of a purge on PostgreSQL, as another process does."""
    if connection.vendor != "postgresql":
        yield
        return
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [purging.LOCK_KEY + pk])
        yield
    other.close()


def test_two_at_once_carry_it_out_once():
    memory = furnish()
    purge = purging.begin(Choice(ids=(memory.pk,)), by="ann")
    with (
        file_lock(data_folder() / f"purge-{purge.pk}.lock"),
        other_connection(purge.pk),
        pytest.raises(PurgeError) as refused,
    ):
        purging.carry_out(purge.pk)
    assert refused.value.code == "busy" and Memory.objects.filter(pk=memory.pk).exists()


def test_a_plan_that_is_confirmed_meanwhile_is_neither_counted_nor_confirmed_again(monkeypatch):
    real_plan, real_about = purging.plan, purging._about

    def confirm_first(pk, problem):
        monkeypatch.undo()
        purging.confirm(pk, by="ann")
        if problem:
            raise PurgeError("usage", problem)

    for problem in ("", "No."):
        memory = MemoryFactory()
        planned = purging.ask(Choice(ids=(memory.pk,)), by="bob")
        monkeypatch.setattr(
            purging, "plan", lambda choice, pk=planned.pk, why=problem: (confirm_first(pk, why), real_plan(choice))[1]
        )
        purging.count(planned.pk)
        planned.refresh_from_db()
        assert ("plan" in planned.receipt, planned.problem, planned.by) == (False, "", "ann"), problem
    planned = purging.ask(Choice(ids=(memory.pk,)), by="bob")
    monkeypatch.setattr(purging, "_about", lambda chosen: (confirm_first(planned.pk, ""), real_about(chosen))[1])
    with pytest.raises(PurgeError, match="confirmed or dropped already"):
        purging.confirm(planned.pk, by="bob")
    assert Purge.objects.get(pk=planned.pk).by == "ann"


def test_a_session_that_runs_and_knows_it_keeps_the_purge_from_being_done():
    memory = furnish()
    Session.objects.update(status=Status.RUNNING)
    code, answer = document("memory", "purge", memory.pk, "--yes")
    assert (code, answer["error"]["code"]) == (1, "running") and not Purge.objects.exists()
    code, answer = document("memory", "purge", memory.pk, "--yes", "--force")
    assert (code, answer["error"]["code"]) == (1, "left")
    session = Session.objects.get()
    assert TEXT.encode() in (folder_of(session) / "prompt.md").read_bytes()
    assert "its session still runs" in Purge.objects.get().problem and Purge.objects.get().work
    Session.objects.update(status=Status.COMPLETED)
    tasks.purge()
    assert Purge.objects.get().state == PurgeState.DONE
    assert places_of() == [] or connection.vendor == "postgresql"


def test_what_is_written_again_before_the_end_is_found(monkeypatch):
    memory = furnish()
    purge = purging.begin(Choice(ids=(memory.pk,)), by="ann")
    real = purging._Run.copies
    monkeypatch.setattr(purging._Run, "copies", lambda run: (real(run), SessionFactory(summary=TEXT)))
    with pytest.raises(PurgeError, match=r"Texts are left, or were written again: sessions.summary"):
        purging.carry_out(purge.pk)
    monkeypatch.undo()
    assert "copies" in Purge.objects.get().receipt["steps"] and "check" not in Purge.objects.get().receipt["steps"]
    assert run("memory", "purge", "--resume")[0] == 0
