"""How long it takes to choose a project's memories for a prompt, among so many."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memories.injection.project import select
from memories.injection.tags import Subject
from memories.models import Project
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, growth, ms

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
TASK = Subject(
    "Fix the login of the shop: error handling, retries and the session cookie. " * 20, ("src/core/**", "README.md")
)
RELEVANCE = (None, 0.5, 0.9, 0.1, None, 0.7)


def test_selecting_project_memories(report: Report, sizes: list[int], smoke: bool) -> None:
    rows = []
    before: dict[str, float] = {}
    tagged = {
        "no tags": lambda number: [],
        "two of 500 tags on each": lambda number: [f"area{number % 250}", f"src/part{number % 250}/**"],
        "one in 1,000 matches": lambda number: ["login"] if number % 1000 == 7 else [f"area{number % 250}"],
        "every second matches": lambda number: ["login", "src/core/**"] if number % 2 else [f"area{number % 250}"],
    }
    for name, tags in tagged.items():
        for size in sizes:
            facts.forget()
            Project.objects.all().delete()
            project = Project.objects.create(slug="shop")
            facts.store(
                size,
                lambda number, tags=tags, project=project: {
                    "taxonomy": "project",
                    "project": project,
                    "category": "pattern",
                    "created_at": NOW,
                    "relevance_score": RELEVANCE[number % len(RELEVANCE)],
                    "tags": tags(number),
                },
            )
            facts.settle()
            series = Series()
            for _ in range(3 if smoke else 20):
                selection = series.time(select, project, TASK, at=NOW)
                assert selection.tokens <= project.memory_budget
                assert 0 < len(selection.included) <= project.memories_in_prompt
            rows.append(
                (
                    name,
                    f"{size:,}",
                    f"{selection.counts['eligible']:,}",
                    f"{selection.counts['matched']:,}",
                    ms(series.median),
                    ms(series.p95),
                    growth(series.median, before.get(name)),
                )
            )
            before[name] = series.median
    columns = ("tags", "memories", "eligible", "matched", "median ms", "p95 ms", "growth")
    report("SELECTING A PROJECT'S MEMORIES with the record (aim: 50 ms at 100,000)", columns, rows)
