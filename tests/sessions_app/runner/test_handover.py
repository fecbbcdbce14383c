"""sessions_app.runner.handover: what the parent sets, its forked children see."""

from __future__ import annotations

import multiprocessing
import os
import signal

import pytest

from sessions_app.runner import handover
from sessions_app.runner.handover import Flag

FORK = multiprocessing.get_context("fork")


def wait_for(flag: Flag, ready) -> None:
    ready.set()
    while not flag.is_set():
        pass


@pytest.fixture(autouse=True)
def nobody_lets_go():
    yield
    handover.CLOSING.clear()
    handover.DETACH.clear()


@pytest.mark.processes
def test_a_child_sees_what_is_set_after_it_was_forked():
    flag, ready = Flag(), FORK.Event()
    child = FORK.Process(target=wait_for, args=(flag, ready))
    child.start()
    ready.wait(30)
    flag.set()
    child.join(30)
    assert child.exitcode == 0


@pytest.mark.processes
def test_a_child_killed_while_it_looks_holds_up_nobody():
    flag = Flag()
    for _ in range(5):
        ready = FORK.Event()
        child = FORK.Process(target=wait_for, args=(flag, ready))
        child.start()
        ready.wait(30)
        os.kill(child.pid, signal.SIGKILL)
        child.join(30)
    flag.set()
    assert flag.is_set()


def test_a_flag_can_be_taken_back():
    flag = Flag()
    flag.set()
    flag.clear()
    assert not flag.is_set()


def test_closing_takes_up_nothing_and_lets_go_of_nothing():
    handover.CLOSING.set()
    assert handover.closing()
    assert not handover.requested()


def test_letting_go_takes_up_nothing_either():
    handover.DETACH.set()
    assert handover.requested()
    assert handover.closing()
