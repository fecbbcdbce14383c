"""How long it takes to learn the relevance of a project's memories from the sessions that used them: five uses each."""

from __future__ import annotations

import uuid

import pytest

from memories.models import Memory, MemoryChange, Project
from sessions_app.credit.outcome import adjust_relevance
from sessions_app.models import How, Session, UsedMemory
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, growth
from tests.benchmarks.rows import put

pytestmark = pytest.mark.django_db(transaction=True)
USES, SESSIONS = 5, 1_000


def test_learning_relevance(report: Report, sizes: list[int]) -> None:
    put(Session, SESSIONS, lambda number: {"uuid": uuid.UUID(int=number + 1), "status": "completed"})
    project = Project.objects.create(slug="web")
    lines, before = [], 0.0
    for size in sizes:
        UsedMemory.objects.all().delete()
        facts.forget()
        where = {"taxonomy": "project", "project": project, "category": "pattern"}
        facts.store(size, lambda number, where=where: where)
        first = Memory.objects.order_by("pk").values_list("pk", flat=True)[0]
        put(UsedMemory, USES * size, lambda number, first=first: _use(number, first))
        facts.settle()
        series = Series()
        (found,) = series.time(adjust_relevance, project)
        assert MemoryChange.objects.count() == len(found.adjustments) == size
        lines.append((f"{size:,}", f"{USES * size:,}", f"{series.median:.1f}", growth(series.median, before or None)))
        before = series.median
    report("LEARNING RELEVANCE, with a change row each", ("memories", "uses", "seconds", "growth"), lines)


def _use(number: int, first: int) -> dict[str, object]:
    """The uses of a memory follow each other, each by another session; seven of ten helped."""
    memory, session = first + number // USES, number % SESSIONS + 1
    return {"memory_id": memory, "session_id": session, "how": How.NAMED, "helped": number % 10 < 7}
