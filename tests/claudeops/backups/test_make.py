"""`manage.py backup`: whole, consistent while others write, and never half of one."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from claudeops import tasks
from claudeops.features.backups import database, files, folder, make
from claudeops.features.backups.folder import BackupError
from claudeops.features.backups.manifest import DATABASE, KEYS, LOGS, read, verify
from claudeops.lib import outage
from claudeops.lib.locks import file_lock
from sessions_app.runner.ingest import ingest
from tests.claudeops.backups.house import POSTGRESQL, about_files, kill_here, killed, line, session_with_log
from tests.support.outages import fill_database

AT = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def names(where) -> list[str]:
    return sorted(path.name for path in where.iterdir() if not path.name.startswith("."))


def long_ago(path, monkeypatch) -> None:
    """Nothing was changed lately: the margin is for clocks that are coarse."""
    monkeypatch.setattr(files, "MARGIN", timedelta(0))
    os.utime(path, (1_000_000, 1_000_000))


def test_it_holds_database_logs_and_keys_and_says_what(data, log, capsys):
    call_command("backup", "--json")
    answer = json.loads(capsys.readouterr().out)["result"]
    (path,) = folder.complete(data / "backups")
    made = read(path)
    assert (answer["path"], answer["files"], answer["linked"], answer["removed"]) == (str(path), 3, 0, [])
    name = log.relative_to(data)
    assert {entry.path for entry in made.files} == {
        f"{DATABASE}/{database.FILES[connection.vendor]}",
        str(name),
        f"{KEYS}/secret_key",
    }  # not mcp.json, tmp/, nor what a link points to
    assert (path / name).read_bytes() == log.read_bytes()
    assert (made.vendor, made.host, made.missing_logs) == (connection.vendor, "nuc-1", [])
    assert any(one.startswith("memories.0001") for one in made.migrations)
    assert verify(path).problems == []
    for file in (data / "backups", path, *(one for one in path.rglob("*") if one.is_file())):
        assert not stat.S_IMODE(file.stat().st_mode) & 0o077, file


@about_files
def test_keys_can_be_left_out_and_the_folder_chosen(data, log, tmp_path, capsys):
    call_command("backup", to=tmp_path / "else where", no_keys=True)
    (path,) = folder.complete(tmp_path / "else where")
    assert read(path).of(KEYS) == [] and not list((path / KEYS).iterdir())
    assert not (data / "backups").exists()
    assert re.search(r"raw logs  1 files, \d+ bytes; 0 unchanged", capsys.readouterr().out)


@about_files
def test_what_is_unchanged_is_linked_and_masking_a_log_changes_no_earlier_backup(data, log, monkeypatch):
    _, other = session_with_log(2)
    for path in (log, other):
        long_ago(path, monkeypatch)
    first, second = make.make(at=AT), make.make(at=AT + DAY)
    names = [path.relative_to(data) for path in (log, other)]
    assert (first.linked, second.linked) == (0, 2)
    inodes = [[(where / name).stat().st_ino for where in (data, first.path, second.path)] for name in names]
    assert all(live != copied == linked for live, copied, linked in inodes)
    before = log.read_bytes()
    with log.open("r+b") as file:  # in place, as many bytes
        file.write(b"*")
    os.utime(log, (1_000_000, 1_000_000))  # a program can set this time, but not that of the change
    third = make.make(at=AT + 2 * DAY)
    assert third.linked == 1
    assert [(one.path / names[0]).read_bytes()[:1] for one in (first, second, third)] == [before[:1]] * 2 + [b"*"]
    assert make.make(at=AT + 3 * DAY, full=True).linked == 0
    assert all(not verify(path).problems for path in folder.complete(data / "backups"))


@about_files
def test_a_log_that_is_masked_while_it_is_copied_is_copied_again(data, log, monkeypatch):
    real, calls = os.fchmod, []

    def mask_first(descriptor, mode):
        if not calls:
            with log.open("r+b") as file:
                file.write(b"*")
            os.utime(log, (2_000_000, 2_000_000))
        calls.append(mode)
        real(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", mask_first)
    size, _ = files.copy(log, data / "copy")
    assert (data / "copy").read_bytes() == log.read_bytes() and size == log.stat().st_size
    assert len(calls) == 2


def test_while_logs_are_ingested_every_line_in_the_database_is_in_the_logs(data, log):
    session, growing = session_with_log(0)
    done = threading.Event()

    def write() -> None:
        try:
            number = 0
            while not done.is_set():
                with growing.open("ab") as file:
                    file.writelines(line(number + n) for n in range(20))
                number += 20
                ingest(session.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        made = [make.make(at=AT + n * DAY) for n in range(3)]
    finally:
        done.set()
        thread.join()
    sizes = []
    for one in made:
        assert one.manifest.missing_logs == [] and verify(one.path).problems == []
        sizes.append((one.path / growing.relative_to(data)).stat().st_size)
    assert sizes[0] < sizes[-1], "the ingest ran meanwhile"


@about_files
def test_what_is_ingested_between_database_and_logs_is_in_the_logs_alone(data, log, monkeypatch):
    session, growing = session_with_log(1)
    real = database.copy

    def then_more(target):
        snapshot = real(target)
        with growing.open("ab") as file:
            file.write(line(99))
        ingest(session.pk)
        return snapshot

    ingest(session.pk)
    monkeypatch.setattr(database, "copy", then_more)
    made = make.make()
    assert line(99) in (made.path / growing.relative_to(data)).read_bytes()
    assert made.manifest.missing_logs == []


@about_files
def test_a_raw_log_that_an_operator_removed_is_named(data, log):
    session, gone = session_with_log()
    ingest(session.pk, final=True)
    gone.unlink()
    made = make.make()
    assert made.manifest.missing_logs == [str(gone.relative_to(data))]
    checked = verify(made.path)
    assert checked.problems == []
    assert checked.notes == ["Raw logs that were gone already when it was made: 1."]


def test_killed_on_the_way_nothing_is_taken_for_a_backup_and_the_next_one_clears_it(data, log):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "copy", kill_here)
        killed(make.make)
    (left,) = names(data / "backups")
    assert left.endswith(".partial") and folder.complete(data / "backups") == []
    with pytest.raises(BackupError, match=r"There is no backup|not a complete backup"):
        folder.resolve(left)
    made = make.make()
    assert names(data / "backups") == [made.path.name]


@about_files
def test_two_at_once_the_second_is_refused(data, log, capsys, caplog, settings):
    settings.CLAUDEOPS_BACKUP_KEEP = 7
    with file_lock(data / folder.LOCK):
        with pytest.raises(SystemExit):
            call_command("backup")
        tasks.backup()
    assert capsys.readouterr().err == "Error: Another backup or restore is running.\nWait until it has ended.\n"
    assert folder.complete(data / "backups") == []


@pytest.mark.parametrize("where", ["logs", "database"])
def test_a_full_disk_is_named_in_one_line_and_nothing_is_left(data, log, monkeypatch, capsys, where):
    earlier = make.make(at=AT)
    if where == "logs":

        def full(source, target):
            target.write_text("half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

        monkeypatch.setattr(files, "copy", full)
    else:

        def full(target):
            target.write_text("half")
            fill_database()

        monkeypatch.setattr(database, "_copy_sqlite", full)
        monkeypatch.setattr(database, "_copy_postgresql", full)
    with pytest.raises(SystemExit) as ended:
        call_command("backup", keep=1)
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert re.fullmatch(rf"Error: No backup was made: .*: A disk is full: .*\.\n{re.escape(outage.MAKE_ROOM)}\n", said)
    assert str(data / "backups") in said
    assert names(data / "backups") == [earlier.path.name]


@about_files
def test_a_house_without_sessions_is_whole(data):
    made = make.make()
    assert (made.manifest.of(LOGS), made.manifest.unreadable) == ([], [])
    assert verify(made.path).problems == []


@about_files
def test_what_cannot_be_read_is_left_out_and_named(data, log, monkeypatch, capsys):
    odd = log.with_name("odd\x1b[31m\udce4.log")
    odd.write_text("x")
    real = os.open

    def refuse(path, *arguments, **named):
        if str(path) == str(odd):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", refuse)
    call_command("backup")
    said = capsys.readouterr().out
    assert "Not in it, because they cannot be read: 1 (sessions/" in said and "\x1b" not in said
    (path,) = folder.complete(data / "backups")
    assert verify(path).notes == ["Files of sessions that could not be read then: 1."]
    monkeypatch.undo()
    call_command("backup", "--json", "--to", str(data / "again"))
    assert json.loads(capsys.readouterr().out)["result"]["files"] == 4  # whatever its name
    monkeypatch.setattr(os, "open", refuse)
    call_command("backup", "--json", "--to", str(data / "third"))
    (named,) = json.loads(capsys.readouterr().out)["result"]["unreadable"]
    assert named.isprintable()


@about_files
def test_of_a_damaged_or_empty_database_none_is_made_and_the_earlier_ones_stay(data, log, capsys):
    earlier = make.make(at=AT)
    connection.close()
    live = Path(connection.settings_dict["NAME"])
    content = live.read_bytes()
    live.write_bytes(content[:100_000] + b"\xff" * 100_000 + content[200_000:])
    damaged = ("Error: The database claudeops.sqlite3 is damaged", "Error: No backup was made: the database was not")
    for said in (damaged, "Error: No backup was made: the database is empty."):
        with pytest.raises(SystemExit):
            call_command("backup", keep=1)
        assert capsys.readouterr().err.startswith(said)
        connection.close()
        live.write_bytes(b"")
    assert names(data / "backups") == [earlier.path.name]


class TestKeep:
    @about_files
    def test_the_oldest_of_this_house_are_removed_never_the_new_one(self, data, log, tmp_path, settings):
        to = tmp_path / "shared"
        made = [make.make(to, at=AT + n * DAY) for n in range(3)]
        settings.CLAUDEOPS_HOST = "nuc-2"
        other = make.make(to, at=AT)
        settings.CLAUDEOPS_HOST = "nuc-1"
        (to / "20200101T000000Z").mkdir()  # not a backup
        newest = make.make(to, keep=2, at=AT - DAY)  # the clock was set back
        assert newest.removed == [one.path.name for one in made[:2]]
        assert names(to) == sorted(["20200101T000000Z", newest.path.name, other.path.name, made[2].path.name])

    @about_files
    def test_what_the_operator_made_stays_when_the_daily_ones_go(self, data, log, settings):
        settings.CLAUDEOPS_BACKUP_KEEP = 2
        own = make.make(at=AT)
        daily = [make.make_daily(AT + n * DAY) for n in range(3)]
        assert [path.name for path in folder.complete(data / "backups")] == [
            own.path.name,
            *(one.path.name for one in daily[1:]),
        ]


class TestDaily:
    @about_files
    def test_a_second_run_on_the_same_day_does_nothing(self, data, log, settings):
        settings.CLAUDEOPS_BACKUP_KEEP = 7
        assert make.make_daily(AT).path.name == "20260310T120000Z-daily"
        assert make.make_daily(AT.replace(hour=23)) is None
        assert make.make_daily(AT + DAY).manifest.daily
        assert len(folder.complete(data / "backups")) == 2

    def test_the_task_makes_it_where_it_is_wanted(self, data, log, settings):
        tasks.backup()
        assert folder.complete(data / "backups") == []
        settings.CLAUDEOPS_BACKUP_KEEP = 7
        tasks.backup(), tasks.backup()
        assert len(folder.complete(data / "backups")) == (0 if POSTGRESQL else 1)


WRONG = [
    (["--keep", "0"], "'0' is not a number of backups; allowed is 1 or more"),
    (["--keep", "many"], "'many' is not a number of backups"),
    (["--to", ""], "'' is not a folder"),
    (["--to", "/etc/hostname"], "'/etc/hostname' is not a folder"),
    (["--to", "a\0b"], "is not a folder"),
    (["--to", "~nobody-of-this-name/x"], "is not a folder"),
    (["--to", "x" * 300], "is not a folder"),
]


@about_files
def test_wrong_options_are_refused(data):
    for arguments, said in WRONG:
        with pytest.raises(CommandError, match=re.escape(said)):
            call_command("backup", *arguments)
    assert not (data / "backups").exists()


@about_files
def test_a_folder_that_cannot_hold_backups_is_refused(data, log, capsys):
    for to, code in ((data / "sessions" / "mine", "wrong_folder"), (data / "secret_key" / "below", "cannot_write")):
        with pytest.raises(SystemExit):
            call_command("backup", to=to, json=True)
        assert json.loads(capsys.readouterr().out)["error"]["code"] == code
    assert not (data / "sessions" / "mine").exists()


@pytest.mark.skipif(not POSTGRESQL, reason="SQLite needs no program")
def test_without_the_programs_of_postgresql_it_says_what_to_install(data, log, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit):
        call_command("backup")
    said = capsys.readouterr().err
    assert said.startswith("Error: pg_dump is not on the PATH") and "client programs" in said
    assert names(data / "backups") == []


def test_no_password_is_on_a_command_line(monkeypatch):
    seen = {}

    def run(argv, env, **options):
        seen.update(argv=argv, env=env)
        return subprocess.CompletedProcess(argv, 1, "", "pg_dump: error: no such server\nmore")

    monkeypatch.setattr(database.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(
        connection, "get_connection_params", lambda: {"dbname": "x", "password": "hunter22", "context": 1, "host": "h"}
    )
    with pytest.raises(BackupError, match=r"pg_dump failed: pg_dump: error: no such server$"):
        database.run("pg_dump", "--dbname", database.conninfo())
    assert "hunter22" not in " ".join(seen["argv"]) and seen["env"]["PGPASSWORD"] == "hunter22"
    assert seen["argv"][-1] == "dbname=x host=h"
