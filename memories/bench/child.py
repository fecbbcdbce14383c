"""A process of a latency bench: started afresh, pointed to the scratch database, told on stdin what to do.

`python -m memories.bench.child` reads one JSON object (settings, database, job) and answers in lines of JSON. It ends
when its stdin does, so none outlives the bench. Nothing of claudeops is imported before Django is set up.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PATHS = ("CLAUDEOPS_DATA_DIR", "CLAUDEOPS_MODELS_DIR")
WARM = 5
"""Calls before the clock counts: the first ones load code and fill the database's own cache."""
INGESTED_EVERY = 0.05
"""Seconds between two observations of the session that is taken in under load: far more than a session says."""
SWEEPS = 6
"""Days that the sweep goes ahead under load: each takes a seventh of the store's weekly decay."""
REBUILT_AT_ONCE = 2_000


def main() -> None:
    order = json.loads(sys.stdin.readline())
    import django
    from django.conf import settings

    import memories

    for name, value in order["settings"].items():
        setattr(settings, name, Path(value) if name in PATHS else value)
    memories.starting(to_recall=order["job"] == "answer")
    django.setup()
    from django.db import connection

    connection.settings_dict.update(order["database"])
    JOBS[order["job"]](order)


def prepare_worker() -> None:
    """Begin a process of a pool (`making`): Django, and an end with whoever started it, also by `kill -9`."""
    import django

    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    django.setup()


def say(**found: Any) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def answer(order: dict[str, Any]) -> None:
    """Answers queries, then takes observations in. Says `first` at once when the first answer is there."""
    ask = _asker()
    first, *queries = order["queries"]
    found = ask(*first)
    say(first=len(found.hits), semantic=found.trace.semantic)
    for query in queries[:WARM]:
        ask(*query)
    steps: dict[str, list[float]] = {}
    seconds: list[float] = []
    unrecorded: list[float] = []
    own: list[float] = []
    hits = 0
    for query in queries[WARM:]:
        begun, used = time.perf_counter(), time.process_time()
        found = ask(*query)
        seconds.append(time.perf_counter() - begun)
        own.append(time.process_time() - used)
        hits += bool(found.hits)
        unrecorded.append(sum(found.trace.steps.values()))
        for name, took in found.trace.steps.items():
            steps.setdefault(name, []).append(took)
    say(recall=seconds, cpu=own, without_record=unrecorded, answered=hits, steps=steps, memory=_memory())
    seconds, own = [], []
    outcomes: dict[str, int] = {}
    for number, given in enumerate(order["observations"]):
        begun, used = time.perf_counter(), time.process_time()
        outcome = _remember(given)
        if number >= min(WARM, len(order["observations"]) - 1):
            seconds.append(time.perf_counter() - begun)
            own.append(time.process_time() - used)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    say(remember=seconds, remember_cpu=own, outcomes=outcomes, memory=_memory())


def load(order: dict[str, Any]) -> None:
    """A rebuild of the index, sweeps and a session's ingest, all at once in threads, until stdin ends."""
    over, done = threading.Event(), {"indexed": 0, "swept": 0, "ingested": 0, "refused": 0}
    lock = threading.Lock()

    def add(name: str, count: int) -> None:
        with lock:
            done[name] += count

    def working(step: Callable[[], bool]) -> threading.Thread:
        from django.db import DatabaseError, connection

        def work() -> None:
            try:
                going = True
                while going and not over.is_set():
                    try:
                        going = step()
                    except DatabaseError:  # SQLite gave up waiting for its lock: counted, and tried again
                        add("refused", 1)
            finally:
                connection.close()

        return threading.Thread(target=work)

    steps = (_rebuilding(add), _sweeping(add, over), _ingesting(add, over, order["observations"]))
    threads = [working(step) for step in steps]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    say(running=True)
    sys.stdin.read()  # until whoever started this closes it, or is gone
    over.set()
    for thread in threads:
        thread.join()
    say(done=done, seconds=time.monotonic() - begun)


def _rebuilding(add: Callable[[str, int], None]) -> Callable[[], bool]:
    """Every memory becomes due, and is indexed anew; then again."""
    from django.db import connection

    from memories.recall import keyword_index

    def step() -> bool:
        count = keyword_index.catch_up(limit=REBUILT_AT_ONCE)
        add("indexed", count)
        if not count:
            with connection.cursor() as cursor:
                cursor.execute(keyword_index.ALL_ROWS)
        return True

    return step


def _sweeping(add: Callable[[str, int], None], over: threading.Event) -> Callable[[], bool]:
    from datetime import timedelta

    from django.utils import timezone

    from memories.lifecycle.sweep import sweep

    days = 0

    def step() -> bool:
        nonlocal days
        days += 1
        add("swept", sweep(timezone.now() + timedelta(days=days)).changed)
        over.wait(0.5)
        return days < SWEEPS

    return step


def _ingesting(
    add: Callable[[str, int], None], over: threading.Event, observations: Sequence[dict[str, Any]]
) -> Callable[[], bool]:
    left = iter(observations)

    def step() -> bool:
        given = next(left, None)
        if given is None:
            return False
        _remember(given)
        add("ingested", 1)
        over.wait(INGESTED_EVERY)
        return True

    return step


def _asker() -> Callable[[str, int | None], Any]:
    """A recall as a surface asks it: within a project or all, and recorded."""
    from memories.recall import ANY_AGENT, ANY_PROJECT, Asker, Filters, recall

    asker = Asker("bench")

    def ask(query: str, project: int | None) -> Any:
        where = Filters(project=ANY_PROJECT if project is None else project, agent=ANY_AGENT)
        return recall(query, where, asked_by=asker)

    return ask


def _remember(given: dict[str, Any]) -> str:
    from memories.store import Candidate, Provenance, remember

    candidate = Candidate(given["category"], given["observation"], given["service"])
    return remember(candidate, Provenance("run", "agent:bench", tier=1, project_id=given["project"])).outcome


def _memory() -> int:
    """Bytes that the system keeps resident for this process, what it maps of files among them."""
    import psutil

    return int(psutil.Process().memory_info().rss)


JOBS: dict[str, Callable[[dict[str, Any]], None]] = {"answer": answer, "load": load}

if __name__ == "__main__":
    main()
