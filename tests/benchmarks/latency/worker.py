"""A measuring process, started afresh for each series. Imports Django only after its settings are overridden."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

WARM_UP = 5
"""Calls before timing starts: the first ones load code and fill the database's cache."""
INGEST_EVERY = 0.05
"""Seconds between two observations of the session under load: far more than a session reports."""
SWEEPS = 6
"""Days that the sweep advances under load; each takes a seventh of a week's decay."""
REINDEX_BATCH = 2_000


def run(pipe: Connection, job: str, database: str, folder: str, *given: Any) -> None:
    """Do `job` on the scratch database; the folder is its data folder."""
    import django
    from django.conf import settings

    import memories

    settings.CLAUDEOPS_DATA_DIR = Path(folder)
    memories.starting(to_recall=job == "answer")
    django.setup()
    from django.db import connection

    connection.settings_dict["NAME"] = database
    with suppress(BrokenPipeError):  # whoever started it has ended
        {"answer": answer, "load": load}[job](pipe, *given)


def answer(pipe: Connection, queries: Sequence[tuple[str, int | None]], observations: Sequence[dict[str, Any]]) -> None:
    """Send "first" with the first answer, then the figures of recall and of remember()."""
    import psutil

    from memories.recall import ANY_AGENT, ANY_PROJECT, Asker, Filters, recall

    def ask(query: str, project: int | None) -> Any:
        where = Filters(project=ANY_PROJECT if project is None else project, agent=ANY_AGENT)
        return recall(query, where, asked_by=Asker("bench"))

    pipe.send(ask(*queries[0]).trace.vectors)
    timed, remembering = Timed(), Timed()
    unrecorded: list[float] = []
    steps: dict[str, list[float]] = {}
    hits = 0
    for number, query in enumerate(queries[1:]):
        found = timed.call(number >= WARM_UP, ask, *query)
        if number >= WARM_UP:
            hits += bool(found.hits)
            unrecorded.append(sum(found.trace.steps.values()))
            for name, seconds in found.trace.steps.items():
                steps.setdefault(name, []).append(seconds)
    outcomes: Counter[str] = Counter()
    for number, one in enumerate(observations):
        warm = number >= min(WARM_UP, len(observations) - 1)
        outcomes[remembering.call(warm, _remember, one)] += 1
    pipe.send(
        {
            "recall": timed,
            "unrecorded": unrecorded,
            "steps": steps,
            "answered": hits / max(1, len(unrecorded)),
            "remember": remembering,
            "outcomes": dict(outcomes),
            "memory": psutil.Process().memory_info().rss,
        }
    )


class Timed:
    """Wall-clock and processor seconds of calls."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.cpu: list[float] = []

    def call(self, counted: bool, function: Callable[..., Any], *arguments: Any) -> Any:
        begun, used = time.perf_counter(), time.process_time()
        found = function(*arguments)
        if counted:
            self.seconds.append(time.perf_counter() - begun)
            self.cpu.append(time.process_time() - used)
        return found


def load(pipe: Connection, observations: Sequence[dict[str, Any]]) -> None:
    """Rebuild the index, sweep and ingest a session, all at once in threads, until something is received.

    Raises what a thread died of.
    """
    from concurrent.futures import ThreadPoolExecutor
    from datetime import timedelta

    from django.db import DatabaseError, connection
    from django.utils import timezone

    from memories.lifecycle.sweep import sweep
    from memories.recall import keyword_index

    done, lock, over = Counter(indexed=0, swept=0, ingested=0, refused=0), threading.Lock(), threading.Event()

    def repeat(name: str, pause: float, step: Callable[[int], int], times: int | None) -> None:
        turn = 0
        while times is None or turn < times:
            try:
                count = step(turn)
            except DatabaseError:  # SQLite's lock was not free in time: counted, and tried again
                name_of, count = "refused", 1
            else:
                name_of, turn = name, turn + 1
            with lock:
                done[name_of] += count
            if over.wait(pause):
                break
        connection.close()

    def reindex(turn: int) -> int:
        count = keyword_index.catch_up(limit=REINDEX_BATCH)
        if not count:  # every memory becomes due again
            with connection.cursor() as cursor:
                cursor.execute(keyword_index.ALL_ROWS)
        return count

    def ingest(turn: int) -> int:
        _remember(observations[turn])
        return 1

    def decay(turn: int) -> int:
        swept = sweep(timezone.now() + timedelta(days=turn + 1))
        return swept.decayed + swept.deactivated + swept.expired

    loops = (("indexed", 0.0, reindex, None), ("swept", 0.5, decay, SWEEPS))
    begun = time.monotonic()
    with ThreadPoolExecutor(3) as pool:
        running = [
            pool.submit(repeat, *loop) for loop in (*loops, ("ingested", INGEST_EVERY, ingest, len(observations)))
        ]
        pipe.send("running")
        with suppress(EOFError):
            pipe.recv()
        over.set()
    for one in running:
        one.result()
    pipe.send({**done, "seconds": round(time.monotonic() - begun, 1)})


def _remember(given: dict[str, Any]) -> str:
    from memories.store import Provenance, Statement, remember

    statement = Statement(given["category"], given["observation"], given["service"])
    return remember(statement, Provenance("run", "agent:bench", tier=1, project_id=given["project"])).outcome
