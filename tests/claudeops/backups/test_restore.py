"""`manage.py verify` and `manage.py restore`: the same rows again, and never half a house."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection
from django.utils import timezone

from claudeops import checks
from claudeops.features.backups import files, folder, make, restore
from claudeops.features.backups.folder import BackupError
from claudeops.features.backups.manifest import read, verify
from claudeops.lib.locks import file_lock
from memories.models import Memory
from sessions_app.models import Status, WorkerHeartbeat
from tests.claudeops.backups.house import POSTGRESQL, about_files, kill_here, killed, rows, ruin
from tests.support.factories import SessionFactory

AT = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def made(data, log) -> Path:
    return make.make(at=AT).path


def rewrite(path: Path, **values) -> None:
    file = path / folder.MANIFEST
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def flip(path: Path) -> None:
    """Change one bit in the middle."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))


def link_away(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


DAMAGE = {
    "changed": flip,
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "missing": Path.unlink,
    "linked away": link_away,
}
NOT_MANIFESTS = [
    {"files": [{"path": "sessions/../../x", "size": 1, "sha256": ""}]},
    {"files": [{"path": "/etc/hostname", "size": 1, "sha256": ""}]},
    {"files": []},
    {"files": 3},
    {"at": "yesterday"},
    {"format": 2},
    {"more": 1},
]


def command(capsys, *arguments: str) -> tuple[int, str]:
    code = 0
    try:
        call_command(*arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    said = capsys.readouterr()
    return code, said.out + said.err


class TestVerify:
    def test_a_whole_one(self, made, capsys):
        call_command("verify")
        said = capsys.readouterr().out
        assert f"{made}: 3 files" in said and said.endswith(": whole.\n")

    def test_each_kind_of_damage_is_found(self, made, tmp_path, capsys):
        for how, damage in DAMAGE.items():
            for part in ("database", "sessions", "keys"):
                copy = tmp_path / f"{how} {part}"
                shutil.copytree(made, copy)
                entry = read(copy).of(part)[0]
                damage(copy / entry.path)
                apart = part == "keys" and how == "missing"  # they may be kept elsewhere
                code, said = command(capsys, "verify", str(copy), "--json")
                answer = json.loads(said)
                assert (code, answer["ok"]) == ((0, True) if apart else (1, False)), (how, part)
                assert answer["result"]["notes"] == (["It holds no keys."] if apart else [])
                if not apart:
                    assert answer["result"]["problems"][0].startswith(f"{entry.path} ")
                    with pytest.raises(BackupError, match=entry.path):
                        restore.restore(copy, overwrite=True)

    @about_files
    def test_a_damaged_database_is_found_though_its_hash_is_right(self, made):
        entry = read(made).database
        path = made / entry.path
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 3] + b"\xff" * (len(content) // 2))
        size, digest = files.hash_of(path)
        rewrite(made, files=[{"path": entry.path, "size": size, "sha256": digest}])
        (problem,) = verify(made).problems
        assert "is damaged" in problem

    @about_files
    def test_a_manifest_that_is_not_one_is_refused(self, made, capsys):
        file = made / folder.MANIFEST
        right = json.loads(file.read_text())
        for values in NOT_MANIFESTS:
            file.write_text(json.dumps(right | values))
            code, said = command(capsys, "verify", str(made))
            assert code == 1 and said.startswith("Error: ") and said.count("\n") == 2, values
        os.truncate(file, 100)
        assert command(capsys, "restore", made.name, "--overwrite")[0] == 1

    @about_files
    def test_names_of_none(self, made, capsys):
        for name in ("nope", "x" * 300, "../backups/nope", "\x1b[31m", "20260310T120000Z.partial"):
            code, said = command(capsys, "verify", name)
            assert code == 1 and "There is no backup" in said and made.name in said
        code, said = command(capsys, "verify", str(made.parent))
        assert code == 1 and "is not a complete backup" in said


class TestRestore:
    def test_every_row_and_log_is_as_it_was_and_what_was_there_is_set_aside(self, data, log, made, capsys):
        before, content, key = rows(), log.read_bytes(), (data / "secret_key").read_text()
        ruin(log)
        (data / "secret_key").write_text("another " * 8)
        (data / "vectors").mkdir()
        SessionFactory(status=Status.QUEUED)
        connection.close()
        code, said = command(capsys, "restore", made.name, "--overwrite", "--json")
        assert code == 0, said
        answer = json.loads(said)["result"]
        assert rows() == before
        assert log.read_bytes() == content and (data / "secret_key").read_text() == key
        assert (answer["queued"], answer["running"], answer["migrations_to_apply"]) == (0, 0, 0)
        aside = Path(answer["aside"][0])
        assert aside.parent == data and aside.name.startswith("before-restore-")
        assert (aside / "secret_key").read_text() == "another " * 8
        assert sorted(path.name for path in data.iterdir() if path.name.startswith((".", "restore"))) == []
        assert not (data / "vectors").exists() and log.stat().st_ino != (made / log.relative_to(data)).stat().st_ino
        live = connection.settings_dict["NAME"]
        connection.close()
        connection.settings_dict["NAME"] = (
            answer["aside"][1].removeprefix("database ") if POSTGRESQL else str(aside / Path(live).name)
        )
        assert Memory.objects.count() == 0
        connection.close()
        connection.settings_dict["NAME"] = live

    @about_files
    def test_a_restored_house_writes_and_masks_without_changing_the_backup(self, data, log, made):
        restore.restore(made, overwrite=True)
        with log.open("r+b") as file:
            file.write(b"*")
        Memory.objects.all().delete()
        connection.close()
        assert verify(made).problems == []

    @about_files
    def test_into_an_empty_folder_it_needs_no_flag(self, data, log, made, tmp_path, settings):
        before = rows()
        connection.close()
        settings.CLAUDEOPS_DATA_DIR = tmp_path / "new"
        connection.settings_dict["NAME"] = str(tmp_path / "new" / "claudeops.sqlite3")
        done = restore.restore(made)
        assert done.aside == [] and rows() == before
        assert (tmp_path / "new" / "secret_key").exists()

    @about_files
    def test_a_house_with_something_in_it_is_left_alone_without_the_flag(self, data, log, made, capsys):
        before = rows()
        connection.close()
        code, said = command(capsys, "restore", made.name)
        assert code == 1 and "is not empty. Nothing was restored." in said and "--overwrite" in said
        assert rows() == before

    @about_files
    def test_not_while_something_runs(self, data, log, made, capsys):
        with file_lock(data / restore.UP_LOCK):
            assert "`manage.py up` runs" in command(capsys, "restore", made.name, "--overwrite")[1]
        beat = WorkerHeartbeat.objects.create(host="nuc-1", cluster="default", pid=os.getpid(), beat_at=timezone.now())
        connection.close()
        assert "A worker runs on nuc-1" in command(capsys, "restore", made.name, "--overwrite")[1]
        beat.delete()
        connection.close()
        with subprocess.Popen(
            [sys.executable, "-c", f"f = open({str(log)!r}); print(1, flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as session:
            session.stdout.readline()
            code, said = command(capsys, "restore", made.name, "--overwrite")
            session.stdin.close()
        assert code == 1 and f"Process {session.pid} has {log} open" in said

    @pytest.mark.skipif(not POSTGRESQL, reason="a role without rights")
    def test_without_the_right_to_make_databases_it_says_so(self, data, log, made, capsys, monkeypatch):
        @contextmanager
        def refused():
            raise ProgrammingError("permission denied to create database\nmore")
            yield

        monkeypatch.setattr(restore.database, "maintenance", refused)
        code, said = command(capsys, "restore", made.name, "--overwrite")
        assert code == 1 and "permission denied to create database.\nGive the role the right" in said
        assert log.exists() and rows()

    @pytest.mark.skipif(not POSTGRESQL, reason="SQLite sees who has the file open")
    def test_not_while_others_are_connected(self, data, log, made, capsys):
        other = connection.copy()
        with other.cursor() as cursor:
            cursor.execute("SELECT 1")
            code, said = command(capsys, "restore", made.name, "--overwrite")
        other.close()
        assert code == 1 and "in use by 1 other connections" in said

    @about_files
    def test_one_that_does_not_fit_is_refused(self, data, log, made, capsys):
        rewrite(made, migrations=["memories.9999_from_tomorrow"], version="9.9")
        code, said = command(capsys, "restore", made.name, "--overwrite")
        assert code == 1 and "claudeops 9.9" in said and "memories.9999_from_tomorrow" in said
        rewrite(made, migrations=["memories.0001_memories"])
        code, said = command(capsys, "restore", made.name, "--overwrite")
        assert code == 1 and "made by an earlier version" in said and "memory export" in said
        rewrite(made, vendor="sqlite" if POSTGRESQL else "postgresql")
        assert command(capsys, "restore", made.name, "--overwrite")[0] == 1
        assert rows()

    @about_files
    def test_a_full_disk_leaves_everything_as_it_was(self, data, log, made, capsys, monkeypatch):
        def full(source, target):
            target.write_text("half")
            raise OSError(28, "No space left on device", str(target))

        monkeypatch.setattr(files, "copy", full)
        before = sorted(data.iterdir())
        connection.close()
        code, said = command(capsys, "restore", made.name, "--overwrite")
        assert code == 1 and said.startswith("Error: Nothing was restored: ") and "No space left on device" in said
        assert {path.name for path in set(data.iterdir()) - set(before)} <= {restore.UP_LOCK}
        assert log.exists() and rows()

    @about_files
    def test_killed_before_all_is_staged_nothing_has_changed(self, data, log, made, monkeypatch):
        before = rows()
        monkeypatch.setattr(restore, "_put_in_place", kill_here)
        monkeypatch.setattr(restore, "whole_file", kill_here)
        killed(lambda: restore.restore(made, overwrite=True))
        monkeypatch.undo()
        assert rows() == before and log.exists() and checks.no_restore_is_unfinished(None) == []

    @pytest.mark.parametrize("step", [0, 1, *(pytest.param(n, marks=about_files) for n in (2, 4, 6)), "end"])
    def test_killed_at_any_step_it_is_run_again_and_nothing_starts_before(self, data, log, made, capsys, step):
        before, content = rows(), log.read_bytes()
        ruin(log)
        connection.close()
        done = []

        def then_die(real):
            def step_or_die(*arguments):
                if len(done) == step:
                    kill_here()
                real(*arguments)
                done.append(arguments)

            return step_or_die

        with pytest.MonkeyPatch.context() as patched:
            for name in ("_move", "_swap_databases"):
                patched.setattr(restore, name, then_die(getattr(restore, name)))
            if step == "end":
                patched.setattr(files, "sync_folder", lambda path: done[4:] and kill_here())
            killed(lambda: restore.restore(made, overwrite=True))
        assert [message.id for message in checks.no_restore_is_unfinished(None)] == ["claudeops.E003"]
        code, said = command(capsys, "restore", made.name, "--json")
        assert code == 0, said
        assert rows() == before and log.read_bytes() == content
        assert checks.no_restore_is_unfinished(None) == []
        # What was there before the first of the two is set aside, whole.
        aside = Path(json.loads(said)["result"]["aside"][0])
        assert aside.name.startswith("before-restore-") and (aside / "sessions").is_dir()
        assert not list((aside / "sessions").rglob(log.name))
        live, old = connection.settings_dict["NAME"], json.loads(said)["result"]["aside"][-1]
        connection.close()
        connection.settings_dict["NAME"] = old.removeprefix("database ") if POSTGRESQL else str(aside / Path(live).name)
        assert Memory.objects.count() == 0
        connection.close()
        connection.settings_dict["NAME"] = live

    @about_files
    def test_a_step_that_fails_is_said_and_it_can_be_run_again(self, data, log, made, monkeypatch, capsys):
        before = rows()
        ruin(log)
        connection.close()

        def fail(*arguments):
            raise OSError(13, "Permission denied")

        monkeypatch.setattr(restore, "_move", fail)
        code, said = command(capsys, "restore", made.name, "--overwrite")
        monkeypatch.undo()
        assert code == 1 and "The restore is not complete" in said and "run it again" in said
        restore.restore(made)
        assert rows() == before

    @about_files
    def test_a_damaged_database_is_replaced_and_kept(self, data, log, made):
        before = rows()
        connection.close()
        live = Path(connection.settings_dict["NAME"])
        live.write_bytes(b"not a database" * 1000)
        with pytest.raises(BackupError, match="not empty"):
            restore.restore(made)
        (aside,) = restore.restore(made, overwrite=True).aside
        assert rows() == before
        assert (Path(aside) / live.name).read_bytes().startswith(b"not a database")

    @about_files
    def test_without_keys_the_key_of_the_house_stays(self, data, log):
        made = make.make(at=AT, keys=False).path
        (data / "first-sign-in.txt").write_text("password: of the database that goes")
        connection.close()
        (aside,) = [one for one in restore.restore(made, overwrite=True).aside if not one.startswith("database ")]
        assert (data / "secret_key").exists() and not (data / "first-sign-in.txt").exists()
        assert (Path(aside) / "first-sign-in.txt").exists()


def test_wrong_usage_is_refused():
    for arguments in ([], ["x", "--sideways"]):
        with pytest.raises(CommandError):
            call_command("restore", *arguments)
