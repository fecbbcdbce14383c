"""claudeops.secret: one key for all processes, readable by its owner alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from claudeops.env import BASE_DIR
from claudeops.secret import secret_key


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_key_is_made_once_and_kept(tmp_path):
    key = secret_key(tmp_path / "data")
    assert len(key) >= 50
    assert secret_key(tmp_path / "data") == key
    assert (tmp_path / "data" / "secret_key").read_text().strip() == key


def test_nobody_else_may_read_it_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        secret_key(tmp_path / "data")
    finally:
        os.umask(before)
    assert mode(tmp_path / "data" / "secret_key") == 0o600
    assert mode(tmp_path / "data") == 0o700


def test_no_draft_is_left_behind(tmp_path):
    secret_key(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


def test_two_houses_have_two_keys(tmp_path):
    assert secret_key(tmp_path / "a") != secret_key(tmp_path / "b")


@pytest.mark.processes
def test_processes_that_start_at_once_get_one_key(tmp_path):
    """Eight processes wait for the same moment, then all ask for the key that is not there yet."""
    code = (
        "import sys, time, pathlib\n"
        "from claudeops.secret import secret_key\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "print(secret_key(folder / 'data'), flush=True)\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=BASE_DIR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    keys = {process.communicate()[0].strip() for process in processes}
    assert [process.returncode for process in processes] == [0] * 8
    assert keys == {(tmp_path / "data" / "secret_key").read_text().strip()}
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["secret_key"]


@pytest.mark.parametrize("held", ["", "\n", "short"])
def test_a_file_without_a_usable_key_is_named_with_what_to_do(tmp_path, held):
    (tmp_path / "secret_key").write_text(held)
    with pytest.raises(ImproperlyConfigured, match=r"secret_key holds no usable key\. Remove the file"):
        secret_key(tmp_path)
    assert (tmp_path / "secret_key").read_text() == held


def test_a_folder_that_cannot_be_made_is_named_with_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ImproperlyConfigured, match="Set SECRET_KEY, or CLAUDEOPS_DATA_DIR to a folder"):
        secret_key(tmp_path / "file" / "data")
