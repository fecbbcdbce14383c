"""Several querysets are counted by one query, up to a cap."""

from __future__ import annotations

import pytest

from claudeops.lib.capped import counts_of
from memories.models import Memory
from tests.support.factories import MemoryFactory


@pytest.mark.django_db
def test_querysets_are_counted_with_and_without_conditions_and_empty_ones_ask_nothing(django_assert_num_queries):
    MemoryFactory.create_batch(3, service="caddy")
    everything, some, none = Memory.objects.all(), Memory.objects.filter(service="caddy"), Memory.objects.none()
    for parts, counts in (
        ([everything], [3]),  # a query without parameters
        ([none, everything], [0, 3]),
        ([everything, some, none, some.filter(service="jellyfin")], [3, 3, 0, 0]),
    ):
        with django_assert_num_queries(1):
            assert counts_of(parts) == counts
    with django_assert_num_queries(0):
        assert counts_of([none, none]) == [0, 0]
    assert counts_of([everything], most=2) == [2]
