"""What a file may hold besides one session's stream: several sessions, no time stamps, a transcript, foreign lines."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.models import Memory, MemoryChange
from sessions_app import reaper
from sessions_app.errors import CannotStore, InvalidStream
from sessions_app.models import Event, LogEntry, Session, Status, Trigger
from sessions_app.runner import import_target, importer
from sessions_app.runner.importer import ImportedFile, import_log
from sessions_app.runner.raw_log import log_path
from tests.sessions_app.runner.test_importer import chunked, everything, files, stamped
from tests.sessions_app.runner.test_odd_input import mutated
from tests.support.factories import SessionFactory
from tests.support.outages import fill_database
from tests.support.streams import START, init, line, result, stamp, text, write

NOTE = "[MEMORY:timing:db] Takes 20 seconds to start after a restart"
A, B, C = "aaaa1111-0000", "bbbb2222-0000", "cccc3333-0000"

pytestmark = pytest.mark.django_db


def of(session: str, *lines: str) -> list[str]:
    return [line(**{**json.loads(raw), "session_id": session}) for raw in lines]


def outcomes(file: ImportedFile) -> list[str]:
    return [one.outcome for one in file.sessions]


def by_id(session: str) -> Session:
    return Session.objects.get(cli_session_id=session)


# -- several sessions in one file -----------------------------------------------------------------------------------


@pytest.fixture
def logs(tmp_path) -> dict[str, list[str]]:
    """Three sessions as `tee -a` writes them behind each other; the last one fails."""
    return {
        A: of(A, init(), text(NOTE, seconds=1), result(total_cost_usd=4.0)),
        B: of(B, init(), text(NOTE, seconds=5_000), text("[EVENT:info:db] up"), result(total_cost_usd=0.5)),
        C: of(C, init(), result("API Error", is_error=True, total_cost_usd=0.25)),
    }


def together(path: Path, logs: dict[str, list[str]]) -> Path:
    noise = ["npm warn deprecated\n", '{"type":"ui_invalidate"}\n']
    return write(path, *(row for lines in logs.values() for row in (*lines, *noise)))


def test_each_session_of_a_file_is_one_session(tmp_path, logs):
    file = import_log(together(tmp_path / "all.jsonl", logs), by="anna")
    assert outcomes(file) == ["imported"] * 3
    assert [float(by_id(one).cost_usd) for one in (A, B, C)] == [4.0, 0.5, 0.25]
    assert [by_id(one).status for one in (A, B, C)] == [Status.COMPLETED, Status.COMPLETED, Status.FAILED]
    assert by_id(A).started_at == START + timedelta(seconds=1)
    assert by_id(B).started_at == START + timedelta(seconds=5_000)
    assert Event.objects.get().session == by_id(B)
    assert Memory.objects.get().confidence == pytest.approx(0.8)  # said by two sessions
    assert [by_id(one).stats.get("garbage") for one in (A, B, C)] == [1, 1, 1]


def test_each_is_found_again_by_its_own_log(tmp_path, logs):
    import_log(together(tmp_path / "all.jsonl", logs), by="anna")
    before = everything()
    for session, lines in logs.items():
        assert outcomes(import_log(write(tmp_path / session, *lines), by="anna")) == ["unchanged"]
    assert outcomes(import_log(together(tmp_path / "all.jsonl", logs), by="anna")) == ["unchanged"] * 3
    assert everything() == before
    longer = [*logs[B], *of(B, text("[EVENT:info:db] later"), result(total_cost_usd=0.75))]
    file = import_log(write(tmp_path / "b", *longer), by="anna")
    assert (outcomes(file), file.sessions[0].lines) == (["continued"], 2)
    assert float(by_id(B).cost_usd) == 0.75


def test_own_logs_first_and_the_file_of_all_then(tmp_path, logs):
    for session in (A, C):
        import_log(write(tmp_path / session, *logs[session]), by="anna")
    file = import_log(together(tmp_path / "all.jsonl", logs), by="anna")
    assert outcomes(file) == ["continued", "imported", "continued"]  # the lines between them are new
    assert [float(by_id(one).cost_usd) for one in (A, B, C)] == [4.0, 0.5, 0.25]
    assert outcomes(import_log(tmp_path / A, by="anna")) == ["unchanged"]


def test_sessions_that_take_turns_in_a_file_are_put_together(tmp_path, logs):
    a, b = logs[A], logs[B]
    import_log(write(tmp_path / "log", a[0], b[0], a[1], b[1], b[2], a[2], b[3]), by="anna")
    assert [by_id(one).status for one in (A, B)] == [Status.COMPLETED] * 2
    assert log_path(by_id(A)).read_text() == "".join(a)
    assert log_path(by_id(B)).read_text() == "".join(b)


def test_a_session_that_ran_here_is_left_alone_and_the_others_are_stored(tmp_path, logs):
    own = SessionFactory(cli_session_id=A, trigger=Trigger.SCHEDULED)
    file = import_log(together(tmp_path / "all.jsonl", logs), by="anna")
    assert outcomes(file) == ["own", "imported", "imported"]
    assert file.sessions[0].session_id == own.pk


def test_one_session_that_differs_is_refused_and_the_others_are_stored(tmp_path, logs):
    import_log(write(tmp_path / "a", *of(A, init(), text("[EVENT:info] other"), result())), by="anna")
    file = import_log(together(tmp_path / "all.jsonl", logs), by="anna")
    assert outcomes(file) == ["imported", "imported"]
    assert "differs from the log that was imported before" in str(file.refused[0])


def test_lines_before_the_first_session_id_belong_to_the_first_session(tmp_path, logs):
    import_log(write(tmp_path / "log", '{"type":"ui_invalidate"}\n', "started\n", *logs[A]), by="anna")
    assert Session.objects.get().stats["lines"] == 5


# -- without time stamps ----------------------------------------------------------------------------------------------

OLD = datetime(2025, 3, 1, 8, 0, tzinfo=UTC)


def undated(path: Path) -> Path:
    write(path, init(), text(f"{NOTE}\n[EVENT:info:db] up"), result())
    os.utime(path, (OLD.timestamp(), OLD.timestamp()))
    return path


def all_dates() -> set[datetime]:
    session = Session.objects.get()
    rows = [*LogEntry.objects.values_list("at", flat=True), *Event.objects.values_list("created_at", flat=True)]
    memory = Memory.objects.get()
    return {session.queued_at, session.started_at, session.ended_at, memory.created_at, memory.updated_at, *rows}


def test_a_log_without_time_stamps_is_dated_by_its_files_modification_time(tmp_path):
    file = import_log(undated(tmp_path / "log"), by="anna")
    assert all_dates() == {OLD}
    assert file.dated_by == "the file's modification time"


def test_at_dates_a_log_without_time_stamps(tmp_path):
    file = import_log(undated(tmp_path / "log"), by="anna", at=OLD - timedelta(days=9))
    assert all_dates() == {OLD - timedelta(days=9)}
    assert file.dated_by == "--at"


def test_time_stamps_of_the_log_come_first(tmp_path):
    path = write(tmp_path / "log", init(), text(f"{NOTE}\n[EVENT:info:db] up", seconds=60), result())
    file = import_log(path, by="anna", at=OLD)
    assert all_dates() == {START + timedelta(seconds=60)}
    assert file.dated_by == "its time stamps"


def test_a_time_that_no_log_has_dates_nothing(tmp_path):
    for number, when in enumerate(("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z")):
        lines = of(f"{number}", init(), text("[EVENT:info] x", timestamp=when), result())
        path = write(tmp_path / "log", *lines)
        os.utime(path, (OLD.timestamp(), OLD.timestamp()))
        import_log(path, by="anna")
        session = by_id(str(number))
        for at in (session.started_at, session.ended_at, session.events.get().created_at):
            assert OLD <= at <= datetime.now(UTC)


# -- transcripts ------------------------------------------------------------------------------------------------------

SESSION = "9f0c8a52-1111-4222-8333-444455556666"


def entry(type_: str, *, seconds: float = 0, **fields) -> str:
    """One line of a transcript, as the CLI writes it below ~/.claude/projects."""
    own = {"parentUuid": None, "isSidechain": False, "userType": "external", "cwd": "/srv", "sessionId": SESSION}
    return json.dumps({**own, "type": type_, "uuid": str(uuid4()), "timestamp": stamp(seconds), **fields}) + "\n"


def answer(words: str, *, stop: str | None = "end_turn", id_: str = "msg_1", output: int = 1000, **fields) -> str:
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 100_000, "cache_read_input_tokens": 0}
    usage |= {"output_tokens": output, "cache_creation": {"ephemeral_1h_input_tokens": 100_000}}
    message = {"id": id_, "role": "assistant", "model": "claude-sonnet-5-5", "stop_reason": stop, "usage": usage}
    message["content"] = [{"type": "text", "text": words}]
    return entry("assistant", message=message, **fields)


def asked(words: str = "Check the database.", **fields) -> str:
    return entry("user", message={"role": "user", "content": words}, **fields)


def turn(number: int, words: str = NOTE) -> list[str]:
    return [asked(seconds=10 * number), answer(words, id_=f"msg_{number}", seconds=10 * number + 5)]


def summary(words: str) -> str:
    return json.dumps({"type": "summary", "summary": words, "leafUuid": str(uuid4())}) + "\n"


def test_a_transcript_is_read_as_what_it_is(tmp_path):
    lines = [
        summary("Databases"),
        json.dumps({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}}) + "\n",
        *turn(1),
        answer("[MEMORY:timing:evil] Of a subagent that was asked", isSidechain=True, id_="msg_9", seconds=16),
        *turn(2, "[EVENT:info:db] All well"),
    ]
    file = import_log(write(tmp_path / "transcript.jsonl", *lines), by="anna")
    session = Session.objects.get()
    assert (file.formats, file.understood, file.lines) == (["transcript"], 7, 7)
    assert (session.status, session.status_reason, session.cli_session_id) == (Status.COMPLETED, "", SESSION)
    assert Memory.objects.get().service == "db"
    assert session.stats["skipped_subagent"] == 1
    assert (session.num_turns, session.model) == (2, "claude-sonnet-5-5")
    # Three messages of 10 tokens at $2, 100,000 written for an hour at $4, 1,000 of output at $10 a million.
    assert float(session.cost_usd) == pytest.approx(3 * (0.00002 + 0.4 + 0.01))
    assert session.cost_is_estimated
    assert (session.started_at, session.ended_at) == (START + timedelta(seconds=10), START + timedelta(seconds=25))
    assert session.lasted_ms == 15_000
    assert "summary: Databases" in LogEntry.objects.values_list("text", flat=True)


def test_a_longer_copy_of_a_transcript_continues_the_session(tmp_path):
    path, lines = tmp_path / "transcript.jsonl", turn(1)
    import_log(write(path, *lines), by="anna")
    lines += turn(2, "[EVENT:info:db] later")
    file = import_log(write(path, *lines, '{"type":"assis'), by="anna")
    assert (outcomes(file), file.sessions[0].lines, file.cut) == (["continued"], 2, True)
    assert outcomes(import_log(path, by="anna")) == ["unchanged"]
    session = Session.objects.get()
    assert (session.status, session.num_turns, Event.objects.count()) == (Status.COMPLETED, 2, 1)


def test_of_a_transcript_that_was_rewritten_the_new_lines_are_added(tmp_path):
    path, first, second = tmp_path / "transcript.jsonl", turn(1), turn(2, "[EVENT:info:db] later")
    import_log(write(path, *first), by="anna")
    compacted = entry("system", subtype="compact_boundary", content="Conversation compacted", seconds=17)
    rewritten = [asked("This session is continued from a summary.", seconds=18), compacted, first[1], *second]
    file = import_log(write(path, *rewritten), by="anna")
    assert (outcomes(file), file.sessions[0].lines, file.sessions[0].rewritten) == (["continued"], 4, True)
    assert outcomes(import_log(path, by="anna")) == ["unchanged"]
    assert Session.objects.get().num_turns == 2
    assert (Memory.objects.get().confidence, Event.objects.count()) == (0.7, 1)


@pytest.mark.parametrize(
    ("last", "status", "reason"),
    [
        (answer("Let me look.", stop="tool_use", id_="msg_2"), Status.LOST, "The transcript ends in the middle"),
        (asked("And now?"), Status.LOST, "The transcript ends in the middle"),
        (asked("[Request interrupted by user]"), Status.STOPPED, "Its user interrupted"),
        (asked("<command-name>/exit</command-name>"), Status.COMPLETED, ""),
        (asked("Caveat: a local command", isMeta=True), Status.COMPLETED, ""),
        (entry("system", subtype="turn_duration", durationMs=7), Status.COMPLETED, ""),
        (answer("Of a subagent", stop="tool_use", isSidechain=True), Status.COMPLETED, ""),
    ],
    ids=["tool use", "question", "interrupted", "exit", "meta", "system", "subagent"],
)
def test_how_a_transcript_ends_decides_its_status(tmp_path, last, status, reason):
    import_log(write(tmp_path / "transcript.jsonl", *turn(1), last), by="anna")
    session = Session.objects.get()
    assert session.status == status
    assert session.status_reason.startswith(reason)
    assert bool(session.status_reason) == bool(reason)


def test_a_transcript_that_ends_with_an_error_of_the_api_failed(tmp_path):
    error = answer("API Error: 500", isApiErrorMessage=True).replace("claude-sonnet-5-5", "<synthetic>")
    import_log(write(tmp_path / "transcript.jsonl", *turn(1), error), by="anna")
    assert Session.objects.get().status == Status.FAILED


def test_a_subagents_own_transcript_joins_its_session(tmp_path):
    import_log(write(tmp_path / "main.jsonl", *turn(1)), by="anna")
    import_log(write(tmp_path / "agent-1.jsonl", asked(isSidechain=True), answer(NOTE, isSidechain=True)), by="anna")
    session = Session.objects.get()
    assert (session.stats["skipped_subagent"], session.num_turns) == (1, 1)


def test_the_result_line_decides_when_a_stream_has_one(tmp_path):
    import_log(write(tmp_path / "log", init(), result(is_error=True)), by="anna")
    assert Session.objects.get().status == Status.FAILED


@pytest.mark.parametrize(
    ("shape", "name"),
    [(chunked, "chunks"), (stamped, "stream-json with time stamps"), (lambda path, source: source, "stream-json")],
)
def test_the_format_is_stated(tmp_path, shape, name):
    source = write(tmp_path / "bare", init(), text("x"), result())
    assert import_log(shape(tmp_path / "shaped", source), by="anna").formats == [name]


# -- lines that are not understood -------------------------------------------------------------------------------------


def test_a_file_of_which_less_than_half_is_understood_is_refused_unless_forced(tmp_path):
    path = write(tmp_path / "notes.txt", init(), text(NOTE), result(), *["hello\n"] * 4)
    before = files()
    with pytest.raises(InvalidStream, match=r"notes\.txt: 4 of 7 lines \(57%\) were not understood") as refused:
        import_log(path, by="anna")
    assert "--force" in refused.value.fix
    assert (Session.objects.count(), files()) == (0, before)
    file = import_log(path, by="anna", force=True)
    assert (outcomes(file), file.lines - file.understood) == (["imported"], 4)


def test_half_is_enough(tmp_path):
    import_log(write(tmp_path / "log", init(), text(NOTE), *["hello\n"] * 2), by="anna")


# -- what breaks off ---------------------------------------------------------------------------------------------------


@pytest.fixture
def long_log(tmp_path) -> Path:
    lines = [text(f"[EVENT:info:db] number {n}") for n in range(40)]
    return write(tmp_path / "log", init(), *lines, result())


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(import_target, "BATCH_LINES", 5)


def whole(path: Path) -> None:
    """All of the long log is stored, once."""
    session = Session.objects.get()
    assert (session.status, Event.objects.count(), session.stats["lines"]) == (Status.COMPLETED, 40, 42)
    assert "duplicate_events" not in session.stats
    assert log_path(session).read_bytes() == path.read_bytes()


class FullDisk(BytesIO):
    """A file on a disk that takes half of a batch and no more."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self.log = log

    def write(self, data) -> int:
        with self.log.open("ab") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.log))


def test_a_full_disk_is_one_clear_error_and_the_same_command_continues(monkeypatch, long_log, small_batches):
    opened, appends = Path.open, []

    def full(self, mode="r", *arguments, **named):
        if mode == "ab" and self.suffix == ".jsonl":
            appends.append(self)
            if len(appends) == 4:
                return FullDisk(self)
        return opened(self, mode, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        with pytest.raises(CannotStore, match=r"was not imported to its end: .*No space left on device") as error:
            import_log(long_log, by="anna")
    session = Session.objects.get()
    assert str(appends[0]) in str(error.value)
    assert error.value.fix.startswith(f"Kept: session {session.pk} with 15 lines of this run. Make room")
    kept = log_path(session).read_bytes()
    assert kept.endswith(b"\n")
    assert long_log.read_bytes().startswith(kept)
    file = import_log(long_log, by="anna")
    assert (outcomes(file), file.sessions[0].lines) == (["continued"], 27)
    whole(long_log)
    assert outcomes(import_log(long_log, by="anna")) == ["unchanged"]


def test_a_disk_that_is_full_from_the_start_leaves_nothing(monkeypatch, long_log):
    before, opened = files(), Path.open

    def full(self, mode="r", *arguments, **named):
        if mode == "ab" and self.suffix == ".jsonl":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
        return opened(self, mode, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        with pytest.raises(CannotStore) as error:
            import_log(long_log, by="anna")
    assert error.value.fix.startswith("Kept: nothing.")
    assert Session.objects.count() == 0
    assert [name for name in files() if name not in before and not Path(name).is_dir()] == []
    assert outcomes(import_log(long_log, by="anna")) == ["imported"]
    whole(long_log)


def test_a_full_disk_of_the_database_is_said_too(monkeypatch, long_log, small_batches):
    calls, ingest = [], import_target.ingest

    def full(*arguments, **named):
        calls.append(1)
        return fill_database() if len(calls) == 3 else ingest(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(import_target, "ingest", full)
        with pytest.raises(CannotStore, match="to its end: A disk is full: "):
            import_log(long_log, by="anna")
    assert outcomes(import_log(long_log, by="anna")) == ["continued"]
    whole(long_log)


def test_a_line_that_was_written_in_part_and_read_by_the_reaper_is_written_again(long_log, small_batches):
    """A killed import leaves half a line; a worker that closed the session took it for a whole one."""
    half = long_log.read_bytes()[:1500]
    import_log(write(long_log.with_name("part"), *long_log.read_text().splitlines(keepends=True)[:5]), by="anna")
    session = Session.objects.get()
    log_path(session).write_bytes(half)
    Session.objects.update(status=Status.RUNNING)
    import_target.run.finish(session.pk, exit_code=None)
    assert outcomes(import_log(long_log, by="anna")) == ["continued"]
    session.refresh_from_db()
    assert log_path(session).read_bytes() == long_log.read_bytes()
    assert (session.status, Event.objects.count(), session.stats["garbage"]) == (Status.COMPLETED, 40, 1)


def test_a_killed_import_is_closed_and_never_run_or_ended(long_log, monkeypatch):
    """It was killed after the row and before the first line; a person's CLI has the same session id."""
    import_log(long_log, by="anna")
    session = Session.objects.get()
    log_path(session).unlink()
    Session.objects.update(status=Status.RUNNING, heartbeat_at=None, ingest_offset=0, ingest_state={}, stats={})
    Event.objects.all().delete()
    LogEntry.objects.all().delete()
    monkeypatch.setattr(reaper, "find_by_session_id", lambda *_: pytest.fail("it looks for a process"))
    assert reaper.reap().closed == [session.pk]
    assert Session.objects.get().status == Status.LOST
    assert outcomes(import_log(long_log, by="anna")) == ["continued"]
    whole(long_log)


def test_any_error_leaves_whole_lines_and_no_other_file(monkeypatch, long_log, small_batches):
    def broken(*arguments, **named):
        raise RuntimeError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(importer.Target, "_ingest", broken)
        with pytest.raises(RuntimeError):
            import_log(long_log, by="anna")
    hidden = [name for name in files() if Path(name).name.startswith(".")]
    assert hidden == []
    import_log(long_log, by="anna")
    whole(long_log)


def test_a_file_name_that_is_no_text_is_shown_as_it_can_be(tmp_path, logs):
    path = Path(os.fsdecode(bytes(tmp_path) + b"/log-\xff"))
    import_log(write(path, *logs[A]), by="anna")
    assert Session.objects.get().task == "Imported from log-?"


def test_a_log_is_read_from_a_pipe(tmp_path, logs):
    reader, writer = os.pipe()
    os.write(writer, "".join(logs[A]).encode())
    os.close(writer)
    assert outcomes(import_log(Path(f"/dev/fd/{reader}"), by="anna")) == ["imported"]
    os.close(reader)


# -- anything at all ------------------------------------------------------------------------------------------------


@hypothesis.settings(max_examples=max(10, hypothesis.settings.default.max_examples // 3))
@given(st.lists(mutated(), min_size=1, max_size=5), st.sampled_from(["bare", "chunks", "stamped"]))
def test_a_file_of_any_lines_is_imported_or_refused(tmp_path, lines, shape):
    Session.objects.all().delete()
    Memory.objects.all().delete()
    MemoryChange.objects.all().delete()
    path = tmp_path / "log"
    path.write_bytes(b"".join(lines))
    if shape == "chunks":
        raw = path.read_bytes().decode("utf-8", "replace")
        path.write_text(
            "".join(json.dumps({"type": "stdout", "data": raw[at : at + 61]}) + "\n" for at in range(0, len(raw), 61))
        )
    elif shape == "stamped":
        path.write_bytes(b"".join(b"2026-11-21T21:37:45.5Z\t" + raw for raw in lines))
    try:
        import_log(path, by="anna", force=True)
    except InvalidStream:
        assert not Session.objects.exists()
        return
    assert not Session.objects.filter(status=Status.RUNNING).exists()
    before = everything()
    file = import_log(path, by="anna", force=True)
    assert set(outcomes(file)) == {"unchanged"}
    assert everything() == before
    assert [name for name in files() if Path(name).name.startswith(".")] == []
