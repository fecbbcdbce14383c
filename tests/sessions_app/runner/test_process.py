"""Real processes: started, found again, ended with all they started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from sessions_app.runner.process import CannotStart, Process, find, find_by_session_id, start, terminate

pytestmark = pytest.mark.processes

OBEYS = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
# As the CLI's Bash tool does: a child in a process session of its own, which a signal to the group does not reach.
WITH_CHILD = (
    "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True);"
    "print(child.pid, flush=True); time.sleep(60)"
)


@pytest.fixture
def run(tmp_path):
    (tmp_path / "in").write_text("the prompt")
    started = []

    def run_code(code: str, *arguments: str, **env: str) -> tuple[Process, Path]:
        out = tmp_path / f"out{len(started)}"
        process = start(
            [sys.executable, "-c", code, *arguments],
            stdin=tmp_path / "in",
            stdout=out,
            stderr=tmp_path / "err",
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], **env},
        )
        started.append(process)
        return process, out

    yield run_code
    for process in started:
        terminate(process, 0.1)


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)
    return value


def test_the_prompt_comes_on_stdin_and_output_goes_to_the_file(run):
    process, out = run("import sys; print(sys.stdin.read().upper())")
    assert process.wait(20) == (False, 0)
    assert out.read_text() == "THE PROMPT\n"


def test_the_environment_is_what_was_given_and_nothing_else(run, monkeypatch):
    monkeypatch.setenv("A_SECRET_OF_THE_WORKER", "1")
    process, out = run("import os; print(sorted(os.environ))", GIVEN="1")
    process.wait(20)
    assert "GIVEN" in out.read_text()
    assert "A_SECRET_OF_THE_WORKER" not in out.read_text()


def test_it_has_a_process_session_of_its_own(run):
    process, _ = run(OBEYS)
    assert os.getsid(process.pid) == process.pid != os.getsid(0)


def test_a_missing_program_is_named(tmp_path):
    (tmp_path / "in").touch()
    with pytest.raises(CannotStart, match="no-such-cli was not found"):
        start(
            ["no-such-cli"], stdin=tmp_path / "in", stdout=tmp_path / "o", stderr=tmp_path / "e", cwd=tmp_path, env={}
        )


def test_it_is_found_by_pid_and_start_time_and_not_by_another_time(run):
    process, _ = run(OBEYS)
    assert find(process.pid, process.started_at) is not None
    assert find(process.pid, process.started_at - 5) is None


def test_who_is_not_the_parent_can_follow_and_end_it_too(run):
    process, out = run(OBEYS)
    wait_for(out.read_text)
    adopted = Process(process.pid, process.started_at)
    assert adopted.poll() == (True, None)
    terminate(adopted, 10)
    assert adopted.poll() == (False, None)
    assert find(process.pid, process.started_at) is None


def test_sigterm_is_enough_for_who_obeys(run):
    process, out = run(OBEYS)
    wait_for(out.read_text)
    assert terminate(process, 20) == -15


def test_who_does_not_obey_is_killed_after_the_grace(run):
    process, out = run(STUBBORN)
    wait_for(out.read_text)
    assert terminate(process, 0.3) == -9


def test_children_in_other_process_sessions_are_ended_too(run):
    process, out = run(WITH_CHILD)
    child = psutil.Process(int(wait_for(out.read_text)))
    terminate(process, 0.3)
    wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_a_process_is_found_by_the_session_id_it_was_started_with(run):
    process, _ = run(OBEYS, "--session-id", "6a0e6f0c-7d7e-4f3c-9a55-0d7d7c2f7f11")
    found = wait_for(lambda: find_by_session_id("6a0e6f0c-7d7e-4f3c-9a55-0d7d7c2f7f11"))
    assert found.pid == process.pid
    assert find_by_session_id("00000000-0000-4000-8000-000000000000") is None


def test_a_zombie_has_ended():
    child = subprocess.Popen([sys.executable, "-c", ""])
    started_at = psutil.Process(child.pid).create_time()
    wait_for(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    assert find(child.pid, started_at) is None
    child.wait()
