"""Fresh processes of a latency bench (`child`), asked and answering in lines of JSON; none outlives its block."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from django.conf import settings
from django.db import connection

from memories.errors import MemoriesError

PASSED_ON = (
    *("CLAUDEOPS_DATA_DIR", "CLAUDEOPS_MODELS_DIR", "CLAUDEOPS_EMBEDDINGS", "CLAUDEOPS_EMBEDDINGS_URL"),
    *("CLAUDEOPS_EMBEDDINGS_MODEL", "CLAUDEOPS_EMBEDDINGS_KEY", "CLAUDEOPS_RECALL_AGE", "CLAUDEOPS_MATCHING"),
    "CLAUDEOPS_VECTOR_SEARCH",
)
MODELS_ASKED = ("CLAUDEOPS_MATCHING_JUDGE_URL", "CLAUDEOPS_RECALL_REWRITE_URL")
"""Models that would answer over the network: not asked here."""
WHERE = ("NAME", "USER", "PASSWORD", "HOST", "PORT")


class BenchFailed(MemoriesError):
    """A process of the bench ended before it had answered."""

    code = "bench_failed"


@dataclass(frozen=True, slots=True)
class Process:
    """A child, and the two ends of its lines."""

    popen: subprocess.Popen[str]
    orders: IO[str]
    answers: IO[str]

    def line(self, name: str) -> dict[str, Any]:
        """Its next line, which has `name`. Raises BenchFailed when it ended instead."""
        text = self.answers.readline()
        found = json.loads(text) if text else {}
        if name not in found:
            raise BenchFailed("A process of the bench ended before it had answered; what it said is above.")
        return dict(found)

    def finish(self) -> dict[str, Any]:
        """Let it end; its last line. Raises BenchFailed when it failed."""
        with contextlib.suppress(BrokenPipeError):
            self.orders.close()
        lines = self.answers.read().splitlines()
        if self.popen.wait() or not lines:
            raise BenchFailed("A process of the bench failed; what it said is above.")
        return dict(json.loads(lines[-1]))


def _environment() -> dict[str, str]:
    """This one's; but a start is measured as a house has it from the second one on: with its modules compiled."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def process(job: str, **given: Any) -> Iterator[Process]:
    """A fresh Python that does `job` on the database connected here; ended with the block, whatever happens."""
    passed = {name: getattr(settings, name) for name in PASSED_ON if hasattr(settings, name)}
    off = {name: "" for name in MODELS_ASKED if hasattr(settings, name)}
    where = {key: connection.settings_dict[key] for key in WHERE}
    connection.close()
    with subprocess.Popen(
        [sys.executable, "-m", "memories.bench.child"],
        cwd=settings.BASE_DIR,
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as popen:
        try:
            if popen.stdin is None or popen.stdout is None:
                raise BenchFailed("A process of the bench has no pipes.")
            started = Process(popen, popen.stdin, popen.stdout)
            # The password goes this way, not by the command line that everybody on the host can read.
            order = {"job": job, "settings": passed | off, "database": where, **given}
            with contextlib.suppress(BrokenPipeError):
                started.orders.write(json.dumps(order, default=str) + "\n")
                started.orders.flush()
            yield started
        finally:
            popen.kill()
