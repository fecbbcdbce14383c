"""An import that is killed again and again makes progress, and ends with everything stored once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from memories.models import Change, Memory, MemoryChange
from sessions_app.models import Event, Session, Status
from sessions_app.runner.raw_log import log_path
from tests.support.processes import manage
from tests.support.streams import init, result, text, write

EVENTS, MEMORIES = 1_500, 20
KILLS = 2

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def log(tmp_path) -> Path:
    lines = [text(f"[EVENT:info:db] number {n}") for n in range(EVENTS)]
    step = EVENTS // MEMORIES
    for n in range(MEMORIES):
        lines[n * step] = text(f"[MEMORY:behavior:service-{n}] Restarts at night")
    return write(tmp_path / "huge.jsonl", init(), *lines, result())


def stored() -> int:
    """Return how many bytes of the log are ingested."""
    return Session.objects.values_list("ingest_offset", flat=True).first() or 0


def test_an_import_that_is_killed_makes_progress_and_ends_complete(log):
    before = 0
    for _ in range(KILLS):
        process = manage("session", "import", str(log))
        while process.poll() is None and stored() <= before:
            time.sleep(0.01)
        process.kill()
        process.communicate()
        assert stored() > before
        before = stored()
    assert before < log.stat().st_size
    process = manage("session", "import", str(log))
    out, err = process.communicate()
    assert (process.returncode, "continued session" in out) == (0, True), err
    session = Session.objects.get()
    assert log_path(session).read_bytes() == log.read_bytes()
    assert (session.status, session.stats["lines"]) == (Status.COMPLETED, EVENTS + 2)
    assert Event.objects.count() == EVENTS - MEMORIES
    assert Memory.objects.count() == MemoryChange.objects.filter(kind=Change.CREATED).count() == MEMORIES
    assert {key for key in session.stats if "duplicate" in key} == set()
    assert list(log_path(session).parent.rglob(".*")) == []
