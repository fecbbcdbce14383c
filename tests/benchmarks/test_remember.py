"""How many observations a second are remembered, when so many are known."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from memories.models import Memory, Source
from memories.store import Provenance, remember
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, growth, ms
from tests.factories import SessionFactory

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_remembering(report: Report, sizes: list[int], smoke: bool) -> None:
    rows = []
    before: dict[str, float] = {}
    for size in sizes:
        facts.forget()
        facts.store(size, lambda number: {"updated_at": NOW})
        facts.settle()
        runs = min(size // 2, 20 if smoke else 100)
        # Spread over the scopes, so that nothing of one call helps the next.
        chance = random.Random(size)
        known = chance.sample(range(size), 2 * runs)
        kinds = {
            "new": ([size + place for place in chance.sample(range(facts.SCOPES), runs)], "first"),
            "restated": (known[:runs], "again"),
            "contradicting": (known[runs:], "against"),
        }
        for kind, (numbers, wording) in kinds.items():
            session = SessionFactory(agent=None)
            said = Provenance(source=Source.RUN, actor="agent:benchmark", session_id=session.pk, tier=1)
            series, outcomes = Series(), []
            for number in numbers:
                outcomes.append(series.time(remember, facts.candidate(number, wording), said, at=NOW))
            counted = {
                "new": sum(o.outcome == "created" and not o.contradicted for o in outcomes),
                "restated": sum(o.outcome == "reinforced" for o in outcomes),
                "contradicting": sum(o.outcome == "created" and len(o.contradicted) == 1 for o in outcomes),
            }
            assert counted[kind] == runs, f"{kind}: only {counted[kind]} of {runs} were taken as that"
            rows.append(
                (
                    kind,
                    f"{size:,}",
                    f"{max(1, size // facts.SCOPES):,}",
                    f"{runs / sum(series.seconds):,.0f}",
                    ms(series.median),
                    ms(series.p95),
                    growth(series.median, before.get(kind)),
                )
            )
            before[kind] = series.median
        assert Memory.objects.count() == size + 2 * runs
    rows.sort(key=lambda row: tuple(kinds).index(row[0]))
    columns = ("remember()", "known", "in the scope", "a second", "median ms", "p95 ms", "growth")
    note = f"Known memories are spread over {facts.SCOPES} scopes (service and category); each call is one transaction."
    report("REMEMBER, one observation at a time: gate, match within the scope, store, history", columns, rows, note)
