"""How long the lists of the API take when one project has all memories: the total, deep offsets, and filters.

With the bearer's authentication, the routes and the serialising; the network is not in it. Every tenth memory is
inactive, every tenth has a tag that it shares, one in 10,000 has a rare one.
"""

from __future__ import annotations

import os
import uuid
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.models import Memory, Project, Source
from tests.api_callers import bearer
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, ms
from tests.benchmarks.rows import Values, put

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


def test_lists_of_a_project(sizes: list[int], smoke: bool, report: Report) -> None:
    count = sizes[-1]
    with transaction.atomic():
        put(Project, 1, lambda _: {"slug": "web"})
        put(Memory, count, _memory)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE memories")
    caller, runs = bearer("read"), int(os.environ.get("BENCH_RUNS", "3" if smoke else "15"))
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
