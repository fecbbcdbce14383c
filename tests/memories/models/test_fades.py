"""When memories fade, by SQL: the same as the forecast in Python, for every policy."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest
from django.utils import timezone

from memories.history.forecast import forecast
from memories.models import Memory, Verdict
from memories.models.fades import FADES_AT, NEVER
from memories.queries.filters import MemoryFilterSet
from memories.taxonomy import TAXONOMIES
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db

NOW = timezone.now()
DAYS = (0, 29, 44, 200)
KINDS = [(slug, category) for slug, one in TAXONOMIES.items() for category in one.categories]


def test_the_database_computes_what_the_forecast_says():
    rows = []
    for number, ((slug, category), days) in enumerate(product(KINDS, DAYS)):
        for confidence in (0.2, 0.3, 0.35, 0.4, 0.7, 0.95, 1.0) if slug == "ops" else (0.7,):
            confirmed = NOW - timedelta(days=days)
            rows.append(
                MemoryFactory.build(
                    taxonomy=slug,
                    category=category,
                    confidence=confidence,
                    updated_at=confirmed,
                    session=None,
                    decayed_until=confirmed + timedelta(days=37) if days > 40 and number % 2 else None,
                    expires_at=NOW + timedelta(days=20 * (number % 9)) if number % 3 == 0 else None,
                    persistent=number % 7 == 0,
                    verdict=Verdict.HOLD if number % 5 == 0 else Verdict.ALLOW,
                    active=number % 11 != 0,
                )
            )
    Memory.objects.bulk_create(rows)
    found = list(Memory.objects.annotate(fades_at=FADES_AT))
    assert len(found) == len(rows) > 80
    for memory in found:
        end = forecast(memory, NOW).inactive_at
        wanted = NEVER if end is None else end.timestamp()
        assert memory.fades_at == pytest.approx(wanted, abs=1), (memory.taxonomy, memory.category, memory.confidence)


def test_the_filter_takes_what_fades_within_a_span_and_refuses_what_is_none():
    soon = MemoryFactory(confidence=0.7, updated_at=NOW - timedelta(days=60))  # five weeks after 30 days: in 5 days
    later = MemoryFactory(confidence=0.7, updated_at=NOW - timedelta(days=45))
    MemoryFactory(persistent=True)
    MemoryFactory(active=False, updated_at=NOW - timedelta(days=60))

    def matching(text: str) -> set[int]:
        filters = MemoryFilterSet({"fades": text}, queryset=Memory.objects.all())
        assert filters.is_valid(), filters.errors
        return set(filters.qs.values_list("pk", flat=True))

    assert matching("<14d") == {soon.pk}
    assert matching(">2w") == {later.pk}
    assert matching("0..4w") == {soon.pk, later.pk}
    assert not MemoryFilterSet({"fades": "soon"}, queryset=Memory.objects.all()).is_valid()
