"""Work beside the caller's own: its result and its error come back, it never waits for a place, and a fork does it."""

from __future__ import annotations

import os
import threading

import pytest

from memories.recall import aside

PATIENCE = 30.0


@pytest.fixture(autouse=True)
def several_processors(monkeypatch):
    monkeypatch.setattr(aside, "_several", True)


def test_it_is_done_in_another_thread_and_gives_its_result():
    result = aside.begin(threading.get_ident)
    assert result() not in (0, threading.get_ident())


def test_what_it_raises_is_raised_where_its_result_is_asked_for():
    def work() -> None:
        raise LookupError("no vector")

    result = aside.begin(work)
    with pytest.raises(LookupError, match="no vector"):
        result()


def test_with_all_threads_at_work_its_caller_does_it():
    go_on = threading.Event()
    held = [aside.begin(lambda: go_on.wait(PATIENCE)) for _ in range(aside.AT_ONCE)]
    try:
        assert aside.begin(threading.get_ident)() == threading.get_ident()
    finally:
        go_on.set()
    assert [each() for each in held] == [True] * aside.AT_ONCE
    assert aside._threads.free.acquire(timeout=PATIENCE)  # a place is free again, also after an error
    aside._threads.free.release()


def test_with_one_processor_its_caller_does_it_when_it_needs_it(monkeypatch):
    monkeypatch.setattr(aside, "_several", False)
    done = []
    result = aside.begin(lambda: done.append(threading.get_ident()))
    assert done == []
    result()
    assert done == [threading.get_ident()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.processes
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork with threads, which is what is shown
def test_a_forked_process_has_threads_of_its_own():
    aside.begin(threading.get_ident)()  # the threads are there
    child = os.fork()
    if child == 0:
        try:
            here = threading.get_ident()
            os._exit(0 if aside.begin(threading.get_ident)() != here else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
