"""`manage.py up` as a newcomer meets it: real processes, a real port, a browser's requests."""

from __future__ import annotations

import re
import shutil
import socket
import stat

import psutil
import pytest

from tests.support.database import migrated_sqlite
from tests.support.up import PATIENCE, houses, until

pytestmark = pytest.mark.processes


@pytest.fixture
def start(tmp_path):
    """Starts houses, and leaves none behind whatever happens."""
    with houses(tmp_path) as begin:
        yield begin


@pytest.fixture(scope="session")
def migrated(request):
    """An empty, migrated database: a house that begins with it stands sooner than the first test's, which has none."""
    return migrated_sqlite(request.config.cache.mkdir("database"))


def test_the_demo_from_the_first_line_to_ctrl_c_and_once_more(start, tmp_path):
    operators = tmp_path / "operators.sqlite3"
    up = start("--demo", DATABASE_URL=f"sqlite:///{operators}").stands()
    demo = tmp_path / "data" / "demo"

    password = re.search(r"user operator, password (\S+)", up.said)[1]
    note = demo / "first-sign-in.txt"
    assert password in note.read_text()
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    _, address, page = up.sign_in("operator", password)
    assert address.endswith(f":{up.port}/")
    assert "claudeops" in page

    database = "demo/claudeops.sqlite3"
    ended = "SELECT id FROM sessions WHERE status = 'completed' ORDER BY id"
    first, second = until(lambda: (found := up.rows(ended, database)) and len(found) > 1 and found[:2], "two sessions")
    assert up.rows("SELECT observation FROM memories WHERE service = 'jellyfin' AND category = 'timing'", database) == [
        ("Takes 60s to start after restart -- wait before checking health",)
    ]
    receipts = dict(up.rows("SELECT session_id, text FROM injection_receipts", database))
    assert receipts[first[0]] == ""
    assert "Takes 60s to start after restart" in receipts[second[0]]

    assert up.ctrl_c() == 0
    assert "Stopping" in up.said
    assert up.said.rstrip().endswith("All stopped.")
    assert up.left_behind() == []
    assert "Traceback" not in up.said
    assert not operators.exists()

    again = start("--demo").stands()
    assert f"password {password}" in again.said
    again.sign_in("operator", password)
    assert [row[0] for row in again.rows(ended, database)][:2] == [first[0], second[0]]
    assert again.rows("SELECT count(*) FROM auth_user", database) == [(1,)]
    again.process.terminate()
    assert again.process.wait(PATIENCE) == 0
    assert again.left_behind() == []


@pytest.mark.smoke
def test_ctrl_c_stops_the_session_that_runs(start, migrated, tmp_path):
    (tmp_path / "data" / "demo").mkdir()
    shutil.copyfile(migrated, tmp_path / "data" / "demo" / "claudeops.sqlite3")
    up = start("--demo", CLAUDEOPS_REPLAY_SPEED="0.01").stands()
    database = "demo/claudeops.sqlite3"
    running = "SELECT pid FROM sessions WHERE status = 'running' AND pid IS NOT NULL"
    ((pid,),) = until(lambda: up.rows(running, database), "a running session")
    assert up.ctrl_c() == 0
    assert not psutil.pid_exists(pid)
    assert up.left_behind() == []
    assert up.rows("SELECT status FROM sessions ORDER BY id", database) == [("stopped",), ("queued",)]


def test_without_the_demo_it_says_what_is_missing_and_survives_what_dies(start, migrated, tmp_path):
    shutil.copyfile(migrated, tmp_path / "data" / "claudeops.sqlite3")
    up = start(CLAUDEOPS_CLAUDE_BIN="no-such-cli").stands()
    assert "The Claude Code CLI (no-such-cli) was not found" in up.said
    assert "There is no agent yet." in up.said
    assert up.rows("SELECT count(*) FROM agents") == [(0,)]
    assert not (tmp_path / "data" / "demo").exists()

    second = start()
    assert second.process.wait(PATIENCE) == 1
    assert "Another `up` runs with the data folder" in second.said

    web, worker = (
        next(p for p in psutil.Process(up.process.pid).children() if name in " ".join(p.cmdline()))
        for name in ("gunicorn", "runworker")
    )
    web.kill()
    worker.kill()
    for name in ("web server", "worker"):
        until(lambda name=name: f"{name} ended (killed by SIGKILL); it restarts" in up.said, "the restart to be said")
    beating = "SELECT pid FROM worker_heartbeats WHERE cluster = 'sessions' AND pid != "
    until(lambda: up.rows(beating + str(worker.pid)), "the worker to come back")
    password = re.search(r"user operator, password (\S+)", up.said)[1]

    def signs_in():
        try:
            return up.sign_in("operator", password)
        except OSError:
            return None

    until(signs_in, "the web server to come back")

    up.process.kill()
    up.process.wait()
    until(lambda: not up.left_behind(), "the children of a killed `up` to end")


def test_a_port_in_use_is_said_before_anything_is_made(start, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        up = start("--port", str(port))
        assert up.process.wait(PATIENCE) == 1
    assert f"Port {port} on 127.0.0.1 cannot be used" in up.said
    assert "--port" in up.said
    assert "Traceback" not in up.said
    assert not (tmp_path / "data" / "claudeops.sqlite3").exists()


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_wrong_port_is_wrong_usage(start, port):
    up = start("--port", port)
    assert up.process.wait(PATIENCE) == 2
    assert "allowed is 1 to 65535" in up.said
