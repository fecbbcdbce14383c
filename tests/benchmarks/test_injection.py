"""How long it takes to build what goes into a prompt, when so many memories are there to choose from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings

from memories.injection.ops import build
from memories.injection.windows import timed
from memories.models import Memory
from memories.models.memory import ANY_AGENT
from memories.taxonomy import OPS
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, growth, ms

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_building_the_injection(report: Report, sizes: list[int], smoke: bool) -> None:
    assert OPS.decay is not None
    budget = settings.CLAUDEOPS_MEMORY_BUDGET
    due = NOW - OPS.decay.grace - OPS.decay.every - timedelta(minutes=5)
    rows = []
    before: dict[str, float] = {}
    for size in sizes:
        facts.forget()
        facts.store(size, lambda number: {"updated_at": due if number % 100 == 9 else NOW, **facts.mixed(number)})
        facts.settle()
        kinds = {
            f"{budget:,} tokens": (budget, None, 30),
            f"{10 * budget:,} tokens": (10 * budget, None, 10),
            f"{budget:,} tokens, as a session beginning when 1 % is due would get": (budget, NOW, 5),
        }
        for name, (tokens, at, runs) in kinds.items():
            series = Series()
            for _ in range(5 if smoke else runs):
                injection = series.time(build, budget=tokens, at=at)
                assert injection.tokens <= tokens
                assert injection.counts["eligible"] >= len(injection.included) > 0
            rows.append(
                (
                    name,
                    f"{size:,}",
                    f"{injection.counts['eligible']:,}",
                    f"{len(injection.included):,}",
                    ms(series.median),
                    ms(series.p95),
                    growth(series.median, before.get(name)),
                )
            )
            before[name] = series.median
    rows.sort(key=lambda row: tuple(kinds).index(row[0]))
    columns = ("injection", "memories", "eligible", "included", "median ms", "p95 ms", "growth")
    report("BUILDING THE INJECTION with its record (aim: well under 200 ms at 100,000)", columns, rows)


def test_reading_the_windows(report: Report, sizes: list[int], smoke: bool) -> None:
    """Each prompt and briefing asks which memories have a window of time that is open."""
    forms = ("mon 08:00-12:00 Europe/Vienna", "first monday", "day -1", "12-24..12-26", "cron 0 3 * * 1 for 6h")
    rows = []
    for size in sizes:
        facts.forget()
        facts.store(size, lambda number: {"updated_at": NOW, **facts.mixed(number)})
        facts.settle()
        active = list(Memory.objects.filter(active=True).order_by("pk").values_list("pk", flat=True)[:200])
        for windows in (0, 20, 200):
            for number, pk in enumerate(active[:windows]):
                Memory.objects.filter(pk=pk).update(surface=forms[number % len(forms)])
            series = Series()
            for _ in range(5 if smoke else 100):
                series.time(timed, None, ANY_AGENT, NOW)
            rows.append((f"{windows:,}", f"{size:,}", ms(series.median), ms(series.p95)))
    columns = ("memories with a window", "memories", "median ms", "p95 ms")
    report("WINDOWS OF TIME: which memories are told now", columns, rows)
