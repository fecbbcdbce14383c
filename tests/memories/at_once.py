"""Real processes that remember at once: each says it is ready, and all begin together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.processes import call

PROCESS = """
import pathlib, time
from datetime import UTC, datetime
from memories.store import Statement, Provenance, remember
print("ready", flush=True)
while not pathlib.Path({go!r}).exists():
    time.sleep(0.001)
by = Provenance("run", "agent:watcher", {session}, at=datetime(2026, 6, 1, tzinfo=UTC))
for number in range({times}):
    print(remember({candidate}, by).outcome)
"""


def remember_at_once(
    folder: Path, said: Sequence[tuple[int, str]], times: int, seconds: float = 120
) -> list[list[str]]:
    """The outcomes of each process, in its order. `said`: a session's id, and the candidate as Python of `number`."""
    go = folder / "go"
    started = [
        call(PROCESS.format(go=str(go), session=session, candidate=candidate, times=times))
        for session, candidate in said
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    go.touch()
    outputs = [process.communicate(timeout=seconds) for process in started]
    assert [process.returncode for process in started] == [0] * len(started), outputs
    return [output.split() for output, _ in outputs]
