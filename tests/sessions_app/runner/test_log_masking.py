"""Raw logs are masked in place when a session closes, whatever happens in between."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from django.utils import timezone

from sessions_app import escalation, reaper
from sessions_app.models import LogEntry, Session, Status, Trigger
from sessions_app.runner import importer, log_masking, run
from sessions_app.runner.launch import folder_of
from tests.support.factories import SessionFactory
from tests.support.streams import init, result, text, write

TOKEN = "gh" + "p_" + "a1B2c3D4e" * 4
MASK = b"[secret: GitHub token]"


@pytest.fixture
def running(db, settings, tmp_path):
    """A running session whose process has ended, with a raw log that is not ingested."""
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    session = SessionFactory(status=Status.RUNNING, host=settings.CLAUDEOPS_HOST, started_at=timezone.now(), pid=1)
    folder = folder_of(session)
    folder.mkdir(parents=True)
    write(folder / "stdout-1.jsonl", init(), text(f'It said "{TOKEN}"\n[EVENT:info:x] with {TOKEN}'), result(TOKEN))
    (folder / "stderr.log").write_text(f"warning: {TOKEN}\n")
    (folder / "mcp.json").write_text("{}")
    Session.objects.filter(pk=session.pk).update(log_file=str((folder / "stdout-1.jsonl").relative_to(tmp_path)))
    return session


def clean(session) -> bool:
    return all(TOKEN.encode() not in path.read_bytes() for path in folder_of(session).iterdir())


def test_a_closed_log_has_the_same_size_and_is_read_only(running):
    log = folder_of(running) / "stdout-1.jsonl"
    before = log.read_bytes()
    assert run.finish(running.pk, exit_code=0) == Status.COMPLETED
    after = log.read_bytes()
    assert len(after) == len(before) and MASK in after and clean(running)
    assert [len(line) for line in after.splitlines()] == [len(line) for line in before.splitlines()]
    assert all(json.loads(line) for line in after.splitlines())
    assert log.stat().st_mode & 0o777 == (folder_of(running) / "stderr.log").stat().st_mode & 0o777 == 0o400
    assert not (folder_of(running) / "mcp.json").exists()
    assert log_masking.seal(running, folder_of(running)).total() == 0 and log.read_bytes() == after


@pytest.mark.parametrize("where", ["masking", "closing"])
def test_a_crash_before_the_end_leaves_the_session_running_and_it_is_done_again(running, monkeypatch, where):
    with monkeypatch.context() as crash:
        if where == "masking":
            crash.setattr(log_masking, "mask_bytes", lambda data: (_ for _ in ()).throw(KeyboardInterrupt))
        else:
            crash.setattr(escalation, "escalate", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run.finish(running.pk, exit_code=0)
    running.refresh_from_db()
    entries = LogEntry.objects.count()
    assert running.status == Status.RUNNING and entries
    assert run.finish(running.pk, exit_code=0) == Status.COMPLETED
    assert clean(running) and LogEntry.objects.count() == entries


def test_secrets_stay_in_raw_logs_when_the_setting_says_so(running, settings):
    settings.CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS = True
    run.finish(running.pk, exit_code=0)
    assert not clean(running)
    assert not LogEntry.objects.filter(text__contains=TOKEN).exists()


def test_a_file_that_cannot_be_written_is_said_and_the_session_closes(running, monkeypatch, caplog):
    def refuse(path, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log_masking, "mask_file", refuse)
    monkeypatch.setattr(log_masking.logger, "propagate", True)
    monkeypatch.setattr(log_masking.logger.parent.parent, "propagate", True)
    assert run.finish(running.pk, exit_code=0) == Status.COMPLETED
    assert "were not masked: No space left on device" in caplog.text


def test_the_log_of_a_lost_session_is_masked_by_its_own_host(running):
    Session.objects.filter(pk=running.pk).update(status=Status.LOST, ended_at=timezone.now())
    assert not clean(running)
    reaper.reap()
    (folder_of(running) / "mcp.json").unlink()
    assert clean(running)


def test_half_a_credential_at_the_beginning_of_the_tail_is_not_kept(running):
    (folder_of(running) / "stderr.log").write_text(TOKEN + "x" * (run.STDERR_TAIL_BYTES - 20) + " end")
    assert TOKEN[-15:] not in run.stderr_tail(running)


def test_a_private_key_of_many_lines_is_masked_in_stderr(running):
    lines = "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIB" + f"{n:04d}" for n in range(20))
    (folder_of(running) / "stderr.log").write_text(
        f"x\n-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n"
    )
    log_masking.seal(running, folder_of(running))
    assert b"MIIEvQ" not in (folder_of(running) / "stderr.log").read_bytes()


def test_a_big_log_is_masked_in_flat_memory(tmp_path):
    log = tmp_path / "stdout-1.jsonl"
    with log.open("w") as file:
        for number in range(600):
            file.write(text(f"{number} {TOKEN} {'word ' * 500}"))
    tracemalloc.start()
    kinds = log_masking.mask_file(log)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kinds.total() == 600 and peak < 500_000


def test_an_imported_log_is_stored_masked_and_continues_with_a_longer_copy(db, settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "data"
    lines = [init(), text(f"[MEMORY:timing:x] Takes {TOKEN} to start"), text("more"), result()]
    importer.import_log(write(tmp_path / "a.jsonl", *lines[:2]), by="anna")
    session = Session.objects.get()
    log = settings.CLAUDEOPS_DATA_DIR / session.log_file
    assert TOKEN.encode() not in log.read_bytes() and MASK in log.read_bytes()
    again = importer.import_log(write(tmp_path / "a.jsonl", *lines[:2]), by="anna")
    assert [(one.session_id, one.outcome) for one in again.sessions] == [(session.pk, "unchanged")]
    log.write_text("".join(lines[:2]))  # as an earlier version stored it
    longer = importer.import_log(write(tmp_path / "b.jsonl", *lines), by="anna")
    assert [(one.session_id, one.outcome) for one in longer.sessions] == [(session.pk, "continued")]
    assert TOKEN.encode() not in log.read_bytes() and session.trigger == Trigger.IMPORT
