"""Logs from elsewhere become sessions, once."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from memories.models import Memory, MemoryChange, Source
from sessions_app.errors import InvalidStream
from sessions_app.models import Event, LogEntry, Session, Status, Trigger
from sessions_app.runner.importer import Imported, ImportedFile, import_log
from sessions_app.runner.ingest import ingest
from sessions_app.runner.raw_log import log_path
from tests.support.factories import ProjectFactory, SessionFactory
from tests.support.streams import SESSION, init, result, text, write

STREAM = Path(__file__).parents[2] / "data" / "streams" / "stream.jsonl"
MEMORY = "[MEMORY:timing:jellyfin] Takes 60s to start after restart -- wait before checking health"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_folder(settings, tmp_path):
    """Raw logs of other tests come and go in the data folder that they share."""
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "data"


def chunked(path: Path, source: Path, size: int = 97) -> Path:
    raw = source.read_text()
    chunks = [json.dumps({"type": "stdout", "data": raw[at : at + size]}) for at in range(0, len(raw), size)]
    path.write_text("\n".join(chunks) + "\n")
    return path


def stamped(path: Path, source: Path) -> Path:
    lines = source.read_text().splitlines()
    path.write_text("".join(f"2026-11-21T21:37:45.{n:09d}Z\t{line}\n" for n, line in enumerate(lines)))
    return path


def only(file: ImportedFile) -> Imported:
    """Return what became of a file with one session."""
    [one] = file.sessions
    return one


def everything():
    models = (Session, Event, Memory, MemoryChange, LogEntry)
    return {model.__name__: list(model.objects.order_by("pk").values()) for model in models}


def files():
    return sorted(str(path) for path in (Path(settings.CLAUDEOPS_DATA_DIR) / "sessions").rglob("*"))


def test_a_log_becomes_an_ended_session_with_all_that_it_said():
    imported = only(import_log(STREAM, by="anna", tier=2))
    session = Session.objects.get()
    assert (imported.session_id, imported.outcome) == (session.pk, "imported")
    assert (session.trigger, session.status, session.tier) == (Trigger.IMPORT, Status.COMPLETED, 2)
    assert session.cli_session_id == "67cde26f-17e1-4348-b9d3-bfd936af657d"
    assert session.ended_at.isoformat() == "2026-11-21T21:37:46.103000+00:00"
    assert session.requested_by == "anna"
    memory = Memory.objects.get()
    assert (memory.source, memory.tier, memory.session_id) == (Source.IMPORT, 2, session.pk)
    assert memory.created_at.isoformat() == "2026-11-21T21:37:45.797000+00:00"


@pytest.mark.parametrize("shape", [chunked, stamped])
def test_every_shape_gives_the_same_as_the_bare_stream(tmp_path, shape):
    import_log(shape(tmp_path / "log", STREAM), by="anna")
    assert Memory.objects.get().observation == "Takes 60s to start after restart -- wait"
    assert sorted(Event.objects.values_list("message", flat=True)) == ["Health check completed", "Restarted"]
    assert Session.objects.get().status == Status.COMPLETED


def test_the_same_log_twice_changes_nothing(tmp_path):
    import_log(STREAM, by="anna")
    before, before_files = everything(), files()
    assert only(import_log(STREAM, by="bert")).outcome == "unchanged"
    assert only(import_log(chunked(tmp_path / "chunked", STREAM), by="bert")).outcome == "unchanged"
    assert (everything(), files()) == (before, before_files)


def test_a_longer_log_of_the_same_session_goes_on_where_the_shorter_one_ended(tmp_path):
    lines = [init(), text(MEMORY), text("[EVENT:info] later"), result()]
    short = write(tmp_path / "short", *lines[:2], lines[2][:40])
    imported = import_log(short, by="anna")
    assert imported.cut
    assert Session.objects.get().status == Status.LOST
    assert only(import_log(write(tmp_path / "long", *lines), by="anna")).outcome == "continued"
    session = Session.objects.get()
    assert session.status == Status.COMPLETED
    assert Event.objects.get().message == "later"
    assert Memory.objects.get().confidence == 0.7


def test_events_of_an_old_log_are_known_and_importing_it_again_opens_none(tmp_path):
    said = "[EVENT:critical:nas] The disk fails\n[EVENT:info] All quiet"
    old, new = timezone.now() - timedelta(days=2), timezone.now() - timedelta(hours=1)
    import_log(write(tmp_path / "old", init(), text(said), result()), by="anna", at=old)
    other = {"session_id": "another"}
    import_log(write(tmp_path / "new", init(**other), text(said, **other), result(**other)), by="anna", at=new)
    known = [(row.level, row.acknowledged_by, row.is_open) for row in Event.objects.order_by("session_id", "level")]
    unread = [("critical", "", True), ("info", "", False)]
    assert known == [("critical", "import", False), ("info", "", False), *unread]
    before = everything()
    import_log(tmp_path / "old", by="anna", at=old)
    assert everything() == before


def test_an_old_event_of_a_session_that_ran_here_stays_open(tmp_path):
    """Its worker was away for days: nobody has seen what it reported."""
    session = SessionFactory(log_file="sessions/late.jsonl", started_at=timezone.now() - timedelta(days=3))
    late = text("[EVENT:critical] The disk fails", timestamp=(timezone.now() - timedelta(days=2)).isoformat())
    log_path(session).parent.mkdir(parents=True, exist_ok=True)
    write(log_path(session), late)
    ingest(session.pk, final=True)
    event = Event.objects.get()
    assert event.created_at < timezone.now() - timedelta(days=1)
    assert event.is_open


def test_another_log_of_the_same_session_is_refused_and_changes_nothing(tmp_path):
    import_log(write(tmp_path / "a", init(), text("[EVENT:info] a"), result()), by="anna")
    before, before_files = everything(), files()
    with pytest.raises(InvalidStream, match="but differs from the log"):
        import_log(write(tmp_path / "b", init(), text("[EVENT:info] b"), result()), by="anna")
    assert (everything(), files()) == (before, before_files)


def test_the_log_of_a_session_that_ran_here_changes_nothing(tmp_path):
    own = SessionFactory(cli_session_id=SESSION, trigger=Trigger.SCHEDULED)
    imported = only(import_log(write(tmp_path / "log", init(), text(MEMORY), result()), by="anna"))
    assert (imported.session_id, imported.outcome) == (own.pk, "own")
    assert Memory.objects.count() == 0


def test_a_log_without_a_session_id_is_known_by_its_content(tmp_path):
    line = json.dumps({"type": "assistant", "message": {"model": "m", "content": [{"type": "text", "text": MEMORY}]}})
    (tmp_path / "log").write_text(line + "\n")
    assert only(import_log(tmp_path / "log", by="anna")).outcome == "imported"
    assert only(import_log(tmp_path / "log", by="anna")).outcome == "unchanged"


@pytest.mark.parametrize("content", ["", "hello\nworld\n", '{"some": "json"}\n', "\x00\xff" * 50])
def test_what_is_no_log_is_refused_by_name_and_leaves_nothing(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_text(content)
    before = files()
    with pytest.raises(InvalidStream, match=r"notes\.txt contains no line of stream-json"):
        import_log(path, by="anna")
    assert Session.objects.count() == 0
    assert files() == before


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(InvalidStream, match="No such file"):
        import_log(tmp_path / "none", by="anna")
    with pytest.raises(InvalidStream, match="Is a directory"):
        import_log(tmp_path, by="anna")


def test_an_import_starts_no_escalation(tmp_path):
    answer = {"summary": "s", "escalation": {"needed": True, "reason": "down"}}
    import_log(write(tmp_path / "log", init(), result(structured_output=answer)), by="anna")
    assert Session.objects.count() == 1


def test_what_is_learned_belongs_to_the_project(tmp_path):
    project = ProjectFactory()
    import_log(write(tmp_path / "log", init(), text(MEMORY), result()), by="anna", project=project)
    assert Memory.objects.get().project == project


def test_an_import_that_was_cut_short_is_finished_by_the_next_one():
    import_log(STREAM, by="anna")
    Session.objects.update(status=Status.RUNNING, ingest_offset=0, ingest_state={}, stats={})
    Event.objects.all().delete()
    LogEntry.objects.all().delete()
    imported = only(import_log(STREAM, by="anna"))
    assert (imported.outcome, imported.lines) == ("continued", 6)
    assert Event.objects.count() == 2
    assert Session.objects.get().status == Status.COMPLETED


@pytest.mark.django_db(transaction=True)
def test_the_same_log_at_once_is_one_session():
    outcomes, errors = [], []

    def work():
        try:
            outcomes.append(only(import_log(STREAM, by="anna")).outcome)
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(outcomes)[0] == "imported"
    assert Session.objects.count() == 1
    assert (Event.objects.count(), Memory.objects.count()) == (2, 1)
