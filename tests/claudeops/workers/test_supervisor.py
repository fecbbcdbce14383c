"""claudeops.workers.supervisor: real children that die, hang, or cannot be started."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.workers.supervisor import Backoff, Child, Supervisor
from tests.claudeops.processes import alive, until

pytestmark = pytest.mark.processes

FAST = Backoff(first=0.01, longest=0.05, healthy=30, tries=3)


def python(code: str, name: str = "child", **more) -> Child:
    return Child(name, [sys.executable, "-c", code], **more)


def run(*children: Child, until_said: str = "", backoff: Backoff = FAST, stop_when=None) -> tuple[int, list[str]]:
    """Supervise the children until something is printed or `stop_when()`; return the exit code and the output."""
    said: list[str] = []
    supervisor = Supervisor(children, say=said.append, backoff=backoff)
    end = time.monotonic() + 60

    def look() -> None:
        assert time.monotonic() < end, said
        if (until_said and any(until_said in line for line in said)) or (stop_when and stop_when()):
            supervisor.ask_to_stop()

    return supervisor.run(while_running=look), said


def test_children_run_until_it_is_asked_to_stop(tmp_path):
    codes = [f"import time; open({str(tmp_path / str(n))!r}, 'w').write('here'); time.sleep(600)" for n in range(3)]
    code, said = run(*map(python, codes), stop_when=lambda: len(list(tmp_path.iterdir())) == 3)
    assert (code, said) == (0, [])


def test_a_child_that_died_is_started_again(tmp_path):
    mark = tmp_path / "starts"
    code, said = run(
        python(f"import os, sys; open({str(mark)!r}, 'a').write('x'); os.kill(os.getpid(), 9)", "the clock"),
        stop_when=lambda: mark.exists() and len(mark.read_text()) >= 2,
    )
    assert code == 0
    assert said[0] == "the clock ended (killed by SIGKILL); it restarts in 0.01 s."


def test_a_child_that_never_lives_is_given_up_and_the_others_stop(tmp_path):
    pid = tmp_path / "pid"
    good = python(f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)", "good")
    code, said = run(python("raise SystemExit(7)", "bad"), good)
    assert code == 1
    assert said[-1] == "bad ended 3 times in a row (exit code 7) and is given up; see above."
    assert not pid.exists() or not alive(int(pid.read_text()))


def test_a_child_that_was_healthy_once_is_never_given_up():
    said: list[str] = []
    supervisor = Supervisor(
        [python("import time; time.sleep(0.3); raise SystemExit(1)")],
        say=said.append,
        backoff=Backoff(first=0.01, longest=10, healthy=0.05, tries=2),  # deaths in a row would double the wait
    )
    code = supervisor.run(while_running=lambda: supervisor.ask_to_stop() if len(said) >= 4 else None)
    assert code == 0
    assert set(said) == {"child ended (exit code 1); it restarts in 0.01 s."}


def test_a_program_that_is_not_there_is_named():
    code, said = run(Child("web", ["/nowhere/gunicorn"]))
    assert code == 1
    assert said == ["web cannot be started: [Errno 2] No such file or directory: '/nowhere/gunicorn'."]


def test_a_child_that_does_not_end_is_killed_with_its_group(tmp_path):
    ready = tmp_path / "ready"
    stubborn = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(ready)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    code, said = run(python(stubborn, "mule", stop_within=0.3), stop_when=lambda: ready.exists() and ready.read_text())
    assert (code, said) == (0, ["mule does not stop and is killed."])
    until(lambda: not alive(int(ready.read_text())), "its own child goes on")


def test_each_child_gets_its_own_variables_and_process_session(tmp_path):
    out = tmp_path / "out"
    code = f"import os; open({str(out)!r}, 'w').write(os.environ['MINE'] + str(os.getsid(0) == os.getpid()))"
    run(python(code + "; import time; time.sleep(600)", env={"MINE": "own "}), stop_when=lambda: out.exists())
    assert out.read_text() == "own True"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_all_and_the_old_handlers_come_back(number, tmp_path):
    before = signal.getsignal(number)
    mark = tmp_path / "mark"
    sent = []

    def send():
        if mark.exists() and not sent:
            sent.append(number)
            os.kill(os.getpid(), number)
        return False

    code, said = run(python(f"open({str(mark)!r}, 'w'); import time; time.sleep(600)"), stop_when=send)
    assert (code, said, sent) == (0, [], [number])
    assert signal.getsignal(number) == before


@given(deaths=st.integers(1, 10_000))
def test_the_wait_grows_to_its_limit_and_no_further(deaths):
    backoff = Backoff()
    assert backoff.first <= backoff.wait(deaths) <= backoff.longest
    assert backoff.wait(deaths + 1) >= backoff.wait(deaths)
