"""Real processes that remember at once: each says it is ready, and all begin together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.support.processes import call

# One interpreter imports Django and forks: that takes a second, and each process has its own connection all the same.
PROCESSES = """
import json, os, pathlib, sys, time, traceback
from datetime import UTC, datetime
from django.db import connection
from memories.store import Statement, Provenance, remember
{setup}
assert connection.connection is None
folder = pathlib.Path({folder!r})

def run(place, session, candidate):
    (folder / f"ready-{{place}}").touch()
    while len(list(folder.glob("ready-*"))) < {processes}:
        time.sleep(0.001)
    by = Provenance("run", "agent:watcher", session, at=datetime(2026, 6, 1, tzinfo=UTC))
    found = [remember(eval(candidate, globals(), {{"number": number}}), by).outcome for number in range({times})]
    (folder / f"outcomes-{{place}}.json").write_text(json.dumps(found))

children = []
for place, (session, candidate) in enumerate({said!r}):
    child = os.fork()
    if not child:
        code = 1
        try:
            run(place, session, candidate)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    children.append(child)
sys.exit(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children))
"""


def remember_at_once(
    folder: Path, said: Sequence[tuple[int, str]], times: int, setup: str = "", seconds: float = 120
) -> list[list[str]]:
    """The outcomes of each process, in its order. `said`: a session's id, and the candidate as Python of `number`;
    `setup`: Python that runs before they begin."""
    code = PROCESSES.format(folder=str(folder), processes=len(said), times=times, said=list(said), setup=setup)
    process = call(code)
    output = process.communicate(timeout=seconds)
    assert process.returncode == 0, output
    return [json.loads((folder / f"outcomes-{place}.json").read_text()) for place in range(len(said))]
