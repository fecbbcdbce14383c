"""What the benchmarks share: the number of memories, and where the figures go.

`pytest tests/benchmarks` prints them, with or without -s. No time is asserted, only that what was timed was done.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from tests.benchmarks.measure import head, table

SMALL = 1000
"""With fewer memories the run only shows that the benchmarks work, with short logs."""

Report = Callable[..., None]


@pytest.fixture(scope="session")
def sizes() -> list[int]:
    """The numbers of memories, ascending: BENCH_SIZES=1000,10000,100000."""
    given = os.environ.get("BENCH_SIZES", "1000,10000,100000")
    try:
        found = sorted({int(part) for part in given.split(",")})
    except ValueError:
        found = []
    if not found or found[0] < 100:
        raise pytest.UsageError(
            f"BENCH_SIZES is {given!r}; allowed are whole numbers from 100 on, with commas between."
        )
    return found


@pytest.fixture(scope="session")
def smoke(sizes: list[int]) -> bool:
    return sizes[-1] < SMALL


@pytest.fixture(scope="session")
def headline() -> list[str]:
    """Said once a run."""
    return []


@pytest.fixture
def report(transactional_db: None, headline: list[str], capsys: pytest.CaptureFixture[str]) -> Report:
    """Prints a table at once, past pytest's own capturing."""

    def say(*parts: object, **named: object) -> None:
        with capsys.disabled():
            if not headline:
                headline.append(head())
                print(f"\n\n{headline[0]}")
            print(table(*parts, **named))
        if os.environ.get("BENCH_JSON"):
            title, columns, rows, *_ = parts
            with Path(os.environ["BENCH_JSON"]).open("a") as lines:
                lines.write(json.dumps({"title": title, "columns": columns, "rows": rows}) + "\n")

    return say


@pytest.fixture
def log(transactional_db: None) -> Iterator[Path]:
    """Where a session's raw log is written."""
    path = Path(settings.CLAUDEOPS_DATA_DIR) / "sessions" / "benchmark.jsonl"
    path.parent.mkdir(exist_ok=True)
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Logging costs what the handlers cost; that is not what is measured."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
