"""How long the lists of the API take when one project has all memories: the total, deep offsets, and filters.

With the bearer's authentication, the routes and the serialising; the network is not in it. Every tenth memory is
inactive, every tenth has a tag that it shares, one in 10,000 has a rare one.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.models import Memory, Project, ProjectTag, Source
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, ms
from tests.benchmarks.rows import Values, put
from tests.support.api_callers import bearer

pytestmark = pytest.mark.django_db(transaction=True)

TYPES = ("pattern", "warning", "learning", "context")
COLUMNS = ("address", "queries", "KB", "total", "median ms", "p95 ms")


def _memory(number: int) -> Values:
    at = timezone.now() - timedelta(minutes=number % 100_000)
    return {
        "uuid": uuid.UUID(int=number + 1),
        "taxonomy": "project",
        "project_id": 1,
        "category": TYPES[number % 4],
        "observation": facts.observation(number),
        "confidence": 0.5,
        "source": Source.RUN,
        "tags": ["common"] * (number % 10 == 0) + ["rare"] * (number % 10_000 == 7),
        "active": number % 10 != 1,
        "inactive_reason": "expired" if number % 10 == 1 else "",
        "created_at": at,
        "updated_at": at,
    }


def _tag(number: int, tag: str) -> Values:
    return {"memory_id": number + 1, "project_id": 1, "kind": 0, "tag": tag}


@contextmanager
def without_triggers(table: str) -> Iterator[None]:
    """Keep the keyword index and the counts out of the filling: the lists read neither, and they take most of it."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            yield
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # a table with deferred checks cannot be altered
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
            return
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [table])
        triggers = cursor.fetchall()
        for name, _ in triggers:
            cursor.execute(f"DROP TRIGGER {name}")
        yield
        for _, sql in triggers:
            cursor.execute(sql)


def test_lists_of_a_project(sizes: list[int], smoke: bool, report: Report) -> None:
    count = sizes[-1]
    with transaction.atomic(), without_triggers("memories"):
        put(Project, 1, lambda _: {"slug": "web"})
        put(Memory, count, _memory)
        put(ProjectTag, (count - 1) // 10 + 1, lambda n: _tag(10 * n, "common"))
        put(ProjectTag, (count - 8) // 10_000 + 1, lambda n: {"id": 10**7 + n, **_tag(10_000 * n + 7, "rare")})
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE memories")
    caller, runs = bearer("read"), int(os.environ.get("BENCH_RUNS", "1" if smoke else "15"))
    active = count - len(range(1, count, 10))
    asked = [
        *("", "?limit=500", f"?offset={active // 2}", f"?offset={active - 50}", f"?offset={active + 1}"),
        *("?active=false", "?active=all", f"?active=all&offset={count // 2}", "?type=warning"),
        *("?tags=common", f"?tags=common&offset={active // 20}", "?tags=rare", "?tags=rare,common", "?tags=none"),
    ]
    paths = [*(f"/api/projects/web/memories{query}" for query in asked), "/api/projects", "/api/memories?project=web"]
    lines = []
    for path in paths:
        answer = caller.get(path)
        assert answer.status_code == 200
        with CaptureQueriesContext(connection) as queries:
            caller.get(path)
        number = len(queries)
        series = Series()
        for _ in range(runs):
            series.time(lambda path=path: caller.get(path))
        total = answer.json().get("total")
        shown = "-" if total is None else f"{total:,}"
        figures = (f"{len(answer.content) / 1000:.1f}", shown, ms(series.median), ms(series.p95))
        lines.append((path, str(number), *figures))
    report(f"LISTS OF THE API, {count:,} memories of one project ({runs} runs each)", COLUMNS, lines)
    assert Memory.objects.count() == count
